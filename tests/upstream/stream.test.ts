/** A response over HTTP after its terminal event. */
import { expect, test } from 'bun:test'
import { SseStream } from '../../src/upstream/stream.ts'
import { ManualClock } from '../support/clock.ts'

type Source = ReadableStreamDefaultController<Uint8Array>

const last = new TextEncoder().encode('data: {"type":"response.completed"}\n\n')

/** A stream whose terminal event has been read, drained; `pulls` counts the reads since then. */
const drained = async (pull: (source: Source, pulls: number) => void = () => {}) => {
  const clock = new ManualClock()
  const seen = { pulls: 0, cancelled: false }
  let source: Source | null = null
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        source = controller
        controller.enqueue(last)
      },
      pull: (controller) => pull(controller, ++seen.pulls),
      cancel: () => {
        seen.cancelled = true
      },
    },
    { highWaterMark: 0 },
  )
  const stream = new SseStream(body, clock)
  await stream.read()
  stream.drain()
  return { clock, seen, end: () => source?.close() }
}

test('an end that comes by itself is awaited without a read', async () => {
  const { clock, seen, end } = await drained()
  await clock.advance(20)
  end()
  await clock.advance(0)
  expect([clock.pending, seen]).toEqual([0, { pulls: 0, cancelled: false }])
})

test('data instead of the end is read, and the end after it keeps the connection', async () => {
  const { clock, seen } = await drained((source, pulls) => (pulls === 1 ? source.enqueue(last) : source.close()))
  await clock.advance(49)
  expect(seen.pulls).toBe(0)
  await clock.advance(1)
  expect([clock.pending, seen]).toEqual([0, { pulls: 2, cancelled: false }])
})

test.each([
  ['continues sending', (source: Source) => source.enqueue(last), 50],
  ['stays silent', () => {}, 1050],
])('an upstream that %s is cut off', async (_, pull, afterMs) => {
  const { clock, seen } = await drained(pull)
  await clock.advance(afterMs - 1)
  expect(seen.cancelled).toBe(false)
  await clock.advance(1)
  expect([clock.pending, seen.cancelled]).toEqual([0, true])
})

test('an end that has arrived is not awaited', async () => {
  const clock = new ManualClock()
  const stream = new SseStream(new Response(last).body!, clock)
  await stream.read()
  stream.drain()
  expect(clock.pending).toBe(0)
})
