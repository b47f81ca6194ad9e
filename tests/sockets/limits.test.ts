/** Timeouts: idle sockets, silence within a turn, clients that never read, and old upstream sockets. */
import { describe, expect, test } from 'bun:test'
import { AS_ENVIRONMENT } from '../../src/model/egress/route.ts'
import { type Connection, UpstreamSession } from '../../src/proxy/exchange/upstream-session.ts'
import type { UpstreamSocket } from '../../src/upstream/socket.ts'
import { expectNothingLeft, type TestApp, testApp } from '../support/app.ts'
import { answers } from '../support/upstream/script.ts'
import { create, getEnds, getTypes } from './ground.ts'
import { createFakeSocket, type FakeSocket } from './pretend.ts'

const MINUTE_MS = 60_000

/** Ends the session as the runtime does when the connection is closed. */
const over = async (app: TestApp, { session }: FakeSocket): Promise<void> => {
  session.closed()
  await expectNothingLeft(app)
  expect(app.bindings.sockets.size).toBe(0)
}

describe('an idle socket', () => {
  test('is closed with 1001 after 60 minutes, and not before', async () => {
    const app = await testApp()
    const socket = createFakeSocket(app)
    await app.clock.advance('59m')
    expect(socket.closed).toBeNull()
    await app.clock.advance('61s')
    expect(socket.closed).toEqual({ code: 1001, reason: 'Idle' })
    expect(socket.frames).toEqual([])
    await over(app, socket)
  })

  test('that ever sent a frame over 4 MiB is closed after 2 minutes, because the runtime keeps its buffer', async () => {
    const app = await testApp()
    const socket = createFakeSocket(app)
    socket.say(create('x'.repeat(5 * 1024 * 1024)))
    await app.clock.advance('1s')
    socket.say(create())
    await app.clock.advance('1s')
    expect(getEnds(getTypes(socket.frames))).toEqual(['response.completed', 'response.completed'])
    await app.clock.advance('118s')
    expect(socket.closed).toBeNull()
    await app.clock.advance('3s')
    expect(socket.closed).toEqual({ code: 1001, reason: 'Idle' })
    await over(app, socket)
  })

  test('is not closed while a client is still sending its next frame, and is once that client is idle again', async () => {
    const app = await testApp()
    const socket = createFakeSocket(app)
    socket.isUploading = true
    await app.clock.advance('65m')
    expect([socket.closed, socket.pings]).toEqual([null, 1])
    socket.say(create())
    socket.session.ponged(0) // to the ping it got while it was sending
    await app.clock.advance('1s')
    expect([socket.closed, getEnds(getTypes(socket.frames))]).toEqual([null, ['response.completed']])
    socket.isUploading = false
    await app.clock.advance('59m')
    expect(socket.closed).toBeNull()
    await app.clock.advance('61s')
    expect(socket.closed).toEqual({ code: 1001, reason: 'Idle' })
    await over(app, socket)
  })

  test('is not closed for a client that sent a rejected frame', async () => {
    const app = await testApp()
    const socket = createFakeSocket(app)
    await app.clock.advance('10m')
    socket.say({ type: 'unknown', text: 'x'.repeat(5 * 1024 * 1024) })
    await app.clock.advance('1m')
    expect([getTypes(socket.frames), socket.closed]).toEqual([['error'], null])
    await app.clock.advance('61s')
    expect(socket.closed?.code).toBe(1001)
    await over(app, socket)
  })

  test('is idle since its last turn ended, however long that took', async () => {
    const app = await testApp({ settings: { firstEventTimeoutSeconds: 600, commitTimeoutSeconds: 600 } })
    const socket = createFakeSocket(app)
    await app.clock.advance('50m')
    app.members[0]?.sim.next({ dripMs: MINUTE_MS })
    socket.say(create())
    await app.clock.advance('9m')
    expect(app.bindings.turns.size).toBe(1)
    for (let minutes = 0; minutes < 60 && app.bindings.turns.size > 0; minutes++) await app.clock.advance('1m')
    expect(getEnds(getTypes(socket.frames))).toEqual(['response.completed'])
    await app.clock.advance('58m')
    expect(socket.closed).toBeNull()
    await app.clock.advance('3m')
    expect(socket.closed?.code).toBe(1001)
    await over(app, socket)
  })
})

