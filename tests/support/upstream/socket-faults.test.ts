/** How the sockets of the stand-in upstream fail on command. */
import { afterEach, describe, expect, test } from 'bun:test'
import type { TestSocket } from '../socket-client.ts'
import { until } from '../until.ts'
import type { Account } from './accounts.ts'
import { aCreate, ask, getEvents, getTypes } from './client.ts'
import { type Fault, faults } from './faults.ts'
import { createSocketLab } from './socket-lab.ts'

const slept: number[] = []
const lab = createSocketLab({ sleep: async (ms) => void slept.push(ms) })
const { upstream, url, anAccount, open } = lab

/** A socket with a pending response that fails like this. */
async function asked(fault: Fault, timeoutMs = 2000): Promise<{ account: Account; socket: TestSocket }> {
  const account = anAccount()
  account.next(fault)
  const socket = await open(account, { timeoutMs })
  socket.send(aCreate())
  return { account, socket }
}

const typesAt = (socket: TestSocket) => socket.events.map(({ type }) => type)
const STARTED = ['response.created', 'response.in_progress']

afterEach(async () => {
  await lab.tidy()
  slept.length = 0
})

describe('before the response', () => {
  test('a status is an in-band error with its body and headers, and the socket stays open', async () => {
    const { account, socket } = await asked(faults.usageLimit({ resetsAt: 9_000_000 }))
    expect(await socket.next()).toEqual({
      type: 'error',
      status: 429,
      error: {
        type: 'usage_limit_reached',
        message: 'The usage limit has been reached',
        plan_type: 'plus',
        resets_at: 9000,
      },
      headers: { 'x-codex-active-limit': 'premium' },
    })
    expect((await socket.turn(aCreate())).at(-1)?.type).toBe('response.completed')
    account.next(faults.slowDown(2), faults.deactivatedWorkspace(), faults.modelNotSupported('m'))
    expect(await socket.turn(aCreate())).toMatchObject([{ status: 503, headers: { 'retry-after': '2' } }])
    expect(await socket.turn(aCreate())).toMatchObject([{ status: 402, error: { code: 'deactivated_workspace' } }])
    expect(await socket.turn(aCreate())).toMatchObject([
      { status: 400, error: { message: expect.stringContaining("The 'm' model") } },
    ])
    expect(upstream.requests.map(({ status }) => status)).toEqual([429, 200, 503, 402, 400])
  })

  test('a delay comes first, a reset breaks the connection', async () => {
    const { socket } = await asked({ delayHeadersMs: 40, reset: true })
    expect((await socket.closed).code).toBe(1006)
    expect([slept, typesAt(socket)]).toEqual([[40], []])
    expect(upstream.requests).toMatchObject([{ status: null, finished: false, aborted: false }])
  })
})

describe('inside the response', () => {
  const ends: [name: string, fault: Fault, code: number, events: string[]][] = [
    ['a close before any event', { close: { code: 1011, reason: 'oops', afterEvents: 0 } }, 1011, []],
    ['a close between events', { close: { code: 1013, afterEvents: 2 } }, 1013, STARTED],
    ['a private close code', { close: { code: 4321, afterEvents: 1 } }, 4321, STARTED.slice(0, 1)],
    ['a drop', { terminate: { afterEvents: 2 } }, 1006, STARTED],
    ['a clean early end', { dropAfter: { events: 2, how: 'fin' } }, 1000, STARTED],
    ['a reset', { dropAfter: { events: 1, how: 'reset' } }, 1006, STARTED.slice(0, 1)],
  ]
  test.each(ends)('%s', async (_name, fault, code, events) => {
    const { socket } = await asked(fault)
    const closed = await socket.closed
    expect([closed.code, typesAt(socket)]).toEqual([code, events])
    if (fault.close?.reason) expect(closed.reason).toBe(fault.close.reason)
    await until(() => upstream.openStreams === 0)
    expect(upstream.requests).toMatchObject([{ eventsSent: events.length, finished: false, aborted: false }])
  })

  test('a missing terminal event is followed by a close', async () => {
    const { socket } = await asked({ omitTerminal: true })
    expect((await socket.closed).code).toBe(1000)
    expect(typesAt(socket).at(-1)).toBe('response.output_item.done')
  })

  test('a binary frame and garbage are between whole events', async () => {
    const { socket } = await asked({
      binaryFrame: { afterEvents: 1 },
      malformedChunk: { afterEvents: 2, text: '{oops' },
    })
    await socket.next(({ type }) => type === 'response.completed')
    expect(typesAt(socket).slice(0, 4)).toEqual(['response.created', '(binary)', 'response.in_progress', '(not JSON)'])
  })

  test('failures, an error event, an incomplete end and rate limits are as over HTTP', async () => {
    const account = anAccount()
    const socket = await open(account)
    account.next(
      { failAfterCreated: { code: 'server_error', message: 'broken' } },
      { errorEvent: { code: 'server_error', message: 'broken', status: 500 } },
      { incomplete: { reason: 'max_output_tokens' }, rateLimitsEvent: true },
    )
    expect((await socket.turn(aCreate())).at(-1)).toMatchObject({ type: 'response.failed' })
    expect((await socket.turn(aCreate())).at(-1)).toMatchObject({ type: 'error', status: 500, code: 'server_error' })
    const last = await socket.turn(aCreate())
    expect([last[0]?.type, last.at(-1)?.type]).toEqual(['codex.rate_limits', 'response.incomplete'])
  })

  test('delays use the given sleep', async () => {
    const { socket } = await asked({ delayFirstEventMs: 500, dripMs: 20 })
    await socket.next(({ type }) => type === 'response.completed')
    expect(slept).toEqual([500, ...Array(socket.events.length - 1).fill(20)])
  })

  test('silence lasts until the peer disconnects, which is detected and recorded', async () => {
    const { socket } = await asked({ silence: { afterEvents: 1 } }, 60)
    await socket.next()
    const nothing = await socket.next().catch((error: Error) => error.message)
    expect(nothing).toStartWith('No such event came; 1 had arrived, the last {"type":"response.created"')
    socket.terminate()
    await until(() => upstream.openStreams === 0)
    expect(upstream.requests).toMatchObject([{ aborted: true, finished: false, eventsSent: 1 }])
  })
})

