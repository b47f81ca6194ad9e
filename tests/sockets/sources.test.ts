/**
 * Model sources have no sockets: a turn for one fails so that the client falls back to HTTP. Overflow uses the socket.
 */
import { describe, expect, test } from 'bun:test'
import { fetchCatalogs } from '../spec/catalog.ts'
import { SocketRefused } from '../support/socket-client.ts'
import { addSource } from '../support/source/add.ts'
import { ANSWER_TEXT } from '../support/source/answers.ts'
import { createSource } from '../support/source/app.ts'
import { faults } from '../support/upstream/faults.ts'
import {
  create,
  createFollowUp,
  expectCompleted,
  expectNothingLeft,
  getRefusal,
  idOf,
  leave,
  NATIVE,
  open,
  PUBLIC,
  prewarm,
  type SocketWorld,
  startSocketWorld,
} from './ground.ts'

const MODEL = 'llama-4'
const THREAD = { 'session-id': 'one', 'thread-id': 'one' }

/** A source on a port of its own. */
const withSource = async (service: SocketWorld, models: string[]) => {
  const source = createSource({ key: null, models })
  const server = source.listen()
  const { id } = await addSource(service, { baseUrl: `${server.url.origin}/v1`, apiKey: null, models })
  return { source, id, [Symbol.asyncDispose]: () => server.stop(true) }
}

describe.each([NATIVE, PUBLIC])('%s', (path) => {
  test.each([
    ['a turn', create('hello', { model: MODEL })],
    ['a prewarm', prewarm({ model: MODEL })],
  ])('%s for a source model gets a 503, and nothing is logged or called', async (_what, frame) => {
    await using service = await startSocketWorld()
    await using sourced = await withSource(service, [MODEL])
    const socket = await open(service, { path })
    expect(getRefusal(await socket.turn(frame))).toEqual([503, 'model_source_requires_http_transport'])
    expectCompleted(await socket.turn(create('hello')))
    expect(sourced.source.received).toEqual([])
    expect(await service.rows()).toHaveLength(1)
    await leave(service, socket)
    await expectNothingLeft(service)
  })
})

test('the next handshake of this conversation gets 426, those of others do not', async () => {
  await using service = await startSocketWorld()
  await using _sourced = await withSource(service, [MODEL])
  const socket = await open(service, { headers: THREAD })
  await socket.turn(create('hello', { model: MODEL }))
  const refused = await open(service, { headers: THREAD }).catch((err: unknown) => err)
  expect(refused).toBeInstanceOf(SocketRefused)
  expect((refused as SocketRefused).status).toBe(426) // as: shown above
  const other = await open(service, { headers: { 'session-id': 'two' } })
  expectCompleted(await other.turn(create('hello')))
  await leave(service, socket, other)
})

test('a key limited to sources gets the same for a model that accounts offer too', async () => {
  await using service = await startSocketWorld()
  await using sourced = await withSource(service, ['gpt-5.5'])
  const { key } = await service.key({ assignedSourceIds: [sourced.id] })
  const socket = await open(service, { headers: { authorization: `Bearer ${key}` } })
  expect(getRefusal(await socket.turn(create('hello')))).toEqual([503, 'model_source_requires_http_transport'])
  await leave(service, socket)
})

test('overflow is served over the socket, and the conversation continues with its whole text', async () => {
  await using service = await startSocketWorld()
  await using sourced = await withSource(service, ['gpt-5.5'])
  const { db, clock } = service.bindings
  await fetchCatalogs({ db, clock, members: service.members })
  await service.change({ overflowSourceId: sourced.id })
  const socket = await open(service)
  expectCompleted(await socket.turn(create('first')))
  const limit = faults.usageLimit({ resetsAt: Date.now() + 3_600_000 })
  for (const { sim } of service.members) sim.always(limit)
  const events = await socket.turn(create('second'))
  expectCompleted(events)
  expect(JSON.stringify(events)).toContain(ANSWER_TEXT)
  expect(sourced.source.last('/responses')?.body).toMatchObject({ model: 'gpt-5.5', stream: true })
  for (const name of ['type', 'generate', 'include'])
    expect(sourced.source.last('/responses')?.body).not.toHaveProperty(name)
  expect(getRefusal(await socket.turn(createFollowUp(idOf(events))))).toEqual([400, 'previous_response_not_found'])
  expectCompleted(await socket.turn(create('second, and all that was said')))
  expect((await service.rows()).map(({ overflow, transport }) => [overflow, transport])).toEqual([
    [false, 'websocket'],
    [true, 'websocket'],
    [true, 'websocket'],
  ])
  await leave(service, socket)
  await expectNothingLeft(service)
})
