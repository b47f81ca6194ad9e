/** Measurements of the browser: streams at a known pace, a socket and an upload, with their permissions and cleanup. */
import { expect, test } from 'bun:test'
import { EchoSession } from '../../src/ops/echo-session.ts'
import { advanceClockDuring, type TestApp, testApp } from '../support/app.ts'
import { ManualClock } from '../support/clock.ts'
import { people, problem, REMOTE } from '../support/people.ts'

/** What was sent, and how many ms after the start it arrived. */
const arrivals = async (app: TestApp, path: string): Promise<[text: string, ms: number][]> => {
  const response = await app.ask(`GET ${path}`)
  expect(response.headers.get('content-type')).toStartWith('text/event-stream')
  expect(response.headers.get('x-accel-buffering')).toBe('no')
  const startedAt = app.clock.now()
  const reader = response.body!.getReader()
  const seen: [string, number][] = []
  const reading = (async () => {
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read())
      seen.push([new TextDecoder().decode(chunk.value), app.clock.now() - startedAt])
  })()
  await advanceClockDuring(app, reading, 100, 2000)
  expect(app.clock.pending).toBe(0)
  return seen
}

test('five events arrive separately', async () => {
  expect(await arrivals(await testApp(), '/doctor/stream')).toEqual([
    ['data: 1\n\n', 0],
    ['data: 2\n\n', 200],
    ['data: 3\n\n', 400],
    ['data: 4\n\n', 600],
    ['data: end\n\n', 800],
  ])
})

test('a long stream is never silent for ten seconds, and ends after a minute and a half', async () => {
  const seen = await arrivals(await testApp(), '/doctor/stream?lasting=true')
  expect(seen.slice(0, 5).map(([, ms]) => ms)).toEqual([0, 200, 400, 600, 800])
  const pauses = seen.map(([, ms], n) => ms - (seen[n - 1]?.[1] ?? 0))
  expect(Math.max(...pauses)).toBeLessThan(10_000)
  expect(seen.at(-1)).toEqual(['data: end\n\n', 90_800])
  expect(seen.filter(([text]) => text.includes('end'))).toHaveLength(1)
})

test('a browser that disconnects cancels its timer', async () => {
  const app = await testApp()
  const response = await app.ask('GET /doctor/stream?lasting=true')
  const reader = response.body!.getReader()
  await reader.read()
  const waiting = reader.read()
  await reader.cancel()
  expect((await waiting).done).toBe(true)
  expect(app.clock.pending).toBe(0)
})

test('four streams per address are allowed, and ended ones make room', async () => {
  const app = await testApp()
  const open = () => app.ask('GET /doctor/stream?lasting=true')
  const streams = await Promise.all(Array.from({ length: 4 }, open))
  expect(await problem(await open())).toEqual([503, 'busy'])
  await streams[0]?.body?.cancel()
  streams.push(await open())
  expect(streams.at(-1)?.status).toBe(200)
  for (const { body } of streams) await body?.cancel()
  for (let n = 0; n < 9; n++) expect((await app.ask('HEAD /doctor/stream?lasting=true')).status).toBe(200)
  await arrivals(app, '/doctor/stream')
  await arrivals(app, '/doctor/stream')
})

test('the socket answers 426 when no upgrade arrived', async () => {
  expect((await (await testApp()).ask('GET /doctor/socket')).status).toBe(426)
})

test('a socket echoes one message of at most a kibibyte and closes; a silent one closes after five seconds', async () => {
  const clock = new ManualClock()
  const done: unknown[] = []
  const ws = { send: (text: string) => done.push(text), close: (code?: number) => void done.push(code) }
  const silent = new EchoSession(clock)
  silent.opened(ws)
  await clock.advance('5s')
  expect(done.splice(0)).toEqual([1000])
  const heard = new EchoSession(clock)
  heard.opened(ws)
  heard.received(`start${'x'.repeat(2000)}`)
  heard.closed()
  expect(done).toEqual([`start${'x'.repeat(1019)}`, 1000])
  expect(clock.pending).toBe(0)
})

const MIB = 1024 * 1024

/** Sends nothing of itself; `push` sends a MiB, `end` ends it and `fail` breaks it off. */
const slowBody = () => {
  let source: ReadableStreamDefaultController<Uint8Array> | undefined
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      source = controller
    },
  })
  return {
    body,
    push: () => source?.enqueue(new Uint8Array(MIB)),
    end: () => source?.close(),
    fail: () => source?.error(new DOMException('The connection was closed.', 'AbortError')),
  }
}

