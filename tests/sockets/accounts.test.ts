/** A session whose account changes, whose upstream handshake is rejected, or without an available account. */
import { describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { accounts } from '../../db/schema/accounts.ts'
import { deleteAccount, pauseAccount } from '../../src/model/accounts/accounts.ts'
import { until } from '../support/until.ts'
import { type Fault, faults } from '../support/upstream/faults.ts'
import {
  ACTOR,
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
} from './ground.ts'

const LOST = [400, 'previous_response_not_found'] as const
const inAnHour = () => Date.now() + 3_600_000
const servedBy = async ({ rows, members }: SocketWorld) =>
  (await rows())
    .filter(({ status }) => status === 'ok')
    .map(({ accountId }) => members.findIndex(({ id }) => id === accountId))

/** Two accounts; the first is used before the second and has served one turn of the socket. */
const begun = async () => {
  const service = await startSocketWorld({ accounts: 2 })
  await prefer(service, service.members[0]!.id) // there are two
  const socket = await open(service)
  const events = await socket.turn(create())
  expectCompleted(events)
  return { service, socket, id: idOf(events), [Symbol.asyncDispose]: () => service.stop() }
}

const losses: [name: string, lose: (service: SocketWorld) => Promise<unknown>][] = [
  ['is exhausted', async ({ members }) => members[0]?.sim.always(faults.usageLimit({ resetsAt: inAnHour() }))],
  [
    'is exhausted, reported inside the stream',
    async ({ members }) =>
      members[0]?.sim.always({ failAfterCreated: { code: 'usage_limit_reached', message: 'Used up' } }),
  ],
  ['is overloaded', async ({ members }) => members[0]?.sim.always({ ...faults.overloaded(), on: 'responses' })],
  [
    'was paused',
    async (service) => void (await write(service, (tx) => pauseAccount(tx, service.members[0]!.id, ACTOR))),
  ],
  ['was deleted', (service) => write(service, (tx) => deleteAccount(tx, service.members[0]!.id, ACTOR))],
]

describe('between two turns the account', () => {
  test.each(losses)('%s: a chained turn is requested in full, and another account serves it', async (_name, lose) => {
    await using session = await begun()
    const { service, socket, id } = session
    await lose(service)
    expect(getRefusal(await socket.turn(createFollowUp(id)))).toEqual([...LOST])
    const events = await socket.turn(create('everything'))
    expectCompleted(events)
    expectCompleted(await socket.turn(createFollowUp(idOf(events))))
    const last = service.upstream.requests.at(-1)
    expect(last?.account).toBe(service.members[1]!.sim.chatgptAccountId)
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test.each(losses)('%s: a full turn is served by another account, unnoticed', async (_name, lose) => {
    await using session = await begun()
    const { service, socket } = session
    await lose(service)
    expectCompleted(await socket.turn(create()))
    expect(service.upstream.requests.at(-1)?.account).toBe(service.members[1]!.sim.chatgptAccountId)
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('is exhausted and the only one: the client gets the real error, chained or not', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service)
    const id = idOf(await socket.turn(create()))
    const resetsAt = inAnHour()
    service.members[0]?.sim.always(faults.usageLimit({ resetsAt }))
    expect(getRefusal(await socket.turn(createFollowUp(id)))).toEqual([...LOST])
    const events = await socket.turn(create())
    expect(getRefusal(events)).toEqual([429, 'usage_limit_reached'])
    expect(events[0]).toMatchObject({
      error: { type: 'usage_limit_reached', resets_at: Math.floor(resetsAt / 1000) },
    })
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('has an expired token: it is refreshed, unnoticed', async () => {
    await using service = await startSocketWorld()
    service.members[0]?.sim.expireAccessToken()
    const socket = await open(service)
    expectCompleted(await socket.turn(create()))
    expect(service.upstream.handshakes.map(({ status }) => status)).toEqual([401, 101])
    await leave(service, socket)
    await expectNothingLeft(service)
  })
})

describe('the upstream socket of a session', () => {
  test('stays with its account, and is closed when another one is selected', async () => {
    await using session = await begun()
    const { service, socket } = session
    expectCompleted(await socket.turn(create()))
    await prefer(service, service.members[1]!.id)
    await write(service, (tx) =>
      tx.update(accounts).set({ routingPolicy: 'normal' }).where(eq(accounts.id, service.members[0]!.id)).run(),
    )
    await service.bindings.pool.reload()
    expectCompleted(await socket.turn(create()))
    expect(await servedBy(service)).toEqual([0, 0, 1])
    await until(() => service.upstream.openSockets === 1, 'the first closed')
    expect(service.upstream.handshakes).toMatchObject([{ closed: { code: 1000 } }, { closed: null }])
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('is replaced when the restriction begins', async () => {
    await using session = await begun()
    const { service, socket, id } = session
    const { key } = await service.key()
    const restricted = await open(service, { headers: { authorization: `Bearer ${key}` } })
    expectCompleted(await restricted.turn(create()))
    const authorised = service.members[1]!.id
    await write(service, (tx) =>
      tx.update(accounts).set({ securityWorkAuthorized: true }).where(eq(accounts.id, authorised)).run(),
    )
    await service.bindings.pool.reload()
    const demanding = { client_metadata: { [CAPABILITY]: 'trusted_cyber' } }
    expectCompleted(await restricted.turn(create('now', demanding)))
    expectCompleted(await restricted.turn(create('and ever after')))
    expectCompleted(await socket.turn(createFollowUp(id)))
    expect(await servedBy(service)).toEqual([0, 0, 1, 1, 0])
    await leave(service, socket, restricted)
    await expectNothingLeft(service)
  })

  test('is separate for each downstream socket', async () => {
    await using service = await startSocketWorld()
    const sockets = [await open(service), await open(service), await open(service)]
    for (const events of await Promise.all(sockets.map((socket) => socket.turn(create())))) expectCompleted(events)
    expect(service.upstream.openSockets).toBe(3)
    await leave(service, ...sockets)
    await expectNothingLeft(service)
  })

  test('closes with the client, also in the middle of a turn', async () => {
    await using service = await startSocketWorld()
    const sockets = [await open(service), await open(service)]
    expectCompleted(await sockets[0]!.turn(create()))
    service.members[0]?.sim.next({ silence: { afterEvents: 3 } })
    sockets[1]!.send(create())
    await sockets[1]!.next(({ type }) => type === 'response.output_item.added')
    await leave(service, ...sockets)
    await expectNothingLeft(service)
  })
})

describe('a rejected upstream handshake', () => {
  test('with 401, even with a new token: HTTP decides whether the account is signed in', async () => {
    await using service = await startSocketWorld()
    const { sim, id } = service.members[0]!
    sim.always({ ...faults.unauthorized(), on: 'handshake' })
    const socket = await open(service)
    for (let turn = 0; turn < 2; turn++) expectCompleted(await socket.turn(create()))
    expect(service.upstream.handshakes.map(({ status }) => status)).toEqual([401, 401])
    expect(service.bindings.pool.get(id)?.state.status).toBe('active')
    sim.always(faults.unauthorized())
    expect(getRefusal(await socket.turn(create()))).toEqual([400, 'no_accounts'])
    expect(service.bindings.pool.get(id)?.state.status).toBe('reauth_required')
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  const toHttp: [name: string, fault: Fault][] = [
    ['426', { status: 426, body: { detail: 'Upgrade Required' } }],
    ['403 of something in between', faults.forbiddenHtml()],
    ['404', { status: 404, body: { detail: 'Not Found' } }],
    ['405', { status: 405, body: {} }],
    ['501', { status: 501, body: '' }],
    ['a reset', { reset: true }],
  ]
  test.each(toHttp)('%s: the request uses HTTP, unnoticed', async (_name, fault) => {
    await using service = await startSocketWorld()
    service.members[0]?.sim.always({ ...fault, on: 'handshake' })
    const socket = await open(service)
    expectCompleted(await socket.turn(create()))
    expect(await service.rows()).toMatchObject([
      { transport: 'websocket', upstreamTransport: 'http', status: 'ok', attempts: 1 },
    ])
    expect(service.upstream.requests.map(({ method }) => method)).toEqual(['POST'])
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('429: the account is exhausted, another one serves', async () => {
    await using service = await startSocketWorld({ accounts: 2 })
    await prefer(service, service.members[0]!.id)
    service.members[0]?.sim.always({ ...faults.usageLimit({ resetsAt: inAnHour() }), on: 'handshake' })
    const socket = await open(service)
    expectCompleted(await socket.turn(create()))
    expect(await servedBy(service)).toEqual([1])
    expect(service.bindings.pool.get(service.members[0]!.id)?.state.status).toBe('rate_limited')
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('500: the account is tried again, then by HTTP', async () => {
    await using service = await startSocketWorld({ accounts: 2 })
    await prefer(service, service.members[0]!.id)
    service.members[0]?.sim.always({ ...faults.serverError(), on: 'handshake' })
    const socket = await open(service)
    expectCompleted(await socket.turn(create()))
    expect((await service.attemptRows()).map(({ upstreamStatus }) => upstreamStatus)).toEqual([500, 500, 200])
    expect(await servedBy(service)).toEqual([0])
    await leave(service, socket)
    await expectNothingLeft(service)
  })
})

describe('no account is available', () => {
  test.each([
    [NATIVE, 400],
    [PUBLIC, 503],
  ])('without accounts, %s: an error frame with status %p that says not to retry', async (path, status) => {
    await using service = await startSocketWorld({ accounts: 0 })
    const socket = await open(service, { path })
    const events = await socket.turn(create())
    expect(getRefusal(events)).toEqual([status, 'no_accounts'])
    expect(events[0]?.headers).toEqual({ 'x-should-retry': 'false' })
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('every account is rate limited: an error frame that says when to retry', async () => {
    await using service = await startSocketWorld()
    service.members[0]?.sim.always(faults.rateLimited(20))
    const socket = await open(service)
    await socket.turn(create())
    const events = await socket.turn(create())
    expect(getRefusal(events)).toEqual([503, 'no_accounts'])
    expect(events[0]).toMatchObject({ headers: { 'retry-after': expect.stringMatching(/^\d+$/) } })
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('an upstream 401 is never shown', async () => {
    await using service = await startSocketWorld()
    service.members[0]?.sim.revoke()
    const socket = await open(service)
    expect(getRefusal(await socket.turn(create()))).toEqual([400, 'no_accounts'])
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('an upstream that stays silent before the first event times out', async () => {
    await using service = await startSocketWorld({ settings: { firstEventTimeoutSeconds: 1, commitTimeoutSeconds: 1 } })
    service.members[0]?.sim.always({ silence: { afterEvents: 1 } })
    const socket = await open(service)
    expect(getRefusal(await socket.turn(create()))).toEqual([504, 'upstream_timeout'])
    await expectNothingLeft(service)
    await leave(service, socket)
  })
})
