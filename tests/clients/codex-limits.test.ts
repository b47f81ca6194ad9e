/** The limits that the real Codex CLI shows in `/status`: from each request, and from its usage endpoint. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { until } from '../support/until.ts'
import { installCodex } from './support/codex.ts'
import { startWorld, type World } from './support/world.ts'

setDefaultTimeout(120_000)

let world: World

const inHours = (hours: number) => Math.floor(Date.now() / 3_600_000 + hours) * 3_600_000
const usage = (fiveHour: number, weekly: number) => ({
  primary: { usedPercent: fiveHour, windowMinutes: 300, resetAt: inHours(3) },
  secondary: { usedPercent: weekly, windowMinutes: 10_080, resetAt: inHours(72) },
})

beforeAll(async () => {
  const accounts = [{ usage: usage(100, 90) }, { usage: usage(20, 10) }]
  world = await startWorld({ accounts })
  const answer = await fetch(`${world.url}/api/fleet/refresh`, {
    method: 'POST',
    headers: { authorization: `Bearer ${world.key}` },
  })
  expect(await answer.json()).toMatchObject({ ok: true, attemptedCount: 2 })
})

afterAll(() => world[Symbol.asyncDispose]())

const POOL = {
  primary: { usedPercent: 60, windowDurationMins: 300, resetsAt: expect.any(Number) },
  secondary: { usedPercent: 50, windowDurationMins: 10_080, resetsAt: expect.any(Number) },
}

interface Logged {
  requests: { transport: string }[]
}

describe.each([false, true])('sockets %p', (sockets) => {
  test('a request reports the limits of the pool, without a plan', async () => {
    await using codex = installCodex({
      baseUrl: `${world.url}/backend-api/codex`,
      auth: { key: world.key },
      sockets,
    })
    await using server = await codex.appServer()
    const thread = await server.startThread()
    expect(await thread.say('hello')).toMatchObject({ status: 'completed', complaints: [] })
    await until(
      () => server.limits() !== null,
      () => server.stderr(),
    )
    expect(server.limits()).toMatchObject({ ...POOL, planType: null })
    const transports = async () =>
      (await world.api<Logged>('GET', '/api/request-logs')).requests.map((row) => row.transport)
    await until(async () => (await transports()).includes(sockets ? 'websocket' : 'http'), world.output)
    expect((await transports()).includes('websocket')).toBe(sockets)
  })
})

describe.each(['/backend-api', ''])('signed in with an account of the pool, chatgpt_base_url at %p', (path) => {
  test('the client reads the usage of the pool, although its own account is used up', async () => {
    await using codex = installCodex({
      baseUrl: `${world.url}/backend-api/codex`,
      auth: { chatGptLogin: world.upstream.accounts[0]!.authJson() },
      chatgptBaseUrl: `${world.url}${path}`,
    })
    await using server = await codex.appServer()
    expect(await server.readLimits()).toMatchObject({ ...POOL, planType: 'plus' })
  })
})
