/** The documented responses match the actual ones: the status of a success, and every error. */
import { describe, expect, test } from 'bun:test'
import { getOperations, type Operation } from '../../src/api-docs/operations.ts'
import { everyRoute } from '../../src/routes/every-route.ts'
import { type Asker, buildWorld, MUTATIONS, type Mutation, type World } from '../spec/mutations.ts'
import { testApp } from '../support/app.ts'
import { documents } from '../support/documented.ts'
import { type Fields, people, problem, REMOTE } from '../support/people.ts'

const OPERATIONS = getOperations(everyRoute)
const named = (some: Operation[]) => some.map((one) => [`${one.method} ${one.route}`, one] as const)
const CHANGES = named(OPERATIONS.filter(({ method, route }) => method !== 'GET' && route.startsWith('/api/')))
/** A stream does not end here. */
const READS = named(OPERATIONS.filter(({ method, words }) => method === 'GET' && words.type !== 'text/event-stream'))

/** The result, and whether the documentation has it. */
const judged = async (operation: Operation, response: Response): Promise<string> => {
  const [, code] = response.status < 400 ? [] : await problem(response)
  return documents(operation, response.status, code ?? null)
    ? 'as documented'
    : `${response.status} ${code}, which is not documented`
}

interface Wrong {
  json?: unknown
  /** Replaces the parameters of the path. */
  id?: string
}

const WRONG: [what: string, Wrong][] = [
  ['an unknown id', { id: 'unknown-id' }],
  ['a body that is a list', { json: [] }],
  ['an unknown field', { json: { unknownField: 1 } }],
]

const send = (world: World, operation: Operation, mutation: Mutation, asker: Asker, { json, id }: Wrong) => {
  const params = mutation.params?.(world, asker) ?? {}
  const path = operation.route.replace(/:(\w+)/g, (_, name: string) => id ?? params[name] ?? '?')
  const fields = mutation.fields?.(world, asker) ?? {}
  const isForm = mutation.isFormOnly && json === undefined
  return asker.browser.ask(`${operation.method} ${path}`, {
    body: isForm ? new URLSearchParams(getTexts(fields)).toString() : JSON.stringify(json ?? listed(fields)),
    headers: { 'content-type': isForm ? 'application/x-www-form-urlencoded' : 'application/json' },
  })
}

const getTexts = (fields: Fields) => Object.entries(fields).map(([name, value]) => [name, String(value)])

const LISTS = ['grants', 'accountIds', 'files']
const listed = (fields: Fields) =>
  Object.fromEntries(Object.entries(fields).map(([name, text]) => [name, LISTS.includes(name) ? [text] : text]))

/** Valid ones are in the mutation matrix. */
describe('changes that are not valid', () => {
  test.each(CHANGES)('%s', async (name, operation) => {
    const mutation = MUTATIONS[name] ?? {}
    const world = await buildWorld(mutation)
    for (const [what, wrong] of operation.words.files ? WRONG.slice(0, 1) : WRONG) {
      const response = await send(world, operation, mutation, await world.as('admin'), wrong)
      expect([what, await judged(operation, response)]).toEqual([what, 'as documented'])
    }
  })
})

describe('reads', async () => {
  const house = await testApp({ settings: { guestAccessEnabled: true, apiKeyAuthEnabled: true } })
  const crowd = people(house)
  const key = await house.key()
  const bearer = { authorization: `Bearer ${key.key}` }
  const [admin, viewer] = [await crowd.as('admin'), await crowd.as('viewer')]
  const unconfirmed = await crowd.as('admin', { isConfirmed: false })
  const known: Record<string, string> = {
    '/api/accounts/:id': house.members[0]?.id ?? '',
    '/accounts/:id': house.members[0]?.id ?? '',
    '/api/api-keys/:id': key.row.id,
    '/keys/:id': key.row.id,
    '/api/dashboard-users/:id': admin.person.row.id,
  }
  const toPath = (route: string): string => {
    const [pattern = '', id = ''] = Object.entries(known).find(([begin]) => route.startsWith(begin)) ?? []
    return route.replace(pattern, pattern.replace(':id', id)).replace(/:\w+(\{.+\})?/, 'rtc_nobody-has-it')
  }

  test.each(READS)('%s', async (_, operation) => {
    const path = toPath(operation.route)
    const callers = {
      nobody: () => crowd.browser(REMOTE).ask(`GET ${path}`),
      guest: async () => (await crowd.guest()).ask(`GET ${path}`),
      'a Viewer': () => viewer.ask(`GET ${path}`),
      'an Admin': () => admin.ask(`GET ${path}`),
      'an Admin who has not confirmed': () => unconfirmed.ask(`GET ${path}`),
      'a key': () => crowd.browser().ask(`GET ${path}`, { headers: bearer }),
      'a key that asks for the restricted pool': () =>
        crowd
          .browser()
          .ask(`GET ${path}`, { headers: { ...bearer, 'x-codex-lb-required-capability': 'trusted_cyber' } }),
      'an Admin with bad parameters': () => admin.ask(`GET ${path}?limit=-1&since=x&start_date=x&q=${'x'.repeat(300)}`),
    }
    for (const [who, ask] of Object.entries(callers))
      expect([who, await judged(operation, await ask())]).toEqual([who, 'as documented'])
  })
})
