/** The real Codex CLI while accounts fail: the user gets an answer as long as one account can serve. */
import { afterEach, expect, setDefaultTimeout, test } from 'bun:test'
import { until } from '../support/until.ts'
import { faults } from '../support/upstream/faults.ts'
import { installCodex } from './support/codex.ts'
import { getItems, startWorld } from './support/world.ts'

/** Drained in this order, so that the first account is known. */
const FIRST = { email: 'first@example.test', plan: 'plus' } as const
const SECOND = { email: 'second@example.test', plan: 'pro' } as const
const IN_AN_HOUR_MS = Date.now() + 3_600_000

// Longer than the CLI's timeout, so that a hang is reported with its output.
setDefaultTimeout(120_000)

let running = new AsyncDisposableStack()

afterEach(async () => {
  await running.disposeAsync()
  running = new AsyncDisposableStack()
})

/** A pool of these two, the CLI with a key of it, and both accounts to make them fail. */
async function setUp(settings: Record<string, string> = {}) {
  const world = running.use(await startWorld({ accounts: [FIRST, SECOND], settings: { ...STRATEGY, ...settings } }))
  running.defer(() => expect(world.upstream.oddities).toEqual([]))
  const codex = running.use(installCodex({ baseUrl: `${world.url}/backend-api/codex`, auth: { key: world.key } }))
  const [first, second] = world.upstream.accounts
  if (!first || !second) throw new Error('The stand-in did not add its accounts.')
  return { world, codex, first, second }
}

const STRATEGY = { routingStrategy: 'sequential_drain' }

test.each([
  ['as status 429', faults.usageLimit({ resetsAt: IN_AN_HOUR_MS })],
  ['as response.failed after response.created', { failAfterCreated: usageLimitError() }],
])('the user does not notice that the first account reached its usage limit (%s)', async (_how, fault) => {
  const { world, codex, first } = await setUp()
  first.next(fault)
  const run = await codex.exec('hello')
  expect(run).toMatchObject({ exitCode: 0, complaints: [], text: 'Hello from second@example.test' })
  expect(world.accountsUsed()).toEqual([FIRST.email, SECOND.email])

  const next = await codex.exec('hello again')
  expect(next).toMatchObject({ exitCode: 0, complaints: [], text: 'Hello from second@example.test' })
  expect(world.accountsUsed()).toEqual([FIRST.email, SECOND.email, SECOND.email]) // the limit is remembered
})

test('a conversation whose account reached its limit continues on another, without the reasoning it cannot read', async () => {
  const { world, codex, first } = await setUp()
  const begun = await codex.exec('hello')
  first.always(faults.usageLimit({ resetsAt: IN_AN_HOUR_MS }))
  const resumed = await codex.resume(begun.threadId, 'and again')
  expect(resumed).toMatchObject({ exitCode: 0, complaints: [], text: 'Hello from second@example.test' })

  expect(world.accountsUsed()).toEqual([FIRST.email, FIRST.email, SECOND.email])
  const [, refused, moved] = world.turns()
  expect(getItems(refused).map(({ type }) => type)).toContain('reasoning')
  expect(getItems(moved).map(({ type }) => type)).not.toContain('reasoning')
  expect(JSON.stringify(getItems(moved))).toContain('Hello from first@example.test')
})

test.each([
  ['ends early', { dropAfter: { events: 10, how: 'fin' } } as const],
  ['breaks', { dropAfter: { events: 10, how: 'reset' }, dripMs: 5 } as const], // a reset may overtake the last data
])('a stream that %s in the middle is retried by the client, on the same account', async (_how, fault) => {
  const { world, codex, first } = await setUp()
  first.next(fault)
  const run = await codex.exec('hello')
  expect(run).toMatchObject({ exitCode: 0, text: 'Hello from first@example.test' })
  expect(run.complaints).toEqual([expect.stringContaining('Reconnecting... 1/5')])

  expect(world.accountsUsed()).toEqual([FIRST.email, FIRST.email])
  const [broken, repeated] = world.turns()
  expect(broken).toMatchObject({ eventsSent: 10 })
  // What had arrived whole is kept by the client: only the account that encrypted it can take it back.
  expect(getItems(broken).map(({ type }) => type)).not.toContain('reasoning')
  expect(getItems(repeated).at(-1)).toMatchObject({ type: 'reasoning' })
})

test.each([
  ['over HTTP', false],
  ['on a socket', true],
])('a key over its weekly limit is rejected immediately, with its reset (%s)', async (_how, sockets) => {
  const { world } = await setUp()
  const limits = [{ limitType: 'requests', limitWindow: 'weekly', maxValue: 1 }]
  const { key } = await world.api<{ key: string }>('POST', '/api/api-keys/', { name: 'one request', limits })
  const codex = running.use(installCodex({ baseUrl: `${world.url}/backend-api/codex`, auth: { key }, sockets }))
  expect(await codex.exec('hello')).toMatchObject({ exitCode: 0 })
  const { exitCode, complaints } = await codex.exec('again')
  expect(exitCode).toBe(1)
  expect(complaints.join()).toContain('hit your usage limit')
  expect(complaints.join()).not.toContain('Reconnecting')
})

test('a model silent for longer than the header timeout is still served, after early headers and a keepalive', async () => {
  const { world, codex, first } = await setUp({ upstreamStreamTransport: 'http' })
  first.next({ delayHeadersMs: 11_000 })
  const run = await codex.exec('hello')
  expect(run).toMatchObject({ exitCode: 0, complaints: [], text: 'Hello from first@example.test' })
  expect(world.accountsUsed()).toEqual([FIRST.email])
})

test('an expired access token is refreshed once, unnoticed by the user', async () => {
  const { world, codex, first } = await setUp()
  const spent = first.refreshToken
  first.expireAccessToken()
  const run = await codex.exec('hello')
  expect(run).toMatchObject({ exitCode: 0, complaints: [], text: 'Hello from first@example.test' })

  const refreshes = world.upstream.requests.filter(({ path }) => path === '/oauth/token')
  expect(refreshes).toMatchObject([{ status: 200, body: { refresh_token: spent } }])
  expect(first.refreshToken).not.toBe(spent)
  expect(world.turns().at(-1)?.headers.authorization).toBe(`Bearer ${first.accessToken}`)
  expect(codex.sideCalls).toEqual([])
})

test('when every account is exhausted the user sees it after one request', async () => {
  const { world, codex, first, second } = await setUp()
  for (const account of [first, second]) account.always(faults.usageLimit({ resetsAt: IN_AN_HOUR_MS }))
  for (const prompt of ['hello', 'hello again']) {
    const run = await codex.exec(prompt)
    expect(run).toMatchObject({ exitCode: 1, text: '' })
    expect(new Set(run.complaints).size).toBe(1)
    expect(run.complaints[0]).toMatch(/^You.ve hit your usage limit\. Try again at [A-Z\d]/)
  }
  expect(world.accountsUsed()).toEqual([FIRST.email, SECOND.email]) // the second turn used no account

  const logged = async () => (await world.api<{ requests: unknown[] }>('GET', '/api/request-logs')).requests.length
  await until(async () => (await logged()) >= 2, world.output)
  expect(await logged()).toBe(2)
})

function usageLimitError() {
  return {
    code: 'usage_limit_reached',
    type: 'usage_limit_reached',
    message: 'The usage limit has been reached',
    resets_at: Math.floor(IN_AN_HOUR_MS / 1000),
  }
}
