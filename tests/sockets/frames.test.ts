/** Client frames: invalid ones, queued turns, and cancelled turns. */
import { describe, expect, test } from 'bun:test'
import { until } from '../support/until.ts'
import {
  create,
  createFollowUp,
  expectCompleted,
  expectNothingLeft,
  getEnds,
  getRefusal,
  getTypes,
  idOf,
  leave,
  NATIVE,
  open,
  PUBLIC,
  prewarm,
  startSocketWorld,
} from './ground.ts'

const ROUTES = [NATIVE, PUBLIC]

const BAD_FRAMES: [name: string, frame: string | Uint8Array, code: string][] = [
  ['no JSON', '{"type":', 'malformed_json'],
  ['an empty frame', '', 'malformed_json'],
  ['no object', '"response.create"', 'invalid_request_error'],
  ['null', 'null', 'invalid_request_error'],
  ['a list', '[{"type":"response.create"}]', 'invalid_request_error'],
  ['no type', '{"model":"gpt-5.5"}', 'invalid_request_error'],
  ['an unknown type', '{"type":"response.delete"}', 'invalid_request_error'],
  ['a type that is no text', '{"type":7}', 'invalid_request_error'],
  ['a binary frame', new TextEncoder().encode(JSON.stringify(create())), 'invalid_request_error'],
  ['a previous response that is no text', JSON.stringify(createFollowUp(7 as never)), 'invalid_request_error'], // as: it is wrong
  ['a previous response with an invalid id', JSON.stringify(createFollowUp('r'.repeat(513))), 'invalid_request_error'],
  ['a prewarm mark that is no boolean', JSON.stringify(create('x', { generate: 'no' })), 'invalid_request_error'],
  ['no model', JSON.stringify(create('x', { model: undefined })), 'invalid_request_error'],
]

describe('an invalid frame gets an error frame, and the socket stays open', () => {
  for (const path of ROUTES)
    test.each(BAD_FRAMES)(`${path}: %s`, async (_name, frame, code) => {
      await using service = await startSocketWorld()
      const socket = await open(service, { path })
      expect(getRefusal(await socket.turn(frame))).toEqual([400, code])
      expectCompleted(await socket.turn(create()))
      expect(service.upstream.requests).toHaveLength(1)
      await leave(service, socket)
      await expectNothingLeft(service)
    })

  test('in the middle of a turn it does not disturb the turn', async () => {
    await using service = await startSocketWorld()
    service.members[0]?.sim.next({ dripMs: 2 })
    const socket = await open(service)
    socket.send(create())
    await socket.next(({ type }) => type === 'response.created')
    socket.send('{')
    await socket.next(({ type }) => type === 'response.completed')
    expect(getEnds(getTypes(socket.events))).toEqual(['error', 'response.completed'])
    await leave(service, socket)
  })

  test('a frame for no turn is accepted without a response', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service)
    socket.send({ type: 'response.processed', response_id: 'resp_1' })
    socket.send({ type: 'response.interrupt' })
    expectCompleted(await socket.turn(create()))
    expect(socket.events[0]?.type).toBe('response.created')
    await leave(service, socket)
  })
})

describe('one turn at a time', () => {
  test('a second create waits, a third is rejected, the fourth is accepted once there is room', async () => {
    await using service = await startSocketWorld()
    service.members[0]?.sim.next({ dripMs: 5 })
    const socket = await open(service)
    for (const text of ['one', 'two', 'three']) socket.send(create(text))
    const refusal = await socket.next(({ type }) => type === 'error')
    expect(refusal).toMatchObject({ status: 409, error: { code: 'turn_in_progress' } })
    for (let served = 0; served < 2; served++) await socket.next(({ type }) => type === 'response.completed')
    expectCompleted(await socket.turn(create('four')))
    expect(service.upstream.requests.map(({ bodyText }) => /one|two|three|four/.exec(bodyText)?.[0])).toEqual([
      'one',
      'two',
      'four',
    ])
    expect((await service.rows()).map(({ status }) => status)).toEqual(['ok', 'ok', 'ok'])
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('turns of one socket never mix', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service)
    socket.send(create('one'))
    socket.send(create('two'))
    for (let served = 0; served < 2; served++) await socket.next(({ type }) => type === 'response.completed')
    const types = getTypes(socket.events)
    const first = types.indexOf('response.completed')
    expect(types.slice(0, first + 1)).toEqual(types.slice(first + 1))
    await leave(service, socket)
  })

  test('a client that disconnects with a turn waiting leaves nothing', async () => {
    await using service = await startSocketWorld()
    service.members[0]?.sim.next({ silence: { afterEvents: 3 } })
    const socket = await open(service)
    socket.send(create('one'))
    socket.send(create('two'))
    await socket.next(({ type }) => type === 'response.output_item.added')
    expect(service.bindings.bodies.heldBytes).toBeGreaterThan(0)
    await leave(service, socket)
    await expectNothingLeft(service)
    expect((await service.rows()).map(({ status }) => status)).toEqual(['cancelled'])
    expect(service.upstream.requests).toHaveLength(1)
  })
})

