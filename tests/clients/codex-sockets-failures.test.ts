/**
 * The real Codex CLI with sockets while the upstream fails: the user gets the answer with as few messages as possible.
 */
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { until } from '../support/until.ts'
import { type Fault, faults } from '../support/upstream/faults.ts'
import {
  FIRST,
  getAccounts,
  getConnections,
  getCreates,
  getHandshakes,
  getVisits,
  ON_HTTP,
  ON_SOCKETS,
  SECOND,
  startSession,
  TWO_ACCOUNTS,
  talk,
} from './support/session.ts'
import { getItems, type World } from './support/world.ts'

const IN_AN_HOUR_MS = Date.now() + 3_600_000
const HELLO_FIRST = `Hello from ${FIRST.email}`
const LIMIT_REACHED = faults.usageLimit({ resetsAt: IN_AN_HOUR_MS })
/** The CLI's error for a response that no connection knows any more: it sends everything again, silently. */
const ASKED_TO_RESEND = { errorCode: 'previous_response_not_found', httpStatus: 400, status: 'error' }

// Longer than the CLI's timeout, so that a hang is reported with its output.
setDefaultTimeout(120_000)

describe('the upstream does not accept sockets', () => {
  test.each([
    ['426', { status: 426, body: { detail: 'Upgrade Required' } }],
    ['403', faults.forbidden()],
    ['403 from an edge proxy', faults.forbiddenHtml()],
  ])('%s: turns use HTTP and the user notices nothing', async (_how, refusal: Fault) => {
    const before = (world: World) => getAccounts(world).first.always({ ...refusal, on: 'handshake' })
    await using session = await startSession({ ...TWO_ACCOUNTS, before })
    const { world } = session
    await talk(session, FIRST, 'hello', 'hello again', 'and again')

    expect(getHandshakes(world)).toEqual([refusal.status ?? 0]) // not used again for a while
    // The prewarm was answered by Sluice; each later turn continues a response that HTTP does not keep, so it is sent
    // in full.
    expect(getCreates(world)).toMatchObject(Array(3).fill({ connection: null, account: FIRST.email, previous: null }))
    expect(getVisits(world)).toEqual(['101', '101', '101'])
    await until(() => world.door.visits.map(({ isOpen }) => isOpen).join() === 'false,false,true', world.output)
    expect(await world.log(4)).toMatchObject([
      { ...ON_SOCKETS, upstreamTransport: null, requestKind: 'prewarm' },
      ...Array(3).fill({ ...ON_SOCKETS, upstreamTransport: 'http' }),
    ])
  })

  test('with the setting http the CLI gets 426 and uses HTTP without a message', async () => {
    const settings = { ...TWO_ACCOUNTS.settings, upstreamStreamTransport: 'http' }
    await using session = await startSession({ ...TWO_ACCOUNTS, settings })
    const { world } = session
    await talk(session, FIRST, 'hello', 'hello again')
    expect(getVisits(world)).toEqual(['426', 'POST 200', 'POST 200'])
    expect(getHandshakes(world)).toEqual([])
    expect(getCreates(world)).toMatchObject(Array(2).fill({ connection: null, account: FIRST.email, isPrewarm: false }))
    expect(await world.log(2)).toMatchObject([ON_HTTP, ON_HTTP])
  })
})

describe('upstream sockets are down and HTTP works', () => {
  test.each([
    ['a handshake answered with 503', { status: 503, body: { detail: 'simulated 503' }, on: 'handshake' }],
    ['a handshake without a response', { delayHeadersMs: 600_000, on: 'handshake' }],
    ['a socket that closes immediately', { terminate: { afterEvents: 0 }, on: 'create' }],
    ['a socket closed in the middle of its response', { close: { code: 1012, afterEvents: 5 }, on: 'create' }],
  ] as const)('%s: the answer comes over HTTP', async (_what, fault: Fault) => {
    const before = (world: World) => getAccounts(world).first.always(fault)
    await using session = await startSession({ ...TWO_ACCOUNTS, before })
    const { status, text } = await session.thread.say('hello') // fails when it takes longer than a minute
    expect([status, text]).toEqual(['completed', HELLO_FIRST])
    await talk(session, FIRST, 'hello again')
    expect(getCreates(session.world).at(-1)).toMatchObject({ connection: null, account: FIRST.email })
  })
})

