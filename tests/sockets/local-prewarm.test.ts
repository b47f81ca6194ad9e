/** A prewarm answered by Sluice: it counts for no account, and its input reaches the next turn. */
import { expect, test } from 'bun:test'
import { HEALTHY } from '../../src/model/accounts/account-health.ts'
import { until } from '../support/until.ts'
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
  startSocketWorld,
} from './ground.ts'

const local = async (path = NATIVE, accounts = 1) => {
  const service = await startSocketWorld({ accounts })
  const socket = await open(service, { path, headers: { 'session-id': 'thread-1' } })
  await service.change({ upstreamStreamTransport: 'http' })
  return { service, socket, [Symbol.asyncDispose]: () => service.stop() }
}

test('does not affect the health or state of an account', async () => {
  await using session = await local()
  const { service, socket } = session
  const account = service.bindings.pool.all()[0]!
  const health = { ...HEALTHY, tier: 'probing' as const, errors: 1 }
  const state = { ...account.state, attempts: 2 }
  Object.assign(account, { health, state })
  for (let n = 0; n < 4; n++) expectCompleted(await socket.turn(prewarm()))
  expect([account.health, account.state]).toEqual([health, state])
  expect(service.upstream.requests).toEqual([])
  expectCompleted(await socket.turn(create()))
  expect([account.health.errors, account.state.attempts]).toEqual([0, 0])
  await leave(service, socket)
  await expectNothingLeft(service)
})

test('is not an attempt, belongs to no account, and makes none the owner of the conversation', async () => {
  await using session = await local(NATIVE, 2)
  const { service, socket } = session
  expectCompleted(await socket.turn(prewarm()))
  expect(await service.rows()).toMatchObject([{ kind: 'prewarm', status: 'ok', accountId: null, attempts: 0 }])
  expect(await service.attemptRows()).toEqual([])
  expect(service.bindings.affinity.counts()).toEqual({ conversation: 0, ciphertext: 0, file: 0 })
  expectCompleted(await socket.turn(create()))
  expect((await service.rows()).at(-1)).toMatchObject({ kind: 'normal', accountId: expect.any(String), attempts: 1 })
  expect(service.bindings.affinity.counts().conversation).toBe(1)
  await leave(service, socket)
  await expectNothingLeft(service)
})

test('one sent upstream is an attempt like any other', async () => {
  await using service = await startSocketWorld()
  const socket = await open(service, { headers: { 'session-id': 'thread-1' } })
  expectCompleted(await socket.turn(prewarm()))
  expect(await service.rows()).toMatchObject([{ kind: 'prewarm', accountId: service.members[0]?.id, attempts: 1 }])
  expect(service.bindings.affinity.counts().conversation).toBe(1)
  await leave(service, socket)
  await expectNothingLeft(service)
})

test('of a public client with its input as a text keeps that text', async () => {
  await using session = await local(PUBLIC)
  const { service, socket } = session
  const warm = await socket.turn(prewarm({ input: 'what it begins with' }))
  expectCompleted(warm)
  expectCompleted(await socket.turn(createFollowUp(idOf(warm), 'go')))
  const { input } = service.upstream.requests[0]!.body as { input: { content: { text: string }[] }[] } // as: what was sent
  expect(input.map(({ content }) => content[0]?.text)).toEqual(['what it begins with', 'go'])
  await leave(service, socket)
  await expectNothingLeft(service)
})

test('of a public client keeps its system messages, however the next turn is written', async () => {
  await using session = await local(PUBLIC)
  const { service, socket } = session
  const input = [{ role: 'system', content: 'You are a pirate.' }]
  const go = [{ role: 'user', content: [{ type: 'input_text', text: 'go' }] }]
  for (const next of [
    { input: 'go' },
    { input: go },
    { input: undefined, messages: [{ role: 'user', content: 'go' }] },
  ]) {
    const warm = await socket.turn(prewarm({ instructions: undefined, input }))
    expectCompleted(warm)
    expectCompleted(await socket.turn(createFollowUp(idOf(warm), '', { instructions: undefined, ...next })))
    const said = { role: 'developer', content: [{ type: 'input_text', text: 'You are a pirate.' }] }
    const sent = service.upstream.requests.at(-1)?.body as Record<string, unknown> // as: what was sent
    expect([sent.instructions, sent.input]).toEqual([undefined, [said, ...go]])
  }
  await leave(service, socket)
  await expectNothingLeft(service)
})

test.each([NATIVE, PUBLIC])('%s: prewarms that continue each other are kept up to 1 MiB together', async (path) => {
  await using session = await local(path)
  const { service, socket } = session
  const half = prewarm({ input: [{ role: 'user', content: 'w'.repeat(600_000) }] })
  const first = await socket.turn(half)
  expectCompleted(first)
  const second = await socket.turn({ ...half, previous_response_id: idOf(first) })
  expectCompleted(second)
  expect(getRefusal(await socket.turn(createFollowUp(idOf(second))))).toEqual([400, 'previous_response_not_found'])
  expect(service.upstream.requests).toEqual([])
  await leave(service, socket)
  await expectNothingLeft(service)
})

test.each([NATIVE, PUBLIC])('%s: a stored prewarm counts among the bodies in flight', async (path) => {
  await using session = await local(path)
  const { service, socket } = session
  const warm = await socket.turn(prewarm({ input: [{ role: 'user', content: 'w'.repeat(600_000) }] }))
  expectCompleted(warm)
  service.members[0]?.sim.next({ delayFirstEventMs: 20 })
  const turn = socket.turn(createFollowUp(idOf(warm)))
  await until(() => service.upstream.requests.length === 1, 'the turn upstream')
  expect(service.bindings.bodies.heldBytes).toBeGreaterThan(600_000)
  expectCompleted(await turn)
  await leave(service, socket)
  await expectNothingLeft(service)
})

const lite = { client_metadata: { ws_request_header_x_openai_internal_codex_responses_lite: 'true' } }

test.each([NATIVE, PUBLIC])('keeps its tools as they were written: %s', async (path) => {
  await using session = await local(path)
  const { service, socket } = session
  const tools =
    '{"type": "additional_tools", "role": "developer", "tools": [{"type": "custom", "name": "x", "b": {}, "2": {}, "1": 1e400}]}'
  const warm = await socket.turn(JSON.stringify(prewarm({ input: ['TOOLS'] })).replace('"TOOLS"', ` ${tools} `))
  expectCompleted(warm)
  expectCompleted(await socket.turn(createFollowUp(idOf(warm), 'go', lite)))
  const { bodyText } = service.upstream.requests[0]!
  expect(bodyText).toContain(tools)
  expect(JSON.parse(bodyText).input).toMatchObject([{ type: 'additional_tools' }, { role: 'user' }])
  await leave(service, socket)
  await expectNothingLeft(service)
})
