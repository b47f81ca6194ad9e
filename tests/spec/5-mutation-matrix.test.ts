/**
 * Spec §2, §5, §7: every mutation of the route table by every kind of user, that a rejected one leaves no trace, and that
 * the API reference has each response.
 */
import { describe, expect, test } from 'bun:test'
import { getOperations } from '../../src/api-docs/operations.ts'
import type { AccessRule } from '../../src/http/gates.ts'
import type { RouteRow } from '../../src/http/route-table.ts'
import { type Grants, holds, mayWrite, type Permission, PRESETS } from '../../src/model/users/permissions.ts'
import { everyRoute } from '../../src/routes/every-route.ts'
import { documents } from '../support/documented.ts'
import { dump, takeSnapshot } from '../support/dump.ts'
import { readMemory, readNames } from '../support/memory.ts'
import { type Fields, problem, REQUEST_FORMATS, type RequestFormat } from '../support/people.ts'
import {
  type Asker,
  buildWorld,
  CUSTOM,
  type Kind,
  MUTATIONS,
  type Mutation,
  type World,
  type WorldKind,
} from './mutations.ts'

const ROUTES = everyRoute.filter(({ method, path }) => method !== 'GET' && path.startsWith('/api/'))
const getName = ({ method, path }: RouteRow) => `${method} ${path}`

const OPERATIONS = new Map(getOperations(everyRoute).map((one) => [`${one.method} ${one.route}`, one]))

interface Caller {
  kind: Kind
  grants: Grants
  isConfirmed?: boolean
  hasKey?: boolean
  enter: (world: World) => Promise<Asker>
  /** A separate world. */
  lives?: WorldKind
  headers?: (world: World) => Record<string, string>
  /** Rejected before the identity is checked. */
  refusal?: Refusal
}

type Refusal = [status: number, code: string]

const NO_GRANTS: Grants = new Map()
const SELF = 'http://localhost:2455'
const ADMIN: Caller = { kind: 'account', grants: PRESETS.admin, isConfirmed: true, enter: ({ as }) => as('admin') }
const NOBODY: Caller = { kind: 'nobody', grants: NO_GRANTS, enter: async ({ nobody }) => nobody() }

/** An Admin, confirmed, in whose browser a page of another site is at work. `5-cross-site.test.ts` has the other headers. */
const misled = (headers: Record<string, string>): Caller => ({
  ...ADMIN,
  headers: () => headers,
  refusal: [403, 'cross_site_request_rejected'],
})

const CALLERS: Record<string, Caller> = {
  'a visitor from another machine': NOBODY,
  'a guest': { kind: 'guest', grants: PRESETS.guest, enter: ({ guest }) => guest() },
  'a Viewer': { ...ADMIN, grants: PRESETS.viewer, enter: ({ as }) => as('viewer') },
  'a Member': { ...ADMIN, grants: PRESETS.member, enter: ({ as }) => as('member') },
  'an Operator': { ...ADMIN, grants: PRESETS.operator, enter: ({ as }) => as('operator') },
  'an Admin who has not confirmed': { ...ADMIN, isConfirmed: false, enter: ({ as }) => as('admin', false) },
  'an Admin': ADMIN,
  'who only manages people': {
    ...ADMIN,
    grants: new Map(Object.entries(CUSTOM.greeter) as [Permission, 'all'][]), // as: the keys are its own
    enter: ({ as }) => as('greeter'),
  },
  'a user the proxy announces': {
    ...ADMIN,
    kind: 'proxied',
    lives: 'proxied',
    enter: ({ announced }) => announced(),
    headers: () => ({ 'remote-user': 'anna' }),
  },
  'an Admin at the enrollment gate': {
    ...ADMIN,
    kind: 'held',
    lives: 'strict',
    enter: ({ as }) => as('admin', true, { hasTotp: false }),
  },
  'an Admin whose code is still to come': { ...ADMIN, kind: 'half', enter: ({ half }) => half() },
  'an API key': { ...NOBODY, hasKey: true, headers: ({ key }) => ({ authorization: `Bearer ${key.key}` }) },
  'another site': misled({ 'sec-fetch-site': 'cross-site' }),
  'two hosts': { ...misled({ host: 'localhost:2455, localhost:2455' }), refusal: [400, 'bad_host'] },
}