describe('silence within a turn', () => {
  const silent = async (isNative: boolean) => {
    const app = await testApp()
    app.members[0]?.sim.next({ silence: { afterEvents: 4 } })
    const socket = createFakeSocket(app, { isNative })
    socket.say(create())
    await app.clock.advance('1s')
    const seen = socket.frames.length
    expect(seen).toBe(4)
    return { app, socket, news: () => socket.frames.slice(seen) }
  }

  test('on the native route a keepalive frame comes every 8 s', async () => {
    const { app, socket, news } = await silent(true)
    await app.clock.advance('6s')
    expect(news()).toEqual([])
    await app.clock.advance('2s')
    expect(news()).toEqual([{ type: 'codex.keepalive' }])
    await app.clock.advance('8500ms')
    expect(news()).toHaveLength(2)
    expect(socket.pings).toBe(0)
    await over(app, socket)
  })

  test('on the public route it is a ping, which no SDK sees', async () => {
    const { app, socket, news } = await silent(false)
    await app.clock.advance('9s')
    expect([news(), socket.pings]).toEqual([[], 1])
    await app.clock.advance('8s')
    expect([news(), socket.pings]).toEqual([[], 2])
    await over(app, socket)
  })

  test('includes events that are not for the client', async () => {
    const { app, socket, news } = await silent(false)
    for (let seconds = 0; seconds < 20; seconds += 4) {
      await app.clock.advance('4s')
      void socket.session.send([]) // the rest of such a batch
    }
    expect([news(), socket.pings]).toEqual([[], 2])
    await over(app, socket)
  })

  test('keepalives are sent before the first event, too', async () => {
    const app = await testApp()
    app.members[0]?.sim.next({ delayHeadersMs: 30_000 })
    const socket = createFakeSocket(app)
    socket.say(create())
    await app.clock.advance('9s')
    expect(getTypes(socket.frames)).toEqual(['codex.keepalive'])
    await app.clock.advance('30s')
    expect(getTypes(socket.frames).at(-1)).toBe('response.completed')
    await over(app, socket)
  })

  test('none is sent between turns', async () => {
    const app = await testApp()
    const socket = createFakeSocket(app)
    socket.say(create())
    await app.clock.advance('1s')
    const seen = socket.frames.length
    await app.clock.advance('10m')
    expect([socket.frames.length, socket.pings]).toEqual([seen, 0])
    await over(app, socket)
  })

  test('of the upstream for too long ends the turn with an error, and the socket stays open', async () => {
    const { app, socket } = await silent(true)
    for (let minutes = 0; minutes < 6; minutes++) await app.clock.advance('1m')
    expect(getEnds(getTypes(socket.frames))).toEqual(['response.failed'])
    expect(socket.frames.at(-1)).toMatchObject({ response: { error: { code: 'upstream_timeout' } } })
    socket.say(create())
    await app.clock.advance('1s')
    expect(getEnds(getTypes(socket.frames))).toEqual(['response.failed', 'response.completed'])
    await over(app, socket)
  })
})

describe('a client that does not read', () => {
  const LONG = answers.bulk(200, 1000)

  test('pauses the upstream until it reads again', async () => {
    const app = await testApp()
    app.upstream.script(() => LONG)
    const socket = createFakeSocket(app)
    socket.takes = 'queues'
    socket.say(create())
    await app.clock.advance('1s')
    const sent = socket.frames.length
    await app.clock.advance('20s')
    expect(socket.frames).toHaveLength(sent) // no keepalive either: it would only wait behind the rest
    socket.reads()
    await app.clock.advance('1s')
    expect(getEnds(getTypes(socket.frames))).toEqual(['response.completed'])
    expect(socket.closed).toBeNull()
    await over(app, socket)
  })

  test('for 30 s is closed with 1013, and its turn is cancelled', async () => {
    const app = await testApp()
    app.upstream.script(() => LONG)
    const socket = createFakeSocket(app)
    socket.takes = 'queues'
    socket.say(create())
    await app.clock.advance('29s')
    expect(socket.closed).toBeNull()
    await app.clock.advance('2s')
    expect(socket.closed?.code).toBe(1013)
    expect(socket.isTerminated).toBeTrue()
    await expectNothingLeft(app)
    expect(app.bindings.sockets.size).toBe(0)
    expect(await app.rows()).toMatchObject([{ status: 'cancelled', errorCode: null }])
  })

  test('but reads now and then is not closed', async () => {
    const app = await testApp()
    app.upstream.script(() => answers.bulk(20, 1000, { dripMs: 100 }))
    const socket = createFakeSocket(app)
    socket.takes = 'queues'
    socket.say(create())
    for (let sips = 0; sips < 60 && getEnds(getTypes(socket.frames)).length === 0; sips++) {
      await app.clock.advance('20s')
      socket.session.drained()
    }
    socket.reads()
    await app.clock.advance('1s')
    expect(getEnds(getTypes(socket.frames))).toEqual(['response.completed'])
    expect(socket.closed).toBeNull()
    await over(app, socket)
  })

  test('and whose frame was dropped is closed immediately, so that a gap is always noticed', async () => {
    const app = await testApp()
    app.members[0]?.sim.next({ dripMs: 1000 })
    const socket = createFakeSocket(app)
    socket.say(create('one'))
    socket.say(create('two'))
    await app.clock.advance('3500ms')
    const seen = socket.frames.length
    expect(seen).toBeGreaterThan(0)
    socket.takes = 'drops'
    await app.clock.advance('3s')
    expect([socket.closed?.code, socket.frames.length]).toEqual([1013, seen])
    await over(app, socket)
    expect(await app.rows()).toMatchObject([{ status: 'cancelled' }])
    expect(app.upstream.requests).toHaveLength(1) // the waiting one has no client any more
  })
})

