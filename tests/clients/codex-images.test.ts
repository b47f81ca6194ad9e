/** The image tool of the real Codex CLI through Sluice: the client sends the request, and gets the image. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { answers } from '../support/upstream/script.ts'
import { installCodex } from './support/codex.ts'
import { startWorld, type World } from './support/world.ts'

setDefaultTimeout(120_000)

let world: World

beforeAll(async () => {
  world = await startWorld({ accounts: [{}, { plan: 'free' }] })
  await world.api('PATCH', '/api/settings', { apiKeyAuthEnabled: false })
})

afterAll(() => world[Symbol.asyncDispose]())

test('the image tool creates an image', async () => {
  world.upstream.script(({ input }) =>
    input.some(({ type }) => type === 'function_call_output')
      ? answers.text('Done.')
      : answers.toolCall({ name: 'imagegen', namespace: 'image_gen', arguments: '{"prompt":"a cat"}' }),
  )
  const visitor = world.upstream.addAccount() // is no account of the pool: its login stays on this side
  await using codex = installCodex({
    baseUrl: `${world.url}/backend-api/codex`,
    auth: { chatGptLogin: visitor.authJson() },
    model: 'gpt-5.5',
  })
  const run = await codex.exec('draw a cat')
  expect(run).toMatchObject({ exitCode: 0, complaints: [], text: 'Done.' })
  const [sent, ...others] = world.upstream.requests.filter(({ path }) => path.includes('/images/'))
  expect(others).toEqual([])
  expect(sent).toMatchObject({ path: '/backend-api/codex/images/generations', status: 200, finished: true })
  expect(sent?.body).toMatchObject({ prompt: 'a cat', model: 'gpt-image-2' })
  expect(sent?.headers['x-codex-image-turn-id']).toBeString()
  expect(sent?.account).toBe(world.upstream.accounts[0]?.chatgptAccountId ?? '')
  expect(world.upstream.oddities).toEqual([])
  const log = await world.log(3)
  expect(log.map(({ requestKind, status }) => [requestKind, status]).toSorted()).toEqual([
    ['image', 'ok'],
    ['normal', 'ok'],
    ['normal', 'ok'],
  ])
})