/** What a request must pass before the change, derived from the gate; for an open route, from its row. */
const getNeeds = (rule: AccessRule, { open, isSensitive }: Mutation) => {
  switch (rule.access) {
    case 'permission':
      return { somebody: true, permission: rule.permission, confirmation: rule.stepUp }
    case 'writes': {
      const { sometimes } = rule
      return {
        somebody: true,
        write: true,
        ownKeys: rule.ownKeys === true,
        ...(isSensitive && sometimes && { permission: sometimes.permission, confirmation: true }),
      }
    }
    case 'signed-in':
      return { somebody: true, account: rule.account === true, confirmation: rule.stepUp === true }
    case 'client-key':
      return { key: true, owner: rule.key === 'owner' }
    case 'open':
      return { somebody: open === 'account', account: open === 'account', stranger: open === 'stranger' }
  }
}

/** null: the change succeeds. */
const expected = (route: RouteRow, mutation: Mutation, caller: Caller): Refusal | null => {
  const rule = route.access[0]! // every route has one, which tests/routes.test.ts holds
  const needs: Partial<
    Record<'key' | 'owner' | 'somebody' | 'write' | 'ownKeys' | 'account' | 'confirmation' | 'stranger', boolean>
  > & {
    permission?: Permission
  } = getNeeds(rule, mutation)
  const { kind, grants, isConfirmed, hasKey, refusal } = caller
  // A page cannot attach a key, so routes with only a key do not check the origin (spec §5).
  if (refusal && (!needs.key || refusal[1] === 'bad_host')) return refusal
  if (needs.owner) return [401, 'invalid_api_key'] // no user here has a ChatGPT token
  if (needs.key) return hasKey ? (mutation.ends ?? null) : [401, 'invalid_api_key']
  if (kind === 'half' && (needs.somebody || needs.stranger)) return halfway(mutation, needs)
  if (kind === 'held' && needs.somebody) return mutation.held === undefined ? GATE : mutation.held
  if (kind === 'proxied' && mutation.proxied) return mutation.proxied
  if (needs.somebody && kind === 'nobody') return [401, 'authentication_required']
  if (needs.write && !mayWrite(grants)) {
    if (!holds(grants, 'api_keys:write', 'own')) return [403, 'read_only_access']
    return needs.ownKeys ? (mutation.othersKey ?? mutation.ends ?? null) : [403, 'permission_required']
  }
  if (needs.permission && !holds(grants, needs.permission)) return [403, 'permission_required']
  if (needs.account && (kind === 'nobody' || kind === 'guest')) return [401, 'user_account_required']
  if (needs.confirmation && !isConfirmed) return [403, 'step_up_required']
  if (needs.stranger && kind !== 'nobody' && kind !== 'guest') return [409, 'already_signed_in']
  return mutation.ends ?? null
}

const GATE: Refusal = [403, 'totp_enrollment_required']
const HALFWAY: Refusal = [401, 'totp_required']

/** A half session is no sign-in, but too much to enter as another user. */
const halfway = ({ half }: Mutation, { stranger }: { stranger?: boolean }): Refusal | null => {
  if (half !== undefined) return half
  return stranger ? [409, 'already_signed_in'] : HALFWAY
}

/** Where a browser without scripts is redirected instead of an error. */
const PLACES: Record<string, string> = {
  authentication_required: '/login',
  step_up_required: '/confirm',
  totp_required: '/totp',
  totp_enrollment_required: '/me/two-factor',
}