describe('the upstream socket ends', () => {
  test.each([
    ['1011', { close: { code: 1011, afterEvents: 0 } }],
    ['without a close frame', { terminate: { afterEvents: 0 } }],
  ])('before the first event (%s): the user notices nothing', async (_how, fault: Fault) => {
    await using session = await startSession(TWO_ACCOUNTS)
    const { world } = session
    await talk(session, FIRST, 'hello')
    getAccounts(session.world).first.next(fault)
    await talk(session, FIRST, 'hello again', 'and again')

    expect(getHandshakes(world)).toEqual([101, 101])
    expect(getConnections(session.world)).toEqual([1, 1, 1, 2, 2])
    expect(getCreates(world)[3]).toMatchObject({ account: FIRST.email, previous: null })
    expect(getItems(world.turns()[3]).map(({ type }) => type)).toContain('reasoning') // nothing is lost on the way
    expect(getVisits(world)).toEqual(['101', '101'])
    expect((await world.log(5)).map(({ errorCode }) => errorCode)).toEqual([
      null,
      null,
      ASKED_TO_RESEND.errorCode,
      null,
      null,
    ])
  })

  test('during the prewarm: it is repeated on another connection, and the user notices nothing', async () => {
    const before = (world: World) => getAccounts(world).first.next({ close: { code: 1011, afterEvents: 0 } })
    await using session = await startSession({ ...TWO_ACCOUNTS, before })
    const { world } = session
    await talk(session, FIRST, 'hello', 'hello again')
    expect(getConnections(session.world)).toEqual([1, 2, 2, 2])
    expect(getVisits(world)).toEqual(['101'])
    const [prewarm, ...turns] = await world.log(3)
    expect(prewarm).toMatchObject({ ...ON_SOCKETS, requestKind: 'prewarm', attemptCount: 2 })
    expect(turns).toMatchObject([ON_SOCKETS, ON_SOCKETS])
  })

  test('between two turns: the next one is sent in full on a new connection, and the user notices nothing', async () => {
    await using session = await startSession(TWO_ACCOUNTS)
    const { world } = session
    await talk(session, FIRST, 'hello')
    world.upstream.closeSockets(1001)
    await talk(session, FIRST, 'hello again', 'and again')
    expect(getHandshakes(world)).toEqual([101, 101])
    expect(getConnections(session.world)).toEqual([1, 1, 2, 2])
    expect(getCreates(world)[2]).toMatchObject({ account: FIRST.email, previous: null })
    const log = await world.log(4)
    expect(log).toEqual(log.map(() => expect.objectContaining({ ...ON_SOCKETS, accountName: FIRST.email })))
  })

  test.each([
    ['1011', { close: { code: 1011, afterEvents: 10 } }],
    ['without a close frame', { terminate: { afterEvents: 10 }, dripMs: 5 }], // a reset may overtake the last data
  ])('in the middle of a response (%s): the CLI continues on the same account', async (_how, fault: Fault) => {
    await using session = await startSession(TWO_ACCOUNTS)
    const { world } = session
    await talk(session, FIRST, 'hello')
    getAccounts(session.world).first.next(fault)
    await talk(session, FIRST, 'hello again', 'and again') // the first reconnect is not shown (client-protocol §4)

    expect(getConnections(session.world)).toEqual([1, 1, 1, 2, 2])
    expect(new Set(world.accountsUsed())).toEqual(new Set([FIRST.email]))
    expect(world.turns()[2]).toMatchObject({ eventsSent: 10, finished: false })
    expect(getItems(world.turns()[3]).at(-1)?.type).toBe('reasoning') // what had arrived whole of the broken answer
    expect(getVisits(world)).toEqual(['101', '101'])
    expect(await world.log(5)).toMatchObject([
      ON_SOCKETS,
      ON_SOCKETS,
      { upstreamTransport: 'websocket', status: 'error', httpStatus: 200, errorCode: 'stream_incomplete' },
      ON_SOCKETS,
      ON_SOCKETS,
    ])
  })

  test('twice in one response: the user sees the second reconnect and gets the response', async () => {
    await using session = await startSession(TWO_ACCOUNTS)
    await talk(session, FIRST, 'hello')
    const broken = { close: { code: 1012, afterEvents: 10 } }
    getAccounts(session.world).first.next(broken, broken)
    const { complaints, ...seen } = await session.thread.say('hello again')
    expect(complaints).toEqual([expect.stringContaining('Reconnecting... 2/5')])
    expect(seen).toMatchObject({ status: 'completed', text: HELLO_FIRST })
    expect(getConnections(session.world)).toEqual([1, 1, 1, 2, 3])
  })
})

