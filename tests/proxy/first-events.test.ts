/** Up to where a fresh stream is read before its first bytes go to the client. */
import { expect, test } from 'bun:test'
import type { LiveAccount } from '../../src/proxy/pool/live-account.ts'
import { type FreshStream, readToCommit } from '../../src/proxy/turn/first-events.ts'
import type { Flow } from '../../src/proxy/turn/flow.ts'
import { newTurnLog, type Turn } from '../../src/proxy/turn/turn.ts'
import { FrameEvent } from '../../src/upstream/frame-event.ts'
import type { Batch, UpstreamStream } from '../../src/upstream/stream.ts'
import { testApp } from '../support/app.ts'

const settled = () => Bun.sleep(0)

/** A stream that answers each read with the next of `batches`, and how often it was asked. */
const streamOf = (batches: readonly (Batch | Promise<Batch>)[]) => {
  const asked = { times: 0 }
  const stream: UpstreamStream = {
    read: async () => (await batches[asked.times++]) ?? null,
    cancel: () => {},
    drain: () => {},
  }
  return { stream, asked }
}

const accountOf = (flow: Flow) => accounts.get(flow.accountId ?? '')!
const accounts = new Map<string, LiveAccount>()

const flowOf = (stream: UpstreamStream): Promise<Flow> => {
  const { plane } = testApp().bindings
  const account = plane.pool.all()[0]!
  accounts.set(account.id, account)
  const lease = { account, release: () => {} }
  const settings = { streamIdleTimeoutSeconds: 1, streamTimeoutSeconds: 1000 }
  const turn = { signal: new AbortController().signal, arrivedAt: 0, log: newTurnLog(), body: null, settings }
  const fresh = { lease, stream, controller: new AbortController(), headers: {}, accessToken: 'at' }
  return readToCommit(plane, turn as unknown as Turn, fresh as unknown as FreshStream) // as: no more of them is read
}

const event = (type: string, more: object = {}) => new FrameEvent(JSON.stringify({ type, ...more }))
const delta = event('response.output_text.delta', { delta: 'x' })
const completed = event('response.completed', { response: { id: 'resp_1' } })
const typesOf = (batch: Batch | null) => batch?.map(({ type }) => type)

test('events that say nothing yet are held up to 64 KiB, and then taken as they are', async () => {
  const held = event('response.in_progress', { padding: 'x'.repeat(40 * 1024) })
  const { stream, asked } = streamOf(Array(9).fill([held]))
  const flow = await flowOf(stream)
  expect(flow.first()?.length).toBe(3)
  expect(asked.times).toBe(4) // the last is what comes behind them
})

test('what has come by the time the first events leave, leaves with them', async () => {
  const { stream, asked } = streamOf([[delta], [delta, completed]])
  const flow = await flowOf(stream)
  await settled()
  expect(typesOf(flow.first())).toEqual([delta.type, delta.type, completed.type])
  expect([flow.meter.deltas, flow.end?.status, asked.times]).toEqual([2, 'ok', 2])
  expect(await flow.next()).toBeNull()
})

test('what comes later follows them, and is asked for once', async () => {
  const { promise, resolve } = Promise.withResolvers<Batch>()
  const { stream, asked } = streamOf([[delta], promise])
  const flow = await flowOf(stream)
  await settled()
  expect(typesOf(flow.first())).toEqual([delta.type])
  const next = flow.next()
  resolve([completed])
  expect(typesOf(await next)).toEqual([completed.type])
  expect(asked.times).toBe(2)
})

test('what came ahead and was not taken with the first events is not lost', async () => {
  const { promise, resolve } = Promise.withResolvers<Batch>()
  const { stream, asked } = streamOf([[delta], promise, [completed]])
  const flow = await flowOf(stream)
  flow.first()
  resolve([delta])
  await settled()
  expect(typesOf(await flow.next())).toEqual([delta.type])
  expect(typesOf(await flow.next())).toEqual([completed.type])
  expect([flow.meter.deltas, asked.times]).toEqual([2, 3])
})

test('a stream that breaks behind its first events shows them first', async () => {
  const { stream } = streamOf([[delta], Promise.reject(new Error('reset'))])
  const flow = await flowOf(stream)
  await settled()
  expect(typesOf(flow.first())).toEqual([delta.type])
  expect(async () => await flow.next()).toThrow()
})

test('behind a terminal event nothing is asked for', async () => {
  const { stream, asked } = streamOf([[delta, completed], [delta]])
  const flow = await flowOf(stream)
  await settled()
  expect(typesOf(flow.first())).toEqual([delta.type, completed.type])
  expect(asked.times).toBe(1)
})

test('what waits for a client that does not read is no silence of the upstream, what is asked for and does not come is', async () => {
  const { promise, resolve } = Promise.withResolvers<Batch>()
  const [waiting, silent] = await Promise.all([
    flowOf(streamOf([[delta], promise]).stream),
    flowOf(streamOf([[delta], promise]).stream),
  ])
  waiting.first()
  silent.beat(2000)
  expect(silent.end?.error?.code).toBe('upstream_timeout')
  resolve([delta])
  await settled()
  waiting.beat(2000)
  expect(waiting.end).toBeNull()
})

test('a flow that ended in the very beat that finds it silent charges nobody', async () => {
  const flow = await flowOf(streamOf([[delta], new Promise<Batch>(() => {})]).stream)
  flow.first()
  flow.cancel()
  flow.beat(2000)
  expect([flow.end?.status, accountOf(flow).health.errors]).toEqual(['cancelled', 0])
})
