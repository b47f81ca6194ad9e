/**
 * Permissions from the handshake are checked again at every turn: a rejection is an error frame, and the socket stays
 * open.
 */
import { describe, expect, test } from 'bun:test'
import { rejectedClients } from '../../db/schema/rejections.ts'
import { systemRandom } from '../../src/lib/random.ts'
import { addEntry, removeEntry } from '../../src/model/firewall.ts'
import { deleteKey, updateKey } from '../../src/model/keys/api-keys.ts'
import type { SocketEvent } from '../support/socket-client.ts'
import {
  ACTOR,
  create,
  expectCompleted,
  expectNothingLeft,
  getLimits,
  getRefusal,
  leave,
  NATIVE,
  open,
  PUBLIC,
  type SocketWorld,
  startSocketWorld,
  write,
} from './ground.ts'

const ROUTES = [NATIVE, PUBLIC]
const DOING = { scope: 'all' as const, actor: ACTOR, random: systemRandom }

interface Change {
  name: string
  /** Between two turns. Returns how to undo it, if possible. */
  change: (service: SocketWorld, keyId: string) => Promise<(() => Promise<unknown>) | null>
  status: number
  code: string | Record<string, string>
}

const changes: Change[] = [
  {
    name: 'its key is disabled',
    change: async (service, keyId) => {
      const set = async (isActive: boolean) =>
        void (await write(service, (tx) => updateKey(tx, keyId, { isActive }, DOING)))
      await set(false)
      return () => set(true)
    },
    status: 401,
    code: 'invalid_api_key',
  },
  {
    name: 'its key is deleted',
    change: async (service, keyId) => {
      await write(service, (tx) => deleteKey(tx, keyId, DOING))
      return null
    },
    status: 401,
    code: 'invalid_api_key',
  },
  {
    name: 'its key has expired',
    change: async (service, keyId) => {
      const set = async (expiresAt: number | null) =>
        void (await write(service, (tx) => updateKey(tx, keyId, { expiresAt }, DOING)))
      await set(1)
      return () => set(null)
    },
    status: 401,
    code: 'invalid_api_key',
  },
  {
    name: 'the model is removed from its allowlist',
    change: async (service, keyId) => {
      const set = async (allowedModels: string[] | null) =>
        void (await write(service, (tx) => updateKey(tx, keyId, { allowedModels }, DOING)))
      await set(['another'])
      return () => set(null)
    },
    status: 0,
    code: { [NATIVE]: 'model_not_found', [PUBLIC]: 'model_not_allowed' },
  },
  {
    name: 'the firewall blocks its address',
    change: async (service) => {
      await write(service, (tx) => addEntry(tx, '192.0.2.1', ACTOR))
      return async () => void (await write(service, (tx) => removeEntry(tx, '192.0.2.1', ACTOR)))
    },
    status: 403,
    code: 'ip_forbidden',
  },
  {
    name: 'Sluice is at its limit of bodies',
    change: async ({ bindings }) => {
      bindings.lifecycle.maxTurns = 0
      return async () => {
        bindings.lifecycle.maxTurns = Number.POSITIVE_INFINITY
      }
    },
    status: 503,
    code: 'busy',
  },
]

describe('between two turns', () => {
  for (const path of ROUTES)
    test.each(changes)(`${path}: $name`, async ({ change, status, code }) => {
      await using service = await startSocketWorld({ settings: { apiKeyAuthEnabled: true } })
      const { key, row } = await service.key()
      const socket = await open(service, { path, headers: { authorization: `Bearer ${key}` } })
      expectCompleted(await socket.turn(create()))
      const undo = await change(service, row.id)
      const wanted: [unknown, unknown] =
        typeof code === 'string' ? [status, code] : [path === NATIVE ? 404 : 403, code[path]]
      expect(getRefusal(await socket.turn(create()))).toEqual(wanted)
      expect(service.upstream.requests).toHaveLength(1)
      expect(socket.isOpen).toBeTrue()
      await undo?.()
      if (undo) expectCompleted(await socket.turn(create()))
      await leave(service, socket)
      await expectNothingLeft(service)
    })

  test.each(ROUTES)('%s: key authentication is switched on', async (path) => {
    await using service = await startSocketWorld()
    const { key } = await service.key()
    const stranger = await open(service, { path })
    const holder = await open(service, { path, headers: { authorization: `Bearer ${key}` } })
    expectCompleted(await stranger.turn(create()))
    await service.change({ apiKeyAuthEnabled: true })
    expect(getRefusal(await stranger.turn(create()))).toEqual([401, 'invalid_api_key'])
    expectCompleted(await holder.turn(create()))
    expect((await service.rows()).map(({ keyId }) => keyId !== null)).toEqual([false, true])
    await service.change({ apiKeyAuthEnabled: false })
    expectCompleted(await stranger.turn(create()))
    await leave(service, stranger, holder)
  })
})

test('a running turn is not affected by changes since it began, the waiting one is', async () => {
  await using service = await startSocketWorld({ settings: { apiKeyAuthEnabled: true } })
  const { key, row } = await service.key()
  service.members[0]?.sim.next({ dripMs: 5 })
  const socket = await open(service, { headers: { authorization: `Bearer ${key}` } })
  socket.send(create('one'))
  socket.send(create('two'))
  await socket.next(({ type }) => type === 'response.created')
  await write(service, (tx) => updateKey(tx, row.id, { isActive: false }, DOING))
  await socket.next(({ type }) => type === 'response.completed')
  expect(await socket.next()).toMatchObject({ status: 401, error: { code: 'invalid_api_key' } })
  await leave(service, socket)
  await expectNothingLeft(service)
})

