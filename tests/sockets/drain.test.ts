/** Shutdown: idle sockets are closed, busy ones after their turn, and a turn that is cut off gets an error. */
import { describe, expect, test } from 'bun:test'
import { AppError } from '../../src/errors.ts'
import { SocketRefused } from '../support/socket-client.ts'
import { until } from '../support/until.ts'
import {
  create,
  createFollowUp,
  expectCompleted,
  expectNothingLeft,
  getEnds,
  getTypes,
  idOf,
  NATIVE,
  open,
  PUBLIC,
  type SocketWorld,
  startSocketWorld,
} from './ground.ts'

const RESTARTING = 1012

/** The first thing the server does at shutdown. */
const drain = ({ bindings }: SocketWorld): void => {
  bindings.lifecycle.draining = true
  for (const socket of bindings.sockets) socket.drain()
}

/** What it does at the deadline. */
const cutOff = ({ bindings }: SocketWorld): void => {
  for (const turn of bindings.turns) turn.abort(new AppError('draining', { retryAfterSeconds: 5 }))
}

const ROUTES = [NATIVE, PUBLIC]

describe('draining', () => {
  test.each(ROUTES)('%s: idle sockets are closed immediately, before and after a turn', async (path) => {
    await using service = await startSocketWorld()
    const [fresh, used] = [await open(service, { path }), await open(service, { path })]
    expectCompleted(await used.turn(create()))
    drain(service)
    expect([(await fresh.closed).code, (await used.closed).code]).toEqual([RESTARTING, RESTARTING])
    await until(() => service.bindings.sockets.size === 0, 'all forgotten')
    await expectNothingLeft(service)
  })

  test.each(ROUTES)('%s: a running turn is completed, then its socket is closed', async (path) => {
    await using service = await startSocketWorld()
    service.members[0]?.sim.next({ dripMs: 10 })
    const socket = await open(service, { path })
    socket.send(create())
    await socket.next(({ type }) => type === 'response.created')
    drain(service)
    expect((await socket.closed).code).toBe(RESTARTING)
    expect(getEnds(getTypes(socket.events))).toEqual(['response.completed'])
    expect(await service.rows()).toMatchObject([{ status: 'ok' }])
    await expectNothingLeft(service)
  })

  test('a queued turn is rejected with a retry time', async () => {
    await using service = await startSocketWorld()
    service.members[0]?.sim.next({ dripMs: 10 })
    const socket = await open(service)
    socket.send(create('one'))
    socket.send(create('two'))
    await socket.next(({ type }) => type === 'response.created')
    drain(service)
    expect((await socket.closed).code).toBe(RESTARTING)
    expect(getEnds(getTypes(socket.events))).toEqual(['response.completed', 'error'])
    expect(socket.events.at(-1)).toMatchObject({
      status: 503,
      error: { code: 'draining' },
      headers: { 'retry-after': expect.stringMatching(/^\d+$/) },
    })
    expect(service.upstream.requests).toHaveLength(1)
    await expectNothingLeft(service)
  })

  test.each(ROUTES)('%s: new handshakes are rejected with 503 and a retry time', async (path) => {
    await using service = await startSocketWorld()
    drain(service)
    const refusal = await open(service, { path }).catch((error: unknown) => error)
    expect(refusal).toBeInstanceOf(SocketRefused)
    expect(refusal).toMatchObject({ status: 503, headers: { 'retry-after': expect.stringMatching(/^\d+$/) } })
  })

  test('a turn cut off before its first event gets one error frame, then the close', async () => {
    await using service = await startSocketWorld()
    service.members[0]?.sim.next({ silence: { afterEvents: 1 } })
    const socket = await open(service)
    socket.send(create())
    await until(() => service.upstream.requests[0]?.eventsSent === 1, 'the upstream silent')
    drain(service)
    cutOff(service)
    expect((await socket.closed).code).toBe(RESTARTING)
    expect(socket.events).toMatchObject([
      { type: 'error', status: 503, error: { code: 'draining' }, headers: { 'retry-after': '5' } },
    ])
    expect(await service.rows()).toMatchObject([{ status: 'error', errorCode: 'draining', httpStatus: 503 }])
    await expectNothingLeft(service)
  })

  test.each(ROUTES)(
    '%s: a turn cut off after its first event gets one terminal event, then the close',
    async (path) => {
      await using service = await startSocketWorld()
      service.members[0]?.sim.next({ silence: { afterEvents: 4 } })
      const socket = await open(service, { path })
      socket.send(create())
      await socket.next(({ type }) => type === 'response.output_item.added')
      drain(service)
      cutOff(service)
      expect((await socket.closed).code).toBe(RESTARTING)
      expect(getEnds(getTypes(socket.events))).toEqual(['response.failed'])
      expect(socket.events.at(-1)).toMatchObject({ response: { status: 'failed', error: { code: 'draining' } } })
      expect(await service.rows()).toMatchObject([{ status: 'error', errorCode: 'draining' }])
      await expectNothingLeft(service)
    },
  )

  test('a chained turn that is cut off gets the end, not a missing response', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service)
    const first = await socket.turn(create())
    service.members[0]?.sim.next({ silence: { afterEvents: 1 } })
    socket.send(createFollowUp(idOf(first)))
    await until(() => service.upstream.requests[1]?.eventsSent === 1, 'the upstream silent')
    drain(service)
    cutOff(service)
    expect((await socket.closed).code).toBe(RESTARTING)
    expect(socket.events.at(-1)).toMatchObject({ status: 503, error: { code: 'draining' } })
    await expectNothingLeft(service)
  })
})