describe('an interrupt', () => {
  test.each([
    ['before', 1],
    ['after', 4],
  ])('%s the first event ends the turn as incomplete, and releases the upstream', async (_when, afterEvents) => {
    await using service = await startSocketWorld()
    service.members[0]?.sim.next({ silence: { afterEvents } })
    const socket = await open(service)
    socket.send(create())
    await until(() => service.upstream.requests[0]?.eventsSent === afterEvents, 'the upstream silent')
    if (afterEvents > 2) await socket.next(({ type }) => type === 'response.output_item.added')
    socket.send({ type: 'response.interrupt' })
    const end = await socket.next(({ type }) => type === 'response.incomplete')
    expect(end).toMatchObject({ response: { status: 'incomplete', incomplete_details: { reason: 'interrupted' } } })
    await until(() => service.upstream.requests[0]?.aborted === true, 'the upstream let go')
    expect(await service.rows()).toMatchObject([{ status: 'cancelled', errorCode: null }])
    expectCompleted(await socket.turn(create()))
    expect(getEnds(getTypes(socket.events))).toEqual(['response.incomplete', 'response.completed'])
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('cancels only the running turn: the waiting one is served', async () => {
    await using service = await startSocketWorld()
    service.members[0]?.sim.next({ silence: { afterEvents: 4 } })
    const socket = await open(service)
    socket.send(create('one'))
    socket.send(create('two'))
    await socket.next(({ type }) => type === 'response.output_item.added')
    socket.send({ type: 'response.interrupt' })
    await socket.next(({ type }) => type === 'response.completed')
    expect(getEnds(getTypes(socket.events))).toEqual(['response.incomplete', 'response.completed'])
    expect((await service.rows()).map(({ status }) => status)).toEqual(['cancelled', 'ok'])
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('before the upstream has answered the handshake costs nothing', async () => {
    await using service = await startSocketWorld()
    service.members[0]?.sim.next({ on: 'handshake', delayHeadersMs: 60_000 })
    const socket = await open(service)
    socket.send(create())
    await until(() => service.upstream.handshakes.length === 1, 'the handshake under way')
    socket.send({ type: 'response.interrupt' })
    expect(getTypes([await socket.next()])).toEqual(['response.incomplete'])
    expect(await service.rows()).toMatchObject([{ status: 'cancelled', attempts: 1, inputTokens: null }])
    expectCompleted(await socket.turn(create()))
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('costs nothing when it cancels a prewarm', async () => {
    await using service = await startSocketWorld()
    service.members[0]?.sim.next({ silence: { afterEvents: 1 } })
    const socket = await open(service)
    socket.send(prewarm())
    await until(() => service.upstream.requests.length === 1, 'the prewarm upstream')
    socket.send({ type: 'response.interrupt' })
    await socket.next(({ type }) => type === 'response.incomplete')
    expect(await service.rows()).toMatchObject([
      { kind: 'prewarm', status: 'cancelled', inputTokens: null, costMicros: null },
    ])
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('sent twice, or after the end, has no further effect', async () => {
    await using service = await startSocketWorld()
    service.members[0]?.sim.next({ silence: { afterEvents: 4 } })
    const socket = await open(service)
    socket.send(create())
    await socket.next(({ type }) => type === 'response.output_item.added')
    for (let times = 0; times < 2; times++) socket.send({ type: 'response.interrupt' })
    await socket.next(({ type }) => type === 'response.incomplete')
    socket.send({ type: 'response.interrupt' })
    const events = await socket.turn(create())
    expectCompleted(events)
    expect(idOf(events)).toBeString()
    expect(getEnds(getTypes(socket.events))).toEqual(['response.incomplete', 'response.completed'])
    await leave(service, socket)
  })
})
