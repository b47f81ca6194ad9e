/** Frames that are too large, and clients that read slowly: nothing is lost, and memory is bounded. */
import { describe, expect, test } from 'bun:test'
import type { SocketEvent } from '../support/socket-client.ts'
import { until, untilUnchanged } from '../support/until.ts'
import { answers } from '../support/upstream/script.ts'
import {
  create,
  createFollowUp,
  expectCompleted,
  expectNothingLeft,
  getRefusal,
  getTypes,
  idOf,
  leave,
  open,
  startSocketWorld,
} from './ground.ts'

const MIB = 1024 * 1024

describe('large frames', () => {
  test('between 16 and 128 MiB are sent upstream by HTTP, whatever the setting', async () => {
    await using service = await startSocketWorld({ settings: { upstreamStreamTransport: 'websocket' } })
    const socket = await open(service)
    const id = idOf(await socket.turn(create()))
    const text = 'x'.repeat(17 * MIB)
    const large = await socket.turn(create(text))
    expectCompleted(large)
    expect((await service.rows()).map(({ upstreamTransport }) => upstreamTransport)).toEqual(['websocket', 'http'])
    expect(service.upstream.requests[1]?.bodyText.length).toBeGreaterThan(17 * MIB)
    expect(getRefusal(await socket.turn(createFollowUp(idOf(large))))).toEqual([400, 'previous_response_not_found'])
    expectCompleted(await socket.turn(createFollowUp(id)))
    expect(service.upstream.handshakes).toHaveLength(1)
    await leave(service, socket)
    await expectNothingLeft(service)
  }, 120_000)

  test('above 16 MiB that continue a response are requested in full immediately: nothing is sent upstream, nothing fails', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service)
    const id = idOf(await socket.turn(create()))
    expect(getRefusal(await socket.turn(createFollowUp(id, 'x'.repeat(17 * MIB))))).toEqual([
      400,
      'previous_response_not_found',
    ])
    expect(await service.rows()).toMatchObject([{ status: 'ok' }])
    expectCompleted(await socket.turn(createFollowUp(id)))
    await leave(service, socket)
    await expectNothingLeft(service)
  }, 120_000)

  test('above 128 MiB closes with 1009', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service)
    socket.send('x'.repeat(128 * MIB + 1))
    expect((await socket.closed).code).toBe(1009)
    await until(() => service.bindings.sockets.size === 0, 'the session over')
    await expectNothingLeft(service)
  }, 120_000)

  test('of very many values are rejected without being parsed, and the socket stays open', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service)
    const crowded = `{"type":"response.create","model":"gpt-5.5","input":[${'{},'.repeat(600_000)}{}]}`
    expect(getRefusal(await socket.turn(crowded))).toEqual([400, 'invalid_request_error'])
    expect(service.upstream.requests).toEqual([])
    expectCompleted(await socket.turn(create()))
    await leave(service, socket)
    await expectNothingLeft(service)
  }, 120_000)

  test('together over the budget: busy, the socket stays open, and room becomes free again', async () => {
    await using service = await startSocketWorld({ settings: { inFlightBodyMiB: 16 } })
    // On a slow machine the second frame would be seen while it arrives, which ends its socket (arriving-frames.test.ts).
    service.bindings.arrivingFrames.watch = () => ({ delivered: () => {}, control: () => {}, stop: () => {} })
    service.members[0]?.sim.next({ silence: { afterEvents: 1 } })
    const [holder, other] = [await open(service), await open(service)]
    holder.send(create('x'.repeat(10 * MIB)))
    await until(() => service.upstream.requests.length === 1, 'the first upstream, where it gets the silence')
    const events = await other.turn(create('x'.repeat(10 * MIB)))
    expect(getRefusal(events)).toEqual([503, 'busy'])
    expect(events[0]).toMatchObject({ headers: { 'retry-after': expect.any(String) } })
    holder.terminate()
    await until(() => service.bindings.bodies.heldBytes === 0, 'the first gone')
    expectCompleted(await other.turn(create('x'.repeat(10 * MIB))))
    await leave(service, other)
    await expectNothingLeft(service)
  }, 120_000)
})

describe('a client that stops reading for a while', () => {
  for (const upstreamStreamTransport of ['http', 'websocket'] as const)
    test(`gets everything, in order, and is not buffered for (${upstreamStreamTransport} upstream)`, async () => {
      await using service = await startSocketWorld()
      const COUNT = 4000
      const BYTES = 16 * 1024
      service.upstream.script(() => answers.bulk(COUNT, BYTES, { perChunk: 8 }))
      const socket = await open(service)
      await service.change({ upstreamStreamTransport })
      socket.send(create())
      await socket.next(({ type }) => type === 'response.output_text.delta')
      socket.pause()
      const sent = () => service.upstream.requests[0]?.eventsSent ?? 0
      await untilUnchanged(sent)
      // Ours, theirs and the kernel's buffers hold the rest: far less than the answer.
      expect(sent()).toBeLessThan((COUNT * 3) / 4)
      socket.resume()
      await socket.next(({ type }) => type === 'response.completed')
      expect(getNumbers(socket.events)).toEqual(Array.from({ length: socket.events.length }, (_, n) => n))
      expect(getTypes(socket.events).filter((type) => type === 'response.output_text.delta')).toHaveLength(COUNT)
      expectCompleted(await socket.turn(create('again')))
      await leave(service, socket)
      await expectNothingLeft(service)
    }, 120_000)

  test('and disconnects instead of reading on: the upstream is released', async () => {
    await using service = await startSocketWorld()
    service.upstream.script(() => answers.bulk(4000, 16 * 1024, { perChunk: 8 }))
    const socket = await open(service)
    socket.send(create())
    await socket.next(({ type }) => type === 'response.output_text.delta')
    socket.pause()
    await untilUnchanged(() => service.upstream.requests[0]?.eventsSent ?? 0)
    await leave(service, socket)
    await expectNothingLeft(service)
    expect(await service.rows()).toMatchObject([{ status: 'cancelled' }])
  }, 120_000)
})

/** Keepalives have no number. */
const getNumbers = (events: readonly SocketEvent[]) => events.map(({ sequence_number }) => sequence_number)
