/** The stand-alone web search of the real Codex CLI through Sluice. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { SEARCH_OUTPUT } from '../support/upstream/relay-routes.ts'
import { answers } from '../support/upstream/script.ts'
import { installCodex } from './support/codex.ts'
import { startWorld, type World } from './support/world.ts'

setDefaultTimeout(120_000)

let world: World

beforeAll(async () => {
  world = await startWorld({ accounts: [{}] })
})

afterAll(() => world[Symbol.asyncDispose]())

test('the search tool searches through alpha/search', async () => {
  world.upstream.script(({ input }) =>
    input.some(({ type }) => type === 'function_call_output')
      ? answers.text('Done.')
      : answers.toolCall({ name: 'run', namespace: 'web', arguments: '{"search_query":[{"q":"cats"}]}' }),
  )
  const { key } = world
  await using codex = installCodex({
    baseUrl: `${world.url}/backend-api/codex`,
    auth: { key },
    model: 'gpt-5.5',
    searchesWeb: true,
  })
  const run = await codex.exec('find cats')
  const [sent, ...others] = world.upstream.requests.filter(({ path }) => path.includes('/alpha/'))
  expect(run).toMatchObject({ exitCode: 0, text: 'Done.' })
  expect(others).toEqual([])
  expect(sent).toMatchObject({ path: '/backend-api/codex/alpha/search', status: 200, finished: true })
  expect(sent?.body).toMatchObject({ model: 'gpt-5.5', commands: { search_query: [{ q: 'cats' }] } })
  const found = { type: 'function_call_output', output: [{ type: 'input_text', text: SEARCH_OUTPUT }] }
  expect(world.upstream.requests.at(-1)?.body).toMatchObject({
    input: expect.arrayContaining([expect.objectContaining(found)]),
  })
  expect(world.upstream.oddities).toEqual([])
  const log = await world.log(3)
  expect(log.map(({ requestKind, status }) => [requestKind, status]).toSorted()).toEqual([
    ['control', 'ok'],
    ['normal', 'ok'],
    ['normal', 'ok'],
  ])
})
