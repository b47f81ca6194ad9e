/**
 * A conversation on sockets stays with the account that can read it, moves only if necessary, and survives a restart.
 */
import { describe, expect, test } from 'bun:test'
import { pauseAccount } from '../../src/model/accounts/accounts.ts'
import { codexBody } from '../support/app.ts'
import type { SocketEvent } from '../support/socket-client.ts'
import { until } from '../support/until.ts'
import { faults } from '../support/upstream/faults.ts'
import {
  ACTOR,
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
  type SocketWorld,
  startSocketWorld,
  write,
} from './ground.ts'

type Item = { type?: string; role?: string; encrypted_content?: string }

/** The items a turn produced, as the client hands them back when it sends a conversation in full. */
const getOutput = (events: readonly SocketEvent[]): Item[] =>
  events.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item as Item) // as: it has one

const asked = (text: string) => codexBody(text).input[0]!
const getInput = (body: unknown): Item[] => (body as { input: Item[] }).input
const typesIn = (body: unknown) => getInput(body).map(({ type, role }) => role ?? type)

/** Which member served each turn. */
const servedBy = async ({ rows, members }: SocketWorld) =>
  (await rows()).map(({ accountId }) => members.findIndex(({ id }) => id === accountId))

const THREAD = { 'session-id': 'thread-1' }

/** A conversation whose first turn was served by one of two accounts. */
const begun = async (path = NATIVE) => {
  const service = await startSocketWorld({ accounts: 2 })
  const socket = await open(service, { path, headers: THREAD })
  const events = await socket.turn(create('one'))
  expectCompleted(events)
  const owner = (await servedBy(service))[0] === 1 ? 1 : 0
  return {
    service,
    socket,
    id: idOf(events),
    history: [asked('one'), ...getOutput(events)],
    owner: service.members[owner]!,
    other: service.members[1 - owner]!,
    [Symbol.asyncDispose]: () => service.stop(),
  }
}

describe('encrypted content', () => {
  test.each([NATIVE, PUBLIC])(
    '%s: a full resend moves without unreadable reasoning, and the move is logged',
    async (path) => {
      await using conversation = await begun(path)
      const { service, socket, id, history, owner, other } = conversation
      expect(history.map(({ type }) => type)).toContain('reasoning')
      owner.sim.always(faults.usageLimit({ resetsAt: Date.now() + 3_600_000 }))
      expect(getRefusal(await socket.turn(createFollowUp(id, 'two')))).toEqual([400, 'previous_response_not_found'])
      const second = await socket.turn(create('', { input: [...history, asked('two')] }))
      expectCompleted(second)
      const sent = service.upstream.requests.at(-1)
      expect(sent?.account).toBe(other.sim.chatgptAccountId)
      expect(typesIn(sent?.body)).toEqual(['user', 'assistant', 'user'])
      expect((await service.rows()).at(-1)).toMatchObject({ moved: true, accountId: other.id, status: 'ok' })

      const whole = [...history, asked('two'), ...getOutput(second), asked('three')]
      expectCompleted(await socket.turn(create('', { input: whole })))
      const kept = getInput(service.upstream.requests.at(-1)?.body).filter(({ type }) => type === 'reasoning')
      expect(kept).toEqual(getOutput(second).filter(({ type }) => type === 'reasoning'))
      expect((await service.rows()).at(-1)).toMatchObject({ moved: false, accountId: other.id })
      await leave(service, socket)
      await expectNothingLeft(service)
    },
  )

  test('a full resend to the owner is sent unchanged, byte for byte', async () => {
    await using conversation = await begun()
    const { service, socket, history } = conversation
    const written = JSON.stringify(create('', { input: [...history, asked('two')] }), null, 1)
    expectCompleted(await socket.turn(written))
    expect(service.upstream.requests.at(-1)?.bodyText).toBe(written)
    await leave(service, socket)
  })

  test('a compacted conversation never moves: the error is about its owner', async () => {
    await using conversation = await begun()
    const { service, socket, owner } = conversation
    const compacted = await socket.turn(create('', { input: [asked('one'), { type: 'compaction_trigger' }] }))
    expectCompleted(compacted)
    const history = getOutput(compacted)
    expect(history.map(({ type }) => type)).toEqual(['compaction'])
    expect((await service.rows()).at(-1)).toMatchObject({ kind: 'compaction', status: 'ok' })
    await write(service, (tx) => pauseAccount(tx, owner.id, ACTOR))
    const frame = create('', { input: [...history, asked('two')] })
    expect(getRefusal(await socket.turn(frame))).toEqual([400, 'continuity_owner_unavailable'])
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('reasoning of an unknown owner is omitted once the account cannot read it', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service)
    const foreign = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'enc.elsewhere.1' }
    expectCompleted(await socket.turn(create('', { input: [asked('one'), foreign, asked('two')] })))
    expect(service.upstream.requests.map(({ body }) => typesIn(body).length)).toEqual([3, 2])
    expect(service.upstream.handshakes).toHaveLength(1)
    await leave(service, socket)
    await expectNothingLeft(service)
  })
})