const getOutcome = async (response: Response, how: RequestFormat): Promise<Refusal | null> => {
  const to = new URL(response.headers.get('location') ?? '/', SELF)
  const led = Object.keys(PLACES).find((code) => PLACES[code] === to.pathname && !to.searchParams.has('done'))
  if (how === 'form' && response.status === 303 && led) return [303, led]
  if (response.status < 400) return null
  const [status, code] = await problem(response)
  return [status, code ?? 'unknown']
}

const shownAs = (refusal: Refusal | null, how: RequestFormat): Refusal | null =>
  refusal !== null && how === 'form' && refusal[1] in PLACES ? [303, refusal[1]] : refusal

const send = (
  world: World,
  { browser, ...own }: Asker,
  route: RouteRow,
  mutation: Mutation,
  { caller, how }: Sending,
) => {
  const params = mutation.params?.(world, { browser, ...own }) ?? {}
  const path = route.path.replace(/:(\w+)(?:\{.*?\})?/g, (_, name: string) => params[name] ?? '?')
  const fields = mutation.fields?.(world, { browser, ...own }) ?? {}
  const isForm = how === 'form' || mutation.isFormOnly
  return browser.ask(`${route.method} ${path}`, {
    body: isForm
      ? new URLSearchParams(Object.entries(fields).map(([name, value]) => [name, String(value)])).toString()
      : JSON.stringify(asJson(fields)),
    headers: {
      'content-type': isForm ? 'application/x-www-form-urlencoded' : 'application/json',
      ...(how === 'form' && { accept: 'text/html,application/xhtml+xml' }),
      ...caller.headers?.(world),
    },
  })
}

interface Sending {
  caller: Caller
  how: RequestFormat
}

/** The reference leaves out `bad_host`, which precedes every route. */
const isDocumented = (name: string, status: number, outcome: Refusal | null): boolean => {
  const operation = OPERATIONS.get(name)
  if (!operation) throw new Error(`${name} is missing from the API reference.`)
  return outcome?.[1] === 'bad_host' || documents(operation, status, outcome?.[1] ?? null)
}

/** A form says a list of one in one word, and names a member of an object after both. */
const asJson = (fields: Fields): object =>
  Object.fromEntries(
    Object.entries(fields).map(([name, text]) => {
      const [outer = name, inner] = name.split('.')
      return [outer, inner !== undefined ? { [inner]: text } : LISTS.includes(name) ? [text] : text]
    }),
  )

const LISTS = ['grants', 'accountIds', 'files', 'add']

/** A form is answered otherwise than JSON where a refusal leads to another page: each of those once, and one that does not. */
const BY_FORM: ReadonlySet<string> = new Set([
  'a visitor from another machine',
  'a Viewer',
  'an Admin who has not confirmed',
  'an Admin',
  'an Admin at the enrollment gate',
  'an Admin whose code is still to come',
  'another site',
])

/** Those in which nothing has been changed yet: building one costs far more than a request. */
const worlds = new Map<string, World>()

const getWorld = async ({ hasTotp, isPaused }: Mutation, kind: WorldKind = 'plain'): Promise<World> => {
  const key = JSON.stringify([hasTotp, isPaused, kind])
  const world = worlds.get(key) ?? (await buildWorld({ hasTotp, isPaused }, kind))
  worlds.set(key, world)
  return world
}

const forget = (changed: World): void => {
  for (const [key, world] of worlds) if (world === changed) worlds.delete(key)
}