describe('limits', () => {
  const limits = [{ limitType: 'requests', limitWindow: 'daily', maxValue: 2, modelFilter: '' }] as const

  test.each(ROUTES)('%s: used up on the socket, with a retry time', async (path) => {
    await using service = await startSocketWorld({ settings: { apiKeyAuthEnabled: true } })
    const { key } = await service.key({ limits: [...limits] })
    const socket = await open(service, { path, headers: { authorization: `Bearer ${key}` } })
    for (let turn = 0; turn < 2; turn++) expectCompleted(await socket.turn(create()))
    const events = await socket.turn(create())
    expect(getRefusal(events)).toEqual([429, 'rate_limit_exceeded'])
    const { headers } = events[0] as SocketEvent & { headers?: Record<string, string> } // as: checked next
    expect(Number(headers?.['retry-after'])).toBeGreaterThanOrEqual(1)
    expect((await service.rows()).map(({ status, errorCode }) => errorCode ?? status)).toEqual([
      'ok',
      'ok',
      'rate_limit_exceeded',
    ])
    expect(getLimits(service, key)).toEqual({ requests: { settled: 2, reserved: 0 } })
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('a prewarm does not count', async () => {
    await using service = await startSocketWorld({ settings: { apiKeyAuthEnabled: true } })
    const { key } = await service.key({ limits: [...limits] })
    const socket = await open(service, { headers: { authorization: `Bearer ${key}` } })
    for (let turn = 0; turn < 4; turn++) expectCompleted(await socket.turn(create('warm', { generate: false })))
    expect(getLimits(service, key)).toEqual({ requests: { settled: 0, reserved: 0 } })
    await leave(service, socket)
  })
})

test('enforced values are inserted into native frames, and into public ones', async () => {
  await using service = await startSocketWorld({ settings: { apiKeyAuthEnabled: true } })
  const { key } = await service.key({ enforcedReasoningEffort: 'high' })
  for (const path of ROUTES) {
    const socket = await open(service, { path, headers: { authorization: `Bearer ${key}` } })
    expectCompleted(await socket.turn(create()))
    await leave(service, socket)
  }
  for (const { body } of service.upstream.requests) expect(body).toMatchObject({ reasoning: { effort: 'high' } })
  expect((await service.rows()).map(({ reasoningEffort }) => reasoningEffort)).toEqual(['high', 'high'])
})

describe('while keys are optional', () => {
  const limits = [{ limitType: 'requests', limitWindow: 'daily', maxValue: 1, modelFilter: '' }] as const

  test.each(ROUTES)('%s: a presented key applies to each turn of a socket', async (path) => {
    await using service = await startSocketWorld()
    const { key, row } = await service.key({ limits: [...limits], enforcedReasoningEffort: 'high' })
    const socket = await open(service, { path, headers: { authorization: `Bearer ${key}` } })
    expectCompleted(await socket.turn(create()))
    expect(getRefusal(await socket.turn(create()))).toEqual([429, 'rate_limit_exceeded'])
    await write(service, (tx) => updateKey(tx, row.id, { isActive: false }, DOING))
    expect(getRefusal(await socket.turn(create()))).toEqual([401, 'invalid_api_key'])
    expect((await service.rows()).map(({ keyId }) => keyId)).toEqual([row.id, row.id])
    expect(service.upstream.requests).toHaveLength(1)
    expect(service.upstream.requests[0]?.body).toMatchObject({ reasoning: { effort: 'high' } })
    await leave(service, socket)
  })

  test.each(ROUTES)('%s: any other string is served and logged as an unrecognized key', async (path) => {
    await using service = await startSocketWorld()
    const socket = await open(service, { path, headers: { authorization: 'Bearer sk-of-something-else' } })
    expectCompleted(await socket.turn(create()))
    expect(await service.rows()).toMatchObject([{ keyId: null, unrecognizedKey: true }])
    await leave(service, socket)
  })
})

describe('rejected clients are logged', () => {
  const rejected = async ({ bindings }: SocketWorld) => {
    await bindings.ledger.flush()
    return bindings.db.select().from(rejectedClients).orderBy(rejectedClients.id).all()
  }

  test.each(ROUTES)('%s: at the handshake and at a turn', async (path) => {
    await using service = await startSocketWorld({ settings: { apiKeyAuthEnabled: true } })
    await open(service, { path, headers: { authorization: 'Bearer sk-clb-of-nobody-at-all' } }).catch(() => {})
    expect(await rejected(service)).toMatchObject([
      { reason: 'unknown_key', keyStart: 'sk-clb-o', route: path, count: 1 },
    ])
    const { key, row } = await service.key({ allowedModels: ['gpt-5.5'] })
    const socket = await open(service, { path, headers: { authorization: `Bearer ${key}` } })
    await socket.turn(create('hi', { model: 'gpt-5.4' }))
    await write(service, (tx) => updateKey(tx, row.id, { isActive: false }, DOING))
    await socket.turn(create())
    expect((await rejected(service)).slice(1)).toMatchObject([
      { reason: 'model_not_allowed', model: 'gpt-5.4', keyId: row.id, route: path },
      { reason: 'inactive_key', keyId: row.id, route: path },
    ])
    expect(await service.rows()).toEqual([])
    await leave(service, socket)
  })

  test('not errors of Sluice itself', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service)
    service.bindings.lifecycle.maxTurns = 0
    expect(getRefusal(await socket.turn(create()))).toEqual([503, 'busy'])
    expect(await rejected(service)).toEqual([])
    await leave(service, socket)
  })
})