describe('an upstream socket', () => {
  const OPENED_AT = 1000
  const madeUp = (accountId = 'acc_1') => {
    const socket = { openedAt: OPENED_AT, isOpen: true, closed: 0, close: () => void socket.closed++ }
    const used = socket as unknown as UpstreamSocket // as: sessions use no more of it
    const connection: Connection = { socket: used, accountId, accessToken: 'token', route: AS_ENVIRONMENT }
    return { socket, connection }
  }

  test('is replaced between turns at 55 minutes, before the upstream closes it at 60', () => {
    const session = new UpstreamSession()
    const { socket, connection } = madeUp()
    session.keep(connection)
    const almost = OPENED_AT + 55 * MINUTE_MS - 1
    expect(session.accountAt(almost)).toBe('acc_1')
    expect(session.take({ id: 'acc_1', route: AS_ENVIRONMENT }, almost)).toBe(connection)
    session.keep(connection)
    expect(session.accountAt(almost + 1)).toBeNull()
    expect(session.take({ id: 'acc_1', route: AS_ENVIRONMENT }, almost + 1)).toBeNull()
    expect(socket.closed).toBe(1)
  })

  test('of another account is closed, and one that has ended is not kept', () => {
    const session = new UpstreamSession()
    const first = madeUp()
    session.keep(first.connection)
    expect(session.take({ id: 'acc_2', route: AS_ENVIRONMENT }, OPENED_AT)).toBeNull()
    expect(first.socket.closed).toBe(1)
    const second = madeUp()
    session.keep(second.connection)
    second.socket.isOpen = false
    expect([session.accountAt(OPENED_AT), session.take({ id: 'acc_1', route: AS_ENVIRONMENT }, OPENED_AT)]).toEqual([
      null,
      null,
    ])
  })

  test('is closed with its session, even when it is returned later', () => {
    const session = new UpstreamSession()
    const { socket, connection } = madeUp()
    session.keep(connection)
    expect(session.take({ id: 'acc_1', route: AS_ENVIRONMENT }, OPENED_AT)).toBe(connection)
    session.end()
    expect(socket.closed).toBe(0)
    session.keep(connection)
    expect([socket.closed, session.accountAt(OPENED_AT)]).toEqual([1, null])
  })

  test('in use is given to no other turn', () => {
    const session = new UpstreamSession()
    const { connection } = madeUp()
    session.keep(connection)
    session.take({ id: 'acc_1', route: AS_ENVIRONMENT }, OPENED_AT)
    expect(session.take({ id: 'acc_1', route: AS_ENVIRONMENT }, OPENED_AT)).toBeNull()
  })

  test('that is dropped is closed once and not reused; one in use by a turn is left alone', () => {
    const session = new UpstreamSession()
    const { socket, connection } = madeUp()
    session.keep(connection)
    session.drop()
    session.drop()
    expect([socket.closed, session.take({ id: 'acc_1', route: AS_ENVIRONMENT }, OPENED_AT)]).toEqual([1, null])
    const out = madeUp()
    session.keep(out.connection)
    session.take({ id: 'acc_1', route: AS_ENVIRONMENT }, OPENED_AT)
    session.drop()
    expect(out.socket.closed).toBe(0)
  })

  test('is kept only while its account is suitable', () => {
    const session = new UpstreamSession()
    const { socket, connection } = madeUp('acc_2')
    const asked: string[] = []
    session.keepOnly(() => asked.push('nobody') > 0)
    session.keep(connection)
    session.keepOnly(({ accountId }) => asked.push(accountId) > 0)
    expect([asked, session.accountAt(OPENED_AT)]).toEqual([['acc_2'], 'acc_2'])
    session.keepOnly(() => false)
    expect([socket.closed, session.accountAt(OPENED_AT)]).toEqual([1, null])
  })
})