describe('the same account', () => {
  test('serves a conversation that continues on another socket', async () => {
    await using conversation = await begun()
    const { service, socket, history } = conversation
    await leave(service, socket)
    for (let turn = 0; turn < 4; turn++) {
      const again = await open(service, { headers: THREAD })
      expectCompleted(await again.turn(create('', { input: [...history, asked('two')] })))
      await leave(service, again)
    }
    expect(new Set(await servedBy(service)).size).toBe(1)
    expect((await service.rows()).every(({ moved }) => !moved)).toBeTrue()
  })

  test('serves it over any transport: socket, then HTTP, then socket', async () => {
    await using conversation = await begun()
    const { service, socket, history } = conversation
    const { type: _, ...body } = create('', { input: [...history, asked('two')] })
    const headers = { ...THREAD, 'content-type': 'application/json', 'user-agent': 'test' }
    const response = await fetch(service.url + NATIVE, { method: 'POST', headers, body: JSON.stringify(body) })
    expect(await response.text()).toContain('response.completed')
    expectCompleted(await socket.turn(create('', { input: [...history, asked('three')] })))
    expect(new Set(await servedBy(service)).size).toBe(1)
    expect(
      service.upstream.requests.every(({ body }) => typesIn(body).length === 1 || typesIn(body).includes('reasoning')),
    ).toBeTrue()
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('serves it after a restart: the client reconnects and sends everything', async () => {
    await using conversation = await begun()
    const { service, socket, id, history } = conversation
    await service.restart()
    expect((await socket.closed).code).toBe(1012)
    for (let turn = 0; turn < 4; turn++) {
      const again = await open(service, { headers: THREAD })
      expect(getRefusal(await again.turn(createFollowUp(id)))).toEqual([400, 'previous_response_not_found'])
      expectCompleted(await again.turn(create('', { input: [...history, asked('two')] })))
      await leave(service, again)
    }
    expect(typesIn(service.upstream.requests.at(-1)?.body)).toContain('reasoning')
    expect(new Set((await servedBy(service)).filter((member) => member >= 0)).size).toBe(1)
    await expectNothingLeft(service)
  })

  test('is recognized by the turn state it issued, also after a restart', async () => {
    await using service = await startSocketWorld({ accounts: 3, settings: { routingStrategy: 'round_robin' } })
    const headers = { 'content-type': 'application/json', 'user-agent': 'test' }
    const body = JSON.stringify(codexBody())
    const response = await fetch(service.url + NATIVE, { method: 'POST', headers, body })
    await response.text()
    const turnState = response.headers.get('x-codex-turn-state') ?? ''
    await service.restart()
    for (let turn = 0; turn < 3; turn++) {
      const socket = await open(service, { headers: { 'x-codex-turn-state': turnState } })
      expectCompleted(await socket.turn(create()))
      await leave(service, socket)
    }
    expect(new Set(await servedBy(service)).size).toBe(1)
    await until(() => service.upstream.openSockets === 0, 'all closed')
    expect(service.upstream.oddities).toEqual([])
  })
})

test('a public client continues after reasoning without content', async () => {
  await using service = await startSocketWorld()
  const socket = await open(service, { path: PUBLIC })
  const message = { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hello' }] }
  const hollow = { type: 'reasoning', id: 'rs_0a1b', summary: [], encrypted_content: null }
  expectCompleted(await socket.turn(create('hello', { input: [message, hollow, message] })))
  expect(service.upstream.requests[0]?.body).toMatchObject({ input: [message, message] })
  await leave(service, socket)
  await expectNothingLeft(service)
})
