/** What a browser measures on its way here: a stream at a known pace, and what became of a handshake. */
import { expect, test } from 'bun:test'
import { eventsOf, type TestApp, testApp, whileTimePasses } from '../support/app.ts'
import { problem } from '../support/people.ts'

const ID = '12345678-9'
const stream = (app: TestApp, id = ID) => app.ask(`GET /path-test/stream?id=${id}`)
const shake = (app: TestApp, headers: Record<string, string>, id = ID) =>
  app.ask(`GET /path-test/socket?id=${id}`, { headers })

test('events come at the pace they name, the last after a minute and a half, and nothing is left', async () => {
  const app = testApp()
  const response = await stream(app)
  expect(response.headers.get('content-type')).toStartWith('text/event-stream')
  expect(response.headers.get('x-accel-buffering')).toBe('no')
  const startedAt = app.clock.now()
  const reader = response.body!.getReader()
  const seen: [sentAtMs: number, arrivedMs: number][] = []
  const reading = (async () => {
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      const { atMs } = JSON.parse(new TextDecoder().decode(chunk.value).slice(6)) as { atMs: number }
      seen.push([atMs, app.clock.now() - startedAt])
    }
  })()
  await whileTimePasses(app, reading, 250, 500)
  expect(seen.slice(0, 4).map(([sent]) => sent)).toEqual([0, 250, 500, 750])
  expect(seen.at(-1)?.[0]).toBe(90_000)
  expect(seen.every(([sent, arrived]) => Math.abs(sent - arrived) <= 250)).toBe(true)
  expect(app.clock.pending).toBe(0)
})

test.each([
  ['as it was sent', { upgrade: 'websocket', connection: 'Upgrade' }, true],
  ['without its Upgrade header', {}, false],
])('a handshake that arrives %s is told on the stream', async (_, headers, upgrade) => {
  const app = testApp()
  const response = await stream(app)
  expect((await shake(app, headers)).status).toBe(426)
  expect((await shake(app, headers, 'another-id')).status).toBe(426)
  const events = (await whileTimePasses(app, eventsOf(response), 1000)) as { upgrade?: boolean }[]
  expect(events.flatMap((event) => event.upgrade ?? [])).toEqual([upgrade])
})

test('a browser that leaves takes its timer along', async () => {
  const app = testApp()
  const response = await stream(app)
  await response.body?.cancel()
  expect(app.clock.pending).toBe(0)
})

test('it is for those who see the dashboard, and not without end', async () => {
  const app = testApp()
  expect((await app.ask(`GET /path-test/stream?id=${ID}`, { peer: '192.0.2.7' })).status).toBe(401)
  expect(await problem(await stream(app, 'a'))).toEqual([422, 'validation_error'])
  const open = await Promise.all(Array.from({ length: 32 }, (_, n) => stream(app, `watching-${n}`)))
  expect(await problem(await stream(app, 'one-too-many'))).toEqual([503, 'busy'])
  for (const response of open) await response.body?.cancel()
  expect((await stream(app)).status).toBe(200)
})