describe('§5 every mutation, by every kind of user', () => {
  test('every mutation has a row that can send it, and there is no other row', () => {
    expect([...BY_FORM].filter((who) => !CALLERS[who])).toEqual([])
    expect(Object.keys(MUTATIONS).toSorted()).toEqual(ROUTES.map(getName).toSorted())
  })

  test.each(ROUTES.flatMap((route) => REQUEST_FORMATS.map((how) => [getName(route), how, route] as const)))(
    '%s as %s',
    async (name, how, route) => {
      const mutation = MUTATIONS[name] ?? {}
      for (const [who, caller] of Object.entries(CALLERS)) {
        if (how === 'form' && !BY_FORM.has(who)) continue
        const wanted = expected(route, mutation, caller)
        const here = await getWorld(mutation, caller.lives)
        const asker = await caller.enter(here)
        const other = wanted === null && !followed.has(name) ? await followChange(here) : null
        const earlier = takeSnapshot(here.app.sqlite)
        const response = await send(here, asker, route, mutation, { caller, how })
        const outcome = await getOutcome(response, how)
        expect([who, outcome]).toEqual([who, shownAs(wanted, how)])
        if (how === 'json') expect([who, isDocumented(name, response.status, outcome)]).toEqual([who, true])
        if (wanted === null || !earlier.isUnchanged()) {
          const [before, after] = [earlier.rows(), dump(here.app.sqlite)]
          if (wanted === null) expectRecorded(route, mutation, { who, kind: caller.kind, asker, before, after })
          else if (isWrittenDown(mutation, wanted)) expectOnlyRecorded(before, after)
          else expect([who, after]).toEqual([who, before])
        } else expect([who, isWrittenDown(mutation, wanted)]).toEqual([who, false])
        if (other) await expectFollowed(here, other, name)
        if (wanted === null || wanted === mutation.ends) forget(here)
      }
    },
  )
})

/** Changes that have been compared on a second process. */
const followed = new Set<string>()

const followChange = async ({ app }: World) => ({ other: await app.addProcess(), before: await readNames(app.db) })

/** The process that was there before the change knows what one that starts after it knows. */
const expectFollowed = async (
  { app }: World,
  { other, before }: Awaited<ReturnType<typeof followChange>>,
  name: string,
): Promise<void> => {
  followed.add(name)
  const fresh = await app.addProcess()
  for (const names of [before, await readNames(app.db)])
    expect(readMemory(other, names)).toEqual(readMemory(fresh, names))
}

test.each(
  ROUTES.filter((route) => MUTATIONS[getName(route)]?.open === 'account' && route.inputs.length > 0).map(getName),
)('%s checks the identity before it reads the body', async (route) => {
  const nobody = (await buildWorld({})).nobody().browser
  expect(await problem(await nobody.ask(route, { body: '{' }))).toEqual([401, 'authentication_required'])
})

type Dump = ReturnType<typeof dump>

interface Made {
  who: string
  kind: Kind
  asker: Asker
  before: Dump
  after: Dump
}

/** One row of the event that the table names, with the user who passed the gate as the actor. */
const expectRecorded = (route: RouteRow, { events }: Mutation, { who, kind, asker, before, after }: Made): void => {
  const rule = route.access[0]
  const audit = rule !== undefined && 'audit' in rule ? rule.audit : undefined
  const added = after.audit_logs?.slice(before.audit_logs?.length) ?? []
  const recorded = added.map(({ event }) => event)
  expect([who, recorded]).toEqual([who, events ? [...events(asker, kind)] : audit === undefined ? [] : [audit]])
  if (rule?.access !== 'permission' && rule?.access !== 'writes') return
  const { browser } = asker
  const doer = 'person' in browser ? (browser.person as { row: { id: string } }).row.id : null // as: those who pass have an account
  expect([who, ...added.map(({ actor }) => actor)]).toEqual([who, ...added.map(() => doer)])
}

const isWrittenDown = ({ isWrongSecret, ends }: Mutation, wanted: Refusal): boolean =>
  (isWrongSecret === true && wanted === ends) || wanted[1] === 'invalid_totp_code'

const expectOnlyRecorded = (before: Dump, after: Dump): void => {
  const { audit_logs: recorded = [], facts: _, sqlite_sequence: __, ...rest } = after
  const { audit_logs: known = [], facts: ___, sqlite_sequence: ____, ...was } = before
  expect(rest).toEqual(was)
  expect(recorded.slice(known.length).map(({ event }) => event)).toEqual(['login_failed'])
}
