/** A kept upstream connection: an expired token, old age, rejections elsewhere, and the end of its account. */
import { describe, expect, test } from 'bun:test'
import { deleteAccount, pauseAccount, reactivateAccount } from '../../src/model/accounts/accounts.ts'
import { codexBody } from '../support/app.ts'
import { until } from '../support/until.ts'
import { type Fault, faults } from '../support/upstream/faults.ts'
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
  prefer,
  type SocketWorld,
  startSocketWorld,
  write,
} from './ground.ts'

const LOST = [400, 'previous_response_not_found'] as const

const statuses = ({ bindings }: SocketWorld) => bindings.pool.all().map(({ state }) => state.status)
const turnsAsked = ({ upstream }: SocketWorld) => upstream.requests.filter(({ path }) => path.endsWith('/responses'))
/** Which connection each turn came on; null over HTTP. */
const carriers = (service: SocketWorld) => turnsAsked(service).map(({ connection }) => connection)
/** The tokens of the handshakes, numbered as they first came. */
const tokens = ({ upstream }: SocketWorld) => {
  const all = upstream.handshakes.map(({ headers }) => headers.authorization)
  return all.map((token) => [...new Set(all)].indexOf(token))
}

test('idle connections are counted', async () => {
  await using service = await startSocketWorld()
  const kept = async () => {
    const metrics = await (await fetch(`${service.url}/metrics`)).text()
    return /^sluice_kept_upstream_sockets (\d+)$/m.exec(metrics)?.[1]
  }
  const [first, second] = [await open(service), await open(service)]
  expect(await kept()).toBe('0')
  expectCompleted(await first.turn(create()))
  expectCompleted(await second.turn(create()))
  expect(await kept()).toBe('2')
  first.close()
  await until(() => service.bindings.sockets.size === 1, 'one client gone')
  expect(await kept()).toBe('1')
  await leave(service, second)
  expect(await kept()).toBe('0')
})

describe('a token that is rejected on the kept connection', () => {
  /** From now on the tokens issued so far open no connection, and the next turn on an old one is rejected. */
  const expire = ({ members }: SocketWorld) => {
    members[0]?.sim.expireAccessToken()
    members[0]?.sim.next(faults.unauthorized())
  }

  test('is refreshed, and the turn uses a new connection; the account stays', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service)
    expectCompleted(await socket.turn(create()))
    expire(service)
    expectCompleted(await socket.turn(create('again')))
    expect(carriers(service)).toEqual([1, 1, 2])
    expect([tokens(service), statuses(service)]).toEqual([[0, 1], ['active']])
    expect(service.upstream.handshakes[0]?.closed).not.toBeNull()
    const id = idOf(await socket.turn(create('and again')))
    expectCompleted(await socket.turn(createFollowUp(id)))
    expect(carriers(service)).toEqual([1, 1, 2, 2, 2])
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('is refreshed once for all sockets of the account', async () => {
    await using service = await startSocketWorld()
    const [one, other] = [await open(service), await open(service)]
    for (const socket of [one, other]) expectCompleted(await socket.turn(create()))
    expire(service)
    expectCompleted(await one.turn(create('again')))
    service.members[0]?.sim.next(faults.unauthorized())
    expectCompleted(await other.turn(create('again')))
    expect(carriers(service)).toEqual([1, 2, 1, 3, 2, 4])
    expect([tokens(service), statuses(service)]).toEqual([[0, 0, 1, 1], ['active']])
    await leave(service, one, other)
    await expectNothingLeft(service)
  })

  test('under a continuing turn is refreshed too: a full resend is requested, and served over a new connection', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service)
    const id = idOf(await socket.turn(create()))
    expire(service)
    expect(getRefusal(await socket.turn(createFollowUp(id)))).toEqual([...LOST])
    expectCompleted(await socket.turn(create('everything')))
    expect(carriers(service)).toEqual([1, 1, 2])
    expect([tokens(service), statuses(service)]).toEqual([[0, 1], ['active']])
    expect(service.upstream.handshakes.map(({ status }) => status)).toEqual([101, 101])
    await leave(service, socket)
    await expectNothingLeft(service)
  })
})

