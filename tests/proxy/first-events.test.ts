/** How far a new stream is read before its first bytes are sent to the client. */
import { expect, test } from 'bun:test'
import type { LiveAccount } from '../../src/proxy/pool/live-account.ts'
import { readToCommit } from '../../src/proxy/turn/attempt-one.ts'
import type { Flow, FreshStream } from '../../src/proxy/turn/flow.ts'
import { newTurnLog, type Turn } from '../../src/proxy/turn/turn.ts'
import { FrameEvent } from '../../src/upstream/frame-event.ts'
import type { Batch, UpstreamStream } from '../../src/upstream/stream.ts'
import { testApp } from '../support/app.ts'

const settled = () => Bun.sleep(0)

/** A stream that answers each read with the next of `batches`, and counts the reads. */
const getStream = (batches: readonly (Batch | Promise<Batch>)[]) => {
  const asked = { times: 0 }
  const stream: UpstreamStream = {
    read: async () => (await batches[asked.times++]) ?? null,
    cancel: () => {},
    drain: () => {},
  }
  return { stream, asked }
}

const toAccount = (flow: Flow) => accounts.get(flow.accountId ?? '')!
const accounts = new Map<string, LiveAccount>()

const toFlow = async (stream: UpstreamStream): Promise<Flow> => {
  const { proxyDeps } = (await testApp()).bindings
  const account = proxyDeps.pool.all()[0]!
  accounts.set(account.id, account)
  const lease = { account, release: () => {} }
  const settings = { streamIdleTimeoutSeconds: 1, streamTimeoutSeconds: 1000 }
  const turn = { signal: new AbortController().signal, arrivedAt: 0, log: newTurnLog(), body: null, settings }
  const fresh = { lease, stream, controller: new AbortController(), headers: {}, accessToken: 'at' }
  return readToCommit(proxyDeps, turn as unknown as Turn, fresh as unknown as FreshStream) // as: no more of them is read
}

const event = (type: string, more: object = {}) => new FrameEvent(JSON.stringify({ type, ...more }))
const delta = event('response.output_text.delta', { delta: 'x' })
const completed = event('response.completed', { response: { id: 'resp_1' } })
const getTypes = (batch: Batch | null) => batch?.map(({ type }) => type)

test('events without content are held up to 64 KiB, then sent unchanged', async () => {
  const held = event('response.in_progress', { padding: 'x'.repeat(40 * 1024) })
  const { stream, asked } = getStream([[held], [held], [held], Promise.withResolvers<Batch>().promise])
  const flow = await toFlow(stream)
  expect(flow.first()?.length).toBe(3)
  expect(asked.times).toBe(4) // the last is what comes behind them
})

test('events that have arrived with the first events are sent with them', async () => {
  const { stream, asked } = getStream([[delta], [delta, completed]])
  const flow = await toFlow(stream)
  await settled()
  expect(getTypes(flow.first())).toEqual([delta.type, delta.type, completed.type])
  expect([flow.meter.deltas, flow.end?.status, asked.times]).toEqual([2, 'ok', 2])
  expect(await flow.next()).toBeNull()
})

test('later events follow them, and are pulled once', async () => {
  const { promise, resolve } = Promise.withResolvers<Batch>()
  const { stream, asked } = getStream([[delta], promise])
  const flow = await toFlow(stream)
  await settled()
  expect(getTypes(flow.first())).toEqual([delta.type])
  const next = flow.next()
  resolve([completed])
  expect(getTypes(await next)).toEqual([completed.type])
  expect(asked.times).toBe(2)
})

test('buffered events not taken with the first events are not lost', async () => {
  const { promise, resolve } = Promise.withResolvers<Batch>()
  const { stream, asked } = getStream([[delta], promise, [completed]])
  const flow = await toFlow(stream)
  flow.first()
  resolve([delta])
  await settled()
  expect(getTypes(await flow.next())).toEqual([delta.type])
  expect(getTypes(await flow.next())).toEqual([completed.type])
  expect([flow.meter.deltas, asked.times]).toEqual([2, 3])
})

test('a stream that breaks after its first events delivers them first', async () => {
  const { stream } = getStream([[delta], Promise.reject(new Error('reset'))])
  const flow = await toFlow(stream)
  await settled()
  expect(getTypes(flow.first())).toEqual([delta.type])
  expect(async () => await flow.next()).toThrow()
})

test('nothing is pulled after a terminal event', async () => {
  const { stream, asked } = getStream([[delta, completed], [delta]])
  const flow = await toFlow(stream)
  await settled()
  expect(getTypes(flow.first())).toEqual([delta.type, completed.type])
  expect(asked.times).toBe(1)
})

test('a slow client does not count as upstream silence, a missing event does', async () => {
  const { promise, resolve } = Promise.withResolvers<Batch>()
  const [waiting, silent] = await Promise.all([
    toFlow(getStream([[delta], promise]).stream),
    toFlow(getStream([[delta], promise]).stream),
  ])
  waiting.first()
  silent.beat(2000)
  expect(silent.end?.error?.code).toBe('upstream_timeout')
  resolve([delta])
  await settled()
  waiting.beat(2000)
  expect(waiting.end).toBeNull()
})

test('a stream that ends exactly when it times out charges no account', async () => {
  const flow = await toFlow(getStream([[delta], new Promise<Batch>(() => {})]).stream)
  flow.first()
  flow.cancel()
  flow.beat(2000)
  expect([flow.end?.status, toAccount(flow).health.errors]).toEqual(['cancelled', 0])
})