describe('the account fails', () => {
  test.each([
    ['an error frame', LIMIT_REACHED],
    ['response.failed', { failAfterCreated: usageLimitError() }],
  ])(
    'at its usage limit between two turns (%s): the other account continues and the user notices nothing',
    async (_how, fault: Fault) => {
      await using session = await startSession(TWO_ACCOUNTS)
      const { world } = session
      await talk(session, FIRST, 'hello')
      getAccounts(session.world).first.always(fault)
      await talk(session, SECOND, 'hello again', 'and again')

      expect(world.accountsUsed()).toEqual([FIRST, FIRST, FIRST, SECOND, SECOND].map(({ email }) => email))
      expect(getConnections(session.world)).toEqual([1, 1, 1, 2, 2])
      // The ciphertext of the first account is omitted, but not the text.
      expect(getItems(world.turns()[3]).map(({ type }) => type)).not.toContain('reasoning')
      expect(JSON.stringify(getItems(world.turns()[3]))).toContain(HELLO_FIRST)
      expect(getVisits(world)).toEqual(['101', '101'])
      const log = await world.log(5)
      expect(log.map(({ accountName }) => accountName)).toEqual(world.accountsUsed())
      expect(log).toMatchObject([
        ON_SOCKETS,
        ON_SOCKETS,
        ASKED_TO_RESEND,
        { ...ON_SOCKETS, movedAccount: true },
        ON_SOCKETS,
      ])
    },
  )

  test.each([
    ['in the answer', LIMIT_REACHED],
    ['to the handshake', { ...LIMIT_REACHED, on: 'handshake' } as const],
  ])('at its usage limit from the start (%s): the prewarm already selects the other account', async (_where, fault) => {
    const before = (world: World) => getAccounts(world).first.always(fault)
    await using session = await startSession({ ...TWO_ACCOUNTS, before })
    const { world } = session
    await talk(session, SECOND, 'hello')
    expect(getCreates(world).slice(-2)).toMatchObject([
      { account: SECOND.email, isPrewarm: true },
      { account: SECOND.email, isPrewarm: false },
    ])
    expect(getVisits(world)).toEqual(['101'])
    const [prewarm, turn] = await world.log(2)
    expect(prewarm).toMatchObject({ ...ON_SOCKETS, accountName: SECOND.email, attemptCount: 2 })
    expect(turn).toMatchObject({ ...ON_SOCKETS, accountName: SECOND.email, attemptCount: 1 })
  })

  test('its access token expires while disconnected: it is refreshed once, unnoticed', async () => {
    await using session = await startSession(TWO_ACCOUNTS)
    const { world } = session
    const { first } = getAccounts(world)
    await talk(session, FIRST, 'hello')
    first.expireAccessToken()
    world.upstream.closeSockets(1000)
    await talk(session, FIRST, 'hello again')
    expect(getHandshakes(world)).toEqual([101, 401, 101])
    expect(world.upstream.requests.filter(({ path }) => path === '/oauth/token')).toMatchObject([{ status: 200 }])
    expect(new Set(world.accountsUsed())).toEqual(new Set([FIRST.email]))
    expect(await world.log(3)).toMatchObject([ON_SOCKETS, ON_SOCKETS, ON_SOCKETS])
  })

  test('at its usage limit with a history compacted into its ciphertext: the user sees when it continues', async () => {
    await using session = await startSession({ ...TWO_ACCOUNTS, compactsRemotely: true })
    const { world, thread } = session
    await talk(session, FIRST, 'hello')
    await thread.compact()
    getAccounts(session.world).first.always(LIMIT_REACHED)
    const { status, complaints } = await thread.say('hello again')
    expect(status).toBe('failed')
    expect(complaints).toEqual([expect.stringMatching(/^You.ve hit your usage limit\. Try again at [A-Z\d]/)])
    expect(new Set(world.accountsUsed())).toEqual(new Set([FIRST.email])) // the other could not read it
  })
})

function usageLimitError() {
  return {
    code: 'usage_limit_reached',
    type: 'usage_limit_reached',
    message: 'The usage limit has been reached',
    resets_at: Math.floor(IN_AN_HOUR_MS / 1000),
  }
}