test('an upload is counted, whatever its content, and reports whether the header with underscores arrived', async () => {
  const app = await testApp()
  const answer = async (ask: Parameters<TestApp['ask']>[1]) => (await app.ask('POST /doctor/upload', ask)).json()
  const body = new Uint8Array(2 * MIB + 1)
  expect(await answer({ body, headers: { x_sluice_probe: '1' } })).toEqual({ bytes: 2 * MIB + 1, underscore: true })
  expect(await answer({ body, headers: { 'x-sluice-probe': '1' } })).toEqual({ bytes: 2 * MIB + 1, underscore: false })
  expect(await answer({ body: '{' })).toEqual({ bytes: 1, underscore: false })
  expect(await answer({})).toEqual({ bytes: 0, underscore: false })
  expect(app.bindings.bodies.heldBytes).toBe(0)
})

test('more than 8 MiB is rejected: unread when declared, otherwise as soon as the limit is exceeded', async () => {
  const app = await testApp()
  const whole = await app.ask('POST /doctor/upload', { body: new Uint8Array(8 * MIB) })
  expect(await whole.json()).toMatchObject({ bytes: 8 * MIB })
  const declared = slowBody()
  const headers = { 'content-length': String(8 * MIB + 1) }
  expect(await problem(await app.ask('POST /doctor/upload', { body: declared.body, headers }))).toEqual([
    413,
    'payload_too_large',
  ])
  const counted = slowBody()
  for (let n = 0; n < 9; n++) counted.push()
  expect(await problem(await app.ask('POST /doctor/upload', { body: counted.body }))).toEqual([
    413,
    'payload_too_large',
  ])
})

test('an upload from another site is rejected', async () => {
  const from = async (headers: Record<string, string>) =>
    problem(await (await testApp()).ask('POST /doctor/upload', { body: 'x', headers }))
  const refused: [number, string] = [403, 'cross_site_request_rejected']
  expect(await from({ 'sec-fetch-site': 'cross-site' })).toEqual(refused)
  expect(await from({ origin: 'https://elsewhere.example' })).toEqual(refused)
  expect(await from({ origin: 'http://localhost:2455', 'sec-fetch-site': 'same-origin' })).toEqual([200, null])
})

test('uploads share the four places of an address, and one that ends or is aborted makes room', async () => {
  const app = await testApp()
  const seats = () => app.bindings.seats.taken('measure')
  const begin = () => {
    const sending = slowBody()
    return { ...sending, answer: app.ask('POST /doctor/upload', { body: sending.body }) }
  }
  const stream = await app.ask('GET /doctor/stream?lasting=true')
  const [first, second, third] = [begin(), begin(), begin()] as const
  await app.clock.advance(0)
  expect(seats()).toBe(4)
  expect(await problem(await app.ask('POST /doctor/upload', { body: 'x' }))).toEqual([503, 'busy'])
  first.push()
  first.fail()
  expect((await first.answer).status).toBeGreaterThanOrEqual(400)
  expect(seats()).toBe(3)
  for (let n = 0; n < 9; n++) second.push()
  expect((await second.answer).status).toBe(413)
  expect(seats()).toBe(2)
  third.end()
  expect(await (await third.answer).json()).toEqual({ bytes: 0, underscore: false })
  await stream.body?.cancel()
  expect(seats()).toBe(0)
})

test('a slow upload keeps its place for a minute, and ends when its session ends', async () => {
  const app = await testApp()
  const begin = (who: Pick<TestApp, 'ask'> = app) => {
    const sending = slowBody()
    return { ...sending, answer: who.ask('POST /doctor/upload', { body: sending.body }) }
  }
  const dripping = begin()
  await app.clock.advance(0)
  dripping.push()
  await app.clock.advance('60s')
  expect(await (await dripping.answer).json()).toEqual({ bytes: MIB, underscore: false })
  const admin = await people(app).as('admin')
  const late = begin(admin)
  await app.clock.advance(0)
  await admin.ask('POST /api/dashboard-auth/logout')
  late.end()
  expect((await late.answer).status).toBe(401)
  expect(app.bindings.seats.taken('measure')).toBe(0)
})

test('require access to the full doctor, or permission to create and test keys', async () => {
  const app = await testApp({ accounts: 0 })
  const { as } = people(app)
  const statuses = async (who: Pick<TestApp, 'ask'>) => {
    const answers = await Promise.all(
      ['GET /doctor/stream', 'GET /doctor/socket', 'POST /doctor/upload'].map((route) => who.ask(route)),
    )
    for (const { body } of answers) await body?.cancel()
    return answers.map(({ status }) => status)
  }
  expect(await statuses(await as('admin', { peer: REMOTE }))).toEqual([200, 426, 200])
  expect(await statuses(await as('operator', { peer: REMOTE }))).toEqual([200, 426, 200])
  expect(await statuses(await as('viewer', { peer: REMOTE }))).toEqual([403, 403, 403])
  expect(await statuses(await as('member', { peer: REMOTE }))).toEqual([403, 403, 403])
})