test('usage from a handshake is reported once: turns on its connection do not repeat it', async () => {
  const usage = (usedPercent: number) => ({
    primary: { usedPercent, windowMinutes: 300, resetAt: Date.now() + 3_600_000 },
  })
  await using service = await startSocketWorld({ accounts: [{ usage: usage(10) }] })
  const [account] = service.bindings.pool.all()
  const socket = await open(service)
  const id = idOf(await socket.turn(create()))
  expect(account?.usage?.windows.fiveHour?.usedPercent).toBe(10)
  service.members[0]?.sim.setUsage(usage(97))
  service.members[0]?.sim.next({ rateLimitsEvent: true })
  const next = idOf(await socket.turn(createFollowUp(id)))
  account!.rateSeenAt = 0 // the same numbers are checked again after a while
  expectCompleted(await socket.turn(createFollowUp(next)))
  expect(account?.usage?.windows.fiveHour?.usedPercent).toBe(97)
  expect(service.upstream.handshakes).toHaveLength(1)
  await leave(service, socket)
  await expectNothingLeft(service)
})

describe('a connection that the upstream calls too old', () => {
  const tooOld: Fault = {
    status: 400,
    body: {
      error: {
        type: 'invalid_request_error',
        code: 'websocket_connection_limit_reached',
        message: 'Responses websocket connection limit reached (60 minutes).',
      },
    },
  }

  test('is replaced, unnoticed, and the account is not charged', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service)
    expectCompleted(await socket.turn(create()))
    service.members[0]?.sim.next(tooOld)
    expectCompleted(await socket.turn(create('again')))
    expect(carriers(service)).toEqual([1, 1, 2])
    expect([statuses(service), service.bindings.pool.all()[0]?.health.errors]).toEqual([['active'], 0])
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('loses what was to continue there', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service)
    const id = idOf(await socket.turn(create()))
    service.members[0]?.sim.next(tooOld)
    expect(getRefusal(await socket.turn(createFollowUp(id)))).toEqual([...LOST])
    expectCompleted(await socket.turn(create('everything')))
    expect(carriers(service)).toEqual([1, 1, 2])
    await leave(service, socket)
    await expectNothingLeft(service)
  })
})