test('over SSE a close is a clean early end, a drop is a reset, and there is no binary frame', async () => {
  const account = anAccount()
  account.next(
    { binaryFrame: { afterEvents: 1 }, close: { code: 1011, afterEvents: 2 } },
    { terminate: { afterEvents: 1 } },
  )
  expect(getTypes(await getEvents(await ask(upstream, account)))).toEqual(STARTED)
  const broken = await ask(upstream, account)
  expect(await broken.text().catch((error: unknown) => error)).toMatchObject({ code: 'ECONNRESET' })
})

describe('around the response', () => {
  test('an idle connection closes after the turn, successful or not', async () => {
    const { account, socket } = await asked({ closeIdle: { code: 1001, reason: 'idle' } })
    expect(await socket.closed).toEqual({ code: 1001, reason: 'idle' })
    expect(typesAt(socket).at(-1)).toBe('response.completed')
    expect(upstream.requests).toMatchObject([{ finished: true, aborted: false }])
    account.next({ status: 429, closeIdle: { code: 1008 } })
    const second = await open(account)
    second.send(aCreate())
    expect([(await second.closed).code, typesAt(second)]).toEqual([1008, ['error']])
  })

  test('pings are answered, unless they are to be ignored', async () => {
    const account = anAccount()
    const socket = await open(account, { timeoutMs: 500 })
    await socket.ping()
    account.next({ ignorePings: true })
    expect((await socket.turn(aCreate())).at(-1)?.type).toBe('response.completed')
    expect(await socket.ping().catch((error: Error) => error.message)).toBe('The ping was not answered within 500 ms.')
  })

  test('a stalled reader reads nothing more, from a turn on or from the handshake', async () => {
    const { account, socket } = await asked({ stopReading: true }, 500)
    expect((await socket.next(({ type }) => type === 'response.completed')).type).toBe('response.completed')
    expect(await socket.turn(aCreate()).catch((error: Error) => error.message)).toStartWith('No such event came')
    account.next({ on: 'handshake', stopReading: true })
    const second = await open(account, { timeoutMs: 500 })
    expect(await second.turn(aCreate()).catch((error: Error) => error.message)).toStartWith('No such event came')
    expect(upstream.requests).toHaveLength(1)
    upstream.closeSockets(1012, 'restart')
    expect((await second.closed).code).toBe(1012)
  })

  test('all connections can be closed together, idle or not', async () => {
    const { account, socket } = await asked({ silence: { afterEvents: 1 } })
    const idle = await open(account)
    await socket.next()
    upstream.closeSockets(1012, 'restart')
    for (const each of [socket, idle]) expect(await each.closed).toEqual({ code: 1012, reason: 'restart' })
    await until(() => upstream.openStreams === 0)
    expect(upstream.requests).toMatchObject([{ finished: false, aborted: false }])
    expect(upstream.handshakes).toMatchObject([{ closed: { code: 1012 } }, { closed: { code: 1012 } }])
  })

  test('the control routes do the same from another process', async () => {
    const account = anAccount()
    const post = (path: string, body: unknown) =>
      fetch(`${url}/_sim${path}`, { method: 'POST', body: JSON.stringify(body) })
    await post(`/accounts/${account.chatgptAccountId}/faults`, {
      next: [{ on: 'handshake', status: 403 }, { close: { code: 1011, afterEvents: 1 } }],
    })
    expect(await open(account).catch((error: unknown) => error)).toMatchObject({ status: 403 })
    const socket = await open(account)
    socket.send(aCreate())
    expect((await socket.closed).code).toBe(1011)
    const idle = await open(account)
    await post('/close-sockets', { code: 1001, reason: 'bye' })
    expect(await idle.closed).toEqual({ code: 1001, reason: 'bye' })
    const handshakes = await (await fetch(`${url}/_sim/handshakes`)).json()
    expect(handshakes).toMatchObject([{ status: 403 }, { closed: { code: 1011 } }, { status: 101 }])
  })
})
