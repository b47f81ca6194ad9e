/** Spec §1, restricted capability routing on Responses WebSockets, the one transport that serves restricted turns. */
import { describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { accounts } from '../../db/schema/accounts.ts'
import {
  CAPABILITY,
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
  prefer,
  type SocketWorld,
  startSocketWorld,
  write,
} from '../sockets/ground.ts'
import type { LiveOptions } from '../support/live.ts'
import { SocketRefused } from '../support/socket-client.ts'
import { faults } from '../support/upstream/faults.ts'

const ROUTES = [NATIVE, PUBLIC]
const RESTRICTED = { [CAPABILITY]: 'trusted_cyber' }
const DEMANDING = { client_metadata: { kept: 'yes', ...RESTRICTED } }
/** Without an authorized account: 400 is what stops the native client immediately. */
const nobody = (path = NATIVE): [number, string] => [
  path === NATIVE ? 400 : 503,
  'no_security_work_authorized_accounts',
]

const authorise = async (service: SocketWorld, member: number, isAuthorised = true): Promise<void> => {
  const id = service.members[member]?.id ?? ''
  await write(service, (tx) =>
    tx.update(accounts).set({ securityWorkAuthorized: isAuthorised }).where(eq(accounts.id, id)).run(),
  )
  await service.bindings.pool.reload()
}

/** Three accounts: the first is always used before the others, and is the only one that is not authorized. */
const pool = async (options: LiveOptions = {}) => {
  const service = await startSocketWorld({ accounts: 3, ...options })
  await prefer(service, service.members[0]?.id ?? '')
  for (const member of [1, 2]) await authorise(service, member)
  return Object.assign(service, {
    bearer: { authorization: `Bearer ${(await service.key()).key}` },
    /** The account of each turn, in order. */
    asked: () =>
      service.upstream.requests.map(({ account }) =>
        service.members.findIndex(({ sim }) => sim.chatgptAccountId === account),
      ),
  })
}

const openRestricted = (service: Awaited<ReturnType<typeof pool>>, path = NATIVE) =>
  open(service, { path, headers: { ...service.bearer, ...RESTRICTED } })

const refusedWith = (handshake: Promise<unknown>): Promise<[status: number, code: string]> =>
  handshake.then(
    () => Promise.reject(new Error('It was not refused.')),
    (refusal: unknown) => {
      if (!(refusal instanceof SocketRefused)) throw refusal
      return [refusal.status, JSON.parse(refusal.body).error.code]
    },
  )

describe('§1 restricted 1: a requirement, not a grant', () => {
  test('a key has no more rights on a restricted socket than elsewhere', async () => {
    await using service = await pool()
    const { key } = await service.key({ allowedModels: ['another'] })
    const socket = await open(service, { headers: { authorization: `Bearer ${key}`, ...RESTRICTED } })
    expect(getRefusal(await socket.turn(create()))).toEqual([404, 'model_not_found'])
    expect(service.asked()).toEqual([])
    await leave(service, socket)
  })
})

describe('§1 restricted 2: a socket without it is not restricted', () => {
  test.each(ROUTES)('%s: an ordinary socket beside a restricted one uses every account', async (path) => {
    await using service = await pool()
    const [restricted, ordinary] = [await openRestricted(service, path), await open(service, { path })]
    expectCompleted(await restricted.turn(create()))
    expectCompleted(await ordinary.turn(create()))
    expect(service.asked()[0]).toBeOneOf([1, 2])
    expect(service.asked()[1]).toBe(0)
    await leave(service, restricted, ordinary)
  })
})

describe('§1 restricted 3: always a valid key', () => {
  for (const apiKeyAuthEnabled of [false, true])
    test.each(ROUTES)(`%s: 401 before the upgrade, key auth ${apiKeyAuthEnabled ? 'on' : 'off'}`, async (path) => {
      await using service = await pool({ settings: { apiKeyAuthEnabled } })
      for (const headers of [RESTRICTED, { ...RESTRICTED, authorization: 'Bearer sk-clb-wrong' }])
        expect(await refusedWith(open(service, { path, headers }))).toEqual([401, 'invalid_api_key'])
      expect(service.bindings.sockets.size).toBe(0)
    })

  test.each(ROUTES)('%s: a frame that requires it needs a key, too', async (path) => {
    await using service = await pool()
    const socket = await open(service, { path })
    expect(getRefusal(await socket.turn(create('x', DEMANDING)))).toEqual([401, 'invalid_api_key'])
    expect(service.asked()).toEqual([])
    await leave(service, socket)
    await expectNothingLeft(service)
  })
})

describe('§1 restricted 4: restricted turns on Responses WebSockets', () => {
  for (const path of ROUTES)
    for (const [how, headers, more] of [
      ['the header', RESTRICTED, {}],
      ['the metadata of the frame', {}, DEMANDING],
    ] as const) {
      test(`${path}, by ${how}: the first and every later selection is narrowed`, async () => {
        await using service = await pool({ settings: { routingStrategy: 'round_robin' } })
        const socket = await open(service, { path, headers: { ...service.bearer, ...headers } })
        expectCompleted(await socket.turn(create('one', more)))
        for (let turn = 0; turn < 5; turn++) expectCompleted(await socket.turn(create('again')))
        expect(service.asked().every((member) => member === 1 || member === 2)).toBeTrue()
        await leave(service, socket)
        await expectNothingLeft(service)
      })

      test(`${path}, by ${how}: a retry after a failure is narrowed, too`, async () => {
        await using service = await pool()
        for (const member of [1, 2]) service.members[member]?.sim.next(faults.usageLimit())
        const socket = await open(service, { path, headers: { ...service.bearer, ...headers } })
        const [status] = getRefusal(await socket.turn(create('one', more)))
        expect(status).toBeOneOf([429, 503])
        expect(service.asked().toSorted()).toEqual([1, 2])
        await leave(service, socket)
        await expectNothingLeft(service)
      })

      test(`${path}, by ${how}: without an available account it fails closed`, async () => {
        await using service = await pool()
        for (const member of [1, 2]) await authorise(service, member, false)
        const socket = await open(service, { path, headers: { ...service.bearer, ...headers } })
        const events = await socket.turn(create('one', more))
        expect(getRefusal(events)).toEqual(nobody(path))
        expect(events[0]?.headers).toEqual({ 'x-should-retry': 'false' })
        expect(getRefusal(await socket.turn(create('again')))).toEqual(nobody(path))
        expect(service.asked()).toEqual([])
        await authorise(service, 2)
        expectCompleted(await socket.turn(create('at last')))
        expect(service.asked()).toEqual([2])
        await leave(service, socket)
        await expectNothingLeft(service)
      })
    }

  test.each(['http', 'websocket'] as const)('in any field it is sent in: %s', async (upstreamStreamTransport) => {
    await using service = await pool({ settings: { upstreamStreamTransport } })
    const socket = await openRestricted(service)
    expectCompleted(await socket.turn(create()))
    expect(service.asked()[0]).toBeOneOf([1, 2])
    expect(await service.rows()).toMatchObject([{ upstreamTransport: upstreamStreamTransport }])
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('a withdrawn authorization applies from the next turn on, for a chained one, too', async () => {
    await using service = await pool()
    const socket = await openRestricted(service)
    const id = idOf(await socket.turn(create()))
    for (const member of [1, 2]) await authorise(service, member, false)
    const [status, code] = getRefusal(await socket.turn(createFollowUp(id)))
    expect([status, code]).toBeOneOf([nobody(), [400, 'previous_response_not_found']])
    expect(getRefusal(await socket.turn(create()))).toEqual(nobody())
    expect(service.upstream.requests).toHaveLength(1)
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('a chained turn that becomes restricted leaves an account that is not authorized', async () => {
    await using service = await pool()
    const socket = await open(service, { headers: service.bearer })
    const id = idOf(await socket.turn(create()))
    expect(service.asked()).toEqual([0])
    expect(getRefusal(await socket.turn(createFollowUp(id, 'now', DEMANDING)))).toEqual([
      400,
      'previous_response_not_found',
    ])
    expectCompleted(await socket.turn(create('everything')))
    expect(service.asked()[1]).toBeOneOf([1, 2])
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test.each(ROUTES)('%s: the requirement is not sent upstream, in header or metadata', async (path) => {
    await using service = await pool()
    for (const upstreamStreamTransport of ['auto', 'http'] as const) {
      const socket = await openRestricted(service, path)
      await service.change({ upstreamStreamTransport })
      expectCompleted(await socket.turn(create('one', DEMANDING)))
      await service.change({ upstreamStreamTransport: 'auto' })
      await leave(service, socket)
    }
    const { requests, handshakes } = service.upstream
    expect(requests.map(({ method }) => method)).toEqual(['WS', 'POST'])
    for (const { headers } of [...requests, ...handshakes]) expect(headers).not.toHaveProperty(CAPABILITY)
    for (const { bodyText } of requests) expect(bodyText).not.toContain(CAPABILITY)
    expect(service.upstream.oddities).toEqual([])
  })

  test.each(['', 'other', 'Trusted_Cyber'])('metadata with the value %p is rejected in-band', async (value) => {
    await using service = await pool()
    const socket = await open(service, { headers: service.bearer })
    const frame = create('x', { client_metadata: { [CAPABILITY]: value } })
    expect(getRefusal(await socket.turn(frame))).toEqual([400, 'unsupported_required_capability'])
    expect(service.asked()).toEqual([])
    await leave(service, socket)
  })
})

describe('§1 restricted 3: the key comes first', () => {
  test.each(['trusted_cyber', 'other'])(
    'in metadata, too: %p without a key is 401, whatever it asks for',
    async (value) => {
      await using service = await pool()
      const socket = await open(service)
      const frame = create('x', { client_metadata: { [CAPABILITY]: value } })
      expect(getRefusal(await socket.turn(frame))).toEqual([401, 'invalid_api_key'])
      await leave(service, socket)
    },
  )
})

describe('§1 restricted 5: all other sockets are rejected', () => {
  test.each(['/v1/live/rtc_0123456789', '/v1/realtime', '/backend-api/codex/rtc_0123456789'])('%s', async (path) => {
    await using service = await pool()
    const asked = open(service, { path, headers: { ...service.bearer, ...RESTRICTED } })
    expect(await refusedWith(asked)).toEqual([400, 'required_capability_transport_unsupported'])
    expect(service.asked()).toEqual([])
  })
})

describe('§1 restricted 6: the models can be listed before the socket', () => {
  test.each(['/v1/models', '/backend-api/codex/models'])('%s', async (path) => {
    await using service = await pool()
    const response = await fetch(service.url + path, { headers: { ...service.bearer, ...RESTRICTED } })
    expect(response.status).toBe(200)
    await response.arrayBuffer()
  })
})

describe('§1 restricted 7: a model alone restricts nothing', () => {
  test('the strongest model on an ordinary socket', async () => {
    await using service = await startSocketWorld({ accounts: [{ plan: 'pro' }] })
    const socket = await open(service)
    expectCompleted(await socket.turn(create('hi', { model: 'gpt-6-astra' })))
    await leave(service, socket)
  })
})

describe('§1 restricted 8: rolling back is a new connection without the header', () => {
  test.each(ROUTES)('%s: the same client, key and conversation are ordinary again', async (path) => {
    await using service = await pool()
    const headers = { ...service.bearer, 'session-id': 'thread-1' }
    const restricted = await open(service, { path, headers: { ...headers, ...RESTRICTED } })
    expectCompleted(await restricted.turn(create()))
    await leave(service, restricted)
    for (const member of [1, 2]) await authorise(service, member, false)
    const ordinary = await open(service, { path, headers })
    expectCompleted(await ordinary.turn(create()))
    await leave(service, ordinary)
    await expectNothingLeft(service)
  })
})