describe('a continuing turn that another account could serve', () => {
  const failures: [name: string, fault: Fault][] = [
    ['the model is not on the plan', faults.modelNotSupported('gpt-5.5')],
    ['the model is not there', faults.modelNotFound('gpt-5.5')],
    ['rejected without a reason', faults.forbidden()],
    ['rejected with a reason', { status: 403, body: { error: { code: 'workspace_denied', message: 'No.' } } }],
    ['the workspace was deleted', faults.deactivatedWorkspace()],
  ]
  test.each(failures)('%s: a full resend is requested, and served', async (_name, fault) => {
    await using service = await startSocketWorld({ accounts: 2 })
    await prefer(service, service.members[0]!.id) // there are two
    const socket = await open(service)
    const id = idOf(await socket.turn(create()))
    service.members[0]?.sim.always({ ...fault, on: 'responses' })
    expect(getRefusal(await socket.turn(createFollowUp(id)))).toEqual([...LOST])
    expectCompleted(await socket.turn(create('everything')))
    expect(service.upstream.requests.at(-1)?.account).toBe(service.members[1]!.sim.chatgptAccountId)
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('but not one that no account would accept: that error is returned, and the connection stays', async () => {
    await using service = await startSocketWorld({ accounts: 2 })
    const socket = await open(service)
    const id = idOf(await socket.turn(create()))
    for (const { sim } of service.members) sim.next(faults.invalidValue())
    expect(getRefusal(await socket.turn(createFollowUp(id)))).toEqual([400, 'invalid_value'])
    expectCompleted(await socket.turn(createFollowUp(id)))
    expect(service.upstream.handshakes).toHaveLength(1)
    await leave(service, socket)
    await expectNothingLeft(service)
  })
})

test('a handshake rejected for one client does not affect another client’s open connection', async () => {
  await using service = await startSocketWorld()
  const [holder, newcomer] = [await open(service), await open(service)]
  const id = idOf(await holder.turn(create()))
  service.members[0]?.sim.next({ ...faults.forbiddenHtml(), on: 'handshake' })
  expectCompleted(await newcomer.turn(create()))
  const events = await holder.turn(createFollowUp(id))
  expectCompleted(events)
  expectCompleted(await holder.turn(createFollowUp(idOf(events))))
  expectCompleted(await newcomer.turn(create('still by HTTP')))
  expect(carriers(service)).toEqual([1, null, 1, 1, null])
  await leave(service, holder, newcomer)
  await expectNothingLeft(service)
})

const ends: [name: string, end: (service: SocketWorld, id: string) => Promise<unknown>][] = [
  ['is paused', (service, id) => write(service, (tx) => pauseAccount(tx, id, ACTOR))],
  ['is deleted', (service, id) => write(service, (tx) => deleteAccount(tx, id, ACTOR))],
]

describe('when an account', () => {
  const begun = async () => {
    const service = await startSocketWorld({ accounts: 2 })
    await prefer(service, service.members[0]!.id)
    return { service, socket: await open(service), [Symbol.asyncDispose]: () => service.stop() }
  }

  test.each(ends)('%s, its kept connections are closed immediately', async (_name, end) => {
    await using session = await begun()
    const { service, socket } = session
    const second = await open(service)
    for (const client of [socket, second]) expectCompleted(await client.turn(create()))
    expect(service.upstream.openSockets).toBe(2)
    await end(service, service.members[0]!.id)
    await until(() => service.upstream.openSockets === 0, 'its connections closed')
    expect([socket.isOpen, second.isOpen]).toEqual([true, true])
    expectCompleted(await socket.turn(create()))
    expect(service.upstream.requests.at(-1)?.account).toBe(service.members[1]!.sim.chatgptAccountId)
    await leave(service, socket, second)
    await expectNothingLeft(service)
  })

  test.each(ends)(
    '%s in the middle of a turn, that turn ends normally and its connection with it',
    async (_name, end) => {
      await using session = await begun()
      const { service, socket } = session
      service.members[0]?.sim.next({ delayFirstEventMs: 20, dripMs: 5 })
      socket.send(create())
      await socket.next(({ type }) => type === 'response.created')
      await end(service, service.members[0]!.id)
      await socket.next(({ type }) => type === 'response.completed')
      await until(() => service.upstream.openSockets === 0, 'its connection closed')
      await leave(service, socket)
      await expectNothingLeft(service)
    },
  )

  test('is exhausted, another client’s open connection there stays for later', async () => {
    await using service = await startSocketWorld()
    const [idle, busy] = [await open(service), await open(service)]
    expectCompleted(await idle.turn(create()))
    service.members[0]?.sim.next(faults.usageLimit({ resetsAt: Date.now() + 3_600_000 }))
    expect(getRefusal(await busy.turn(create()))).toEqual([429, 'usage_limit_reached'])
    expect(statuses(service)).toEqual(['rate_limited'])
    service.bindings.views.changed(new Set(['accounts'] as const))
    await until(() => service.upstream.openSockets < 2, 'the refused one closed')
    expect(service.upstream.handshakes).toMatchObject([{ closed: null }, { closed: { code: 1000 } }])
    await leave(service, idle, busy)
    await expectNothingLeft(service)
  })
})

test('the turn state of a handshake does not return a conversation from where it has moved', async () => {
  await using service = await startSocketWorld({ accounts: 2 })
  const [first, second] = [service.members[0]!, service.members[1]!]
  await prefer(service, first.id)
  const thread = { 'session-id': 'thread-1' }
  const headers = { ...thread, 'content-type': 'application/json', 'user-agent': 'test' }
  const response = await fetch(service.url + NATIVE, { method: 'POST', headers, body: JSON.stringify(codexBody()) })
  expect(await response.text()).toContain('response.completed')
  const state = { 'x-codex-turn-state': response.headers.get('x-codex-turn-state') ?? '' }
  const socket = await open(service, { headers: { ...thread, ...state } })
  await write(service, (tx) => pauseAccount(tx, first.id, ACTOR))
  expectCompleted(await socket.turn(create('moves')))
  await write(service, (tx) => reactivateAccount(tx, first.id, ACTOR))
  expectCompleted(await socket.turn(create('stays')))
  const asked = turnsAsked(service).map(({ account }) => account)
  expect(asked).toEqual([first, second, second].map(({ sim }) => sim.chatgptAccountId))
  expect(service.upstream.handshakes).toHaveLength(1)
  await leave(service, socket)
  await expectNothingLeft(service)
})

describe('connections that failed unnoticed charge no account', () => {
  const ways: Record<string, Fault> = {
    'cut off': { terminate: { afterEvents: 0 } },
    'closed with 1001': { close: { code: 1001, afterEvents: 0 } },
    'cut off in the middle of an answer': { terminate: { afterEvents: 5 } },
  }
  for (const [how, fault] of Object.entries(ways))
    test(how, async () => {
      await using service = await startSocketWorld()
      const threads = []
      for (let n = 0; n < 3; n++) {
        const socket = await open(service)
        threads.push({ socket, id: idOf(await socket.turn(create())) })
      }
      for (const { socket, id } of threads) {
        service.members[0]?.sim.next(fault)
        const end = (await socket.turn(createFollowUp(id))).at(-1)
        expect(['error', 'response.failed']).toContain(String(end?.type))
      }
      expect(service.bindings.pool.all().map(({ health }) => health.errors)).toEqual([0])
      for (const { socket } of threads) expectCompleted(await socket.turn(create('everything')))
      await leave(service, ...threads.map(({ socket }) => socket))
      await expectNothingLeft(service)
    })
})
