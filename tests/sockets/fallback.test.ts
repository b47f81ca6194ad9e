/** Upstream sockets fail while HTTP works: the turn is served over HTTP, and no account is charged for it. */
import { describe, expect, test } from 'bun:test'
import { codexBody } from '../support/app.ts'
import { type Fault, faults } from '../support/upstream/faults.ts'
import {
  create,
  createFollowUp,
  expectCompleted,
  expectNothingLeft,
  getRefusal,
  getTypes,
  idOf,
  leave,
  NATIVE,
  open,
  PUBLIC,
  prefer,
  prewarm,
  type SocketWorld,
  startSocketWorld,
} from './ground.ts'

const NATIVE_CLIENT = { 'content-type': 'application/json', originator: 'codex_cli_rs' }

const post = async (
  { url }: SocketWorld,
  path: string,
  { headers = NATIVE_CLIENT as object, body = codexBody() as unknown } = {},
) => {
  const sent = typeof body === 'string' ? body : JSON.stringify(body)
  const all = { 'content-type': 'application/json', 'user-agent': 'test', ...headers }
  const init = { method: 'POST', headers: all, body: sent }
  const response = await fetch(url + path, init)
  expect(await response.text()).toContain('response.completed')
}

const transports = async ({ rows }: SocketWorld) => (await rows()).map(({ upstreamTransport }) => upstreamTransport)
const handshakes = ({ upstream }: SocketWorld) => upstream.handshakes.map(({ status }) => status)
const toAccount = ({ bindings, members }: SocketWorld) => bindings.pool.get(members[0]!.id)! // it has at least one

const expectUncharged = (service: SocketWorld): void =>
  expect(service.bindings.pool.all().map(({ health, state }) => [health.errors, state.status])).toEqual(
    service.members.map(() => [0, 'active']),
  )

const CLIENTS: [string, (service: SocketWorld) => Promise<void>][] = [
  [
    'a native client on a socket',
    async (service) => {
      const socket = await open(service)
      expectCompleted(await socket.turn(create()))
      await leave(service, socket)
    },
  ],
  ['a native client over HTTP', (service) => post(service, NATIVE)],
  [
    'a client of /v1 over HTTP whose operator chose sockets',
    async (service) => {
      await service.change({ upstreamStreamTransport: 'websocket' })
      return post(service, PUBLIC, { headers: {} })
    },
  ],
]

const SOCKETS_DOWN: [string, Fault, handshakes: number[]][] = [
  ['a handshake answered with 500', { ...faults.serverError(), on: 'handshake' }, [500, 500]],
  ['a handshake answered with a page of a 502', { ...faults.badGatewayHtml(), on: 'handshake' }, [502, 502]],
  ['a handshake answered with 503', { on: 'handshake', status: 503, body: { detail: 'no' } }, [503, 503]],
  ['a handshake answered with 522', { on: 'handshake', status: 522, body: '' }, [522, 522]],
  ['a socket that is cut off', { on: 'create', terminate: { afterEvents: 0 } }, [101, 101]],
  ['a socket closed with 1000', { on: 'create', close: { code: 1000, afterEvents: 1 } }, [101, 101]],
  ['a socket closed with 1011', { on: 'create', close: { code: 1011, afterEvents: 0 } }, [101, 101]],
  ['a socket closed with 1012', { on: 'create', close: { code: 1012, afterEvents: 2 } }, [101, 101]],
  ['a binary frame', { on: 'create', binaryFrame: { afterEvents: 0 } }, [101, 101]],
]

describe('the last attempt uses HTTP', () => {
  for (const [index, [who, turn]] of CLIENTS.entries())
    test.each(SOCKETS_DOWN.filter((_, n) => index === 0 || n % 4 === index))(
      `of ${who}: %s`,
      async (_what, fault, statuses) => {
        await using service = await startSocketWorld({ accounts: 2 })
        await prefer(service, service.members[0]!.id) // there are two
        service.members[0]?.sim.always(fault)
        await turn(service)
        expect(await service.rows()).toMatchObject([
          { upstreamTransport: 'http', status: 'ok', attempts: 3, accountId: service.members[0]?.id },
        ])
        expect(handshakes(service)).toEqual(statuses)
        expectUncharged(service)
        await expectNothingLeft(service)
      },
    )

  test('a single failure does not count: the second attempt uses a new socket', async () => {
    await using service = await startSocketWorld()
    service.members[0]?.sim.next({ on: 'handshake', status: 500, body: '' })
    await post(service, NATIVE)
    expect([handshakes(service), await transports(service)]).toEqual([[500, 101], ['websocket']])
  })

  test('a prewarm is then answered by Sluice, and the turn after it is served', async () => {
    await using service = await startSocketWorld()
    service.members[0]?.sim.always({ on: 'handshake', status: 500, body: '' })
    const socket = await open(service)
    const warm = await socket.turn(prewarm())
    expectCompleted(warm)
    expectCompleted(await socket.turn(createFollowUp(idOf(warm))))
    expect(await transports(service)).toEqual([null, 'http'])
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('an account that fails over HTTP as well is charged for that alone, and another one serves', async () => {
    await using service = await startSocketWorld({ accounts: 2 })
    const [first, second] = service.members
    await prefer(service, first!.id) // there are two
    first?.sim.always({ on: 'handshake', status: 500, body: '' })
    first?.sim.always(faults.serverError())
    await post(service, NATIVE)
    expect(await service.rows()).toMatchObject([
      { upstreamTransport: 'websocket', status: 'ok', accountId: second?.id },
    ])
    expect(service.bindings.pool.all().map(({ health }) => health.errors)).toEqual([1, 0])
  })

  test('an overloaded model is not taken for a socket outage', async () => {
    await using service = await startSocketWorld()
    const overloaded = { status: 503, error: { code: 'server_is_overloaded', message: 'Overloaded.' } }
    service.members[0]?.sim.always({ on: 'create', ...overloaded, body: overloaded })
    const socket = await open(service)
    expect(getRefusal(await socket.turn(create()))).toEqual([503, 'server_is_overloaded'])
    expect(service.upstream.requests.every(({ method }) => method === 'WS')).toBe(true)
    await leave(service, socket)
  })
})

describe('an account whose last three sockets failed', () => {
  const down: Fault = { on: 'handshake', status: 503, body: { detail: 'no' } }
  const MINUTES = 60_000

  test('uses HTTP for two minutes, then one failure is enough, and a successful turn resets it', async () => {
    await using service = await startSocketWorld()
    const { sim } = service.members[0]!
    sim.always(down)
    await post(service, NATIVE) // two handshakes
    await post(service, NATIVE) // the third one
    expect(handshakes(service)).toEqual([503, 503, 503])
    expect(toAccount(service).httpUntil - Date.now()).toBeWithin(1.9 * MINUTES, 2 * MINUTES + 1)
    await post(service, NATIVE)
    expect(handshakes(service)).toHaveLength(3)

    toAccount(service).httpUntil = 0 // two minutes later
    await post(service, NATIVE)
    await post(service, NATIVE)
    expect(handshakes(service)).toHaveLength(4)

    sim.always({ on: 'handshake' })
    toAccount(service).httpUntil = 0
    await post(service, NATIVE)
    sim.next(down)
    await post(service, NATIVE)
    expect(handshakes(service).slice(4)).toEqual([101, 503, 101])
    expect(await transports(service)).toEqual(['http', 'http', 'http', 'http', 'http', 'websocket', 'websocket'])
    expectUncharged(service)
  })

  test('uses HTTP after a single handshake without a response, which cost the whole connect timeout', async () => {
    await using service = await startSocketWorld({ settings: { connectTimeoutSeconds: 1 } })
    service.members[0]?.sim.always({ on: 'handshake', delayHeadersMs: 60_000 })
    await post(service, NATIVE)
    await post(service, NATIVE)
    expect(handshakes(service)).toHaveLength(1)
    expect(await transports(service)).toEqual(['http', 'http'])
    expectUncharged(service)
  })

  test('in the middle of their responses, the next turn uses HTTP', async () => {
    await using service = await startSocketWorld()
    service.members[0]?.sim.always({ on: 'create', close: { code: 1012, afterEvents: 5 } })
    const socket = await open(service)
    for (let n = 0; n < 3; n++) expect(getTypes(await socket.turn(create())).at(-1)).toBe('response.failed')
    expectCompleted(await socket.turn(create()))
    expect(await transports(service)).toEqual(['websocket', 'websocket', 'websocket', 'http'])
    expectUncharged(service)
    await leave(service, socket)
    await expectNothingLeft(service)
  })
})

describe('a native client that falls back to HTTP', () => {
  const session = (id: string) => ({ ...NATIVE_CLIENT, 'session-id': id })

  test('uses HTTP upstream when the socket of its session just failed; others do not', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service, { headers: session('one') })
    service.members[0]?.sim.next({ on: 'create', terminate: { afterEvents: 5 }, dripMs: 5 })
    expect(getTypes(await socket.turn(create())).at(-1)).toBe('response.failed')
    await leave(service, socket)
    await post(service, NATIVE, { headers: session('one') })
    await post(service, NATIVE, { headers: session('two') })
    expect(await transports(service)).toEqual(['websocket', 'http', 'websocket'])
    await expectNothingLeft(service)
  })

  test('whose socket ended normally uses the suitable transport', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service, { headers: session('one') })
    expectCompleted(await socket.turn(create()))
    await leave(service, socket)
    await post(service, NATIVE, { headers: session('one') })
    expect(await transports(service)).toEqual(['websocket', 'websocket'])
  })
})

describe('a frame that is too large for a socket', () => {
  const LIMIT = 16 * 1024 * 1024
  const HEAD_BYTES = '{"type":"response.create",'.length - '{'.length
  const getBody = (bytes: number) => {
    const around = JSON.stringify(codexBody('')).length
    const body = JSON.stringify(codexBody('x'.repeat(bytes - around)))
    expect(body.length).toBe(bytes)
    return body
  }

  test.each([
    ['a body of 16,777,215 bytes', LIMIT - 1, {}, 'http'],
    ['the first body whose frame is too large', LIMIT - HEAD_BYTES + 1, {}, 'http'],
    ['the last whose frame fits', LIMIT - HEAD_BYTES, {}, 'websocket'],
    [
      'a body that fits until its lite header is written into it',
      LIMIT - HEAD_BYTES - 10,
      { 'x-openai-internal-codex-responses-lite': 'true' },
      'http',
    ],
  ] as const)(
    '%s',
    async (_what, bytes, headers, wanted) => {
      await using service = await startSocketWorld({ settings: { upstreamStreamTransport: 'websocket' } })
      await post(service, NATIVE, { headers, body: getBody(bytes) })
      expect(await service.rows()).toMatchObject([{ upstreamTransport: wanted, attempts: 1 }])
      expect(handshakes(service)).toEqual(wanted === 'http' ? [] : [101])
      expectUncharged(service)
    },
    120_000,
  )

  test('for the upstream, which closes with 1009, is repeated over HTTP on the same account', async () => {
    await using service = await startSocketWorld({ accounts: 2, settings: { upstreamStreamTransport: 'websocket' } })
    await prefer(service, service.members[0]!.id) // there are two
    service.members[0]?.sim.always({ on: 'create', close: { code: 1009, afterEvents: 0 } })
    const socket = await open(service)
    expectCompleted(await socket.turn(create()))
    await post(service, PUBLIC, { headers: {} })
    expect(await service.rows()).toMatchObject(
      Array(2).fill({ upstreamTransport: 'http', attempts: 2, accountId: service.members[0]?.id }),
    )
    expect(toAccount(service)).toMatchObject({ socketFailures: 0, httpUntil: 0 })
    expectUncharged(service)
    await leave(service, socket)
    await expectNothingLeft(service)
  })
})

describe('a close unrelated to the account does not count against it', () => {
  test.each([1001, 1009, 1012, 1013])('%d', async (code) => {
    await using service = await startSocketWorld()
    const socket = await open(service)
    const id = idOf(await socket.turn(create()))
    service.members[0]?.sim.next({ close: { code, afterEvents: 1 } })
    expect(getRefusal(await socket.turn(createFollowUp(id)))).toEqual([400, 'previous_response_not_found'])
    service.members[0]?.sim.next({ close: { code, afterEvents: 5 } })
    const last = (await socket.turn(create())).at(-1)
    expect(last).toMatchObject({ type: 'response.failed', response: { error: { code: 'stream_incomplete' } } })
    expectUncharged(service)
    const said = (await service.attemptRows()).map(({ message }) => message)
    expect(said).toContain(`ChatGPT closed the socket with code ${code} before the response was complete.`)
    await leave(service, socket)
    await expectNothingLeft(service)
  })
})

test('ten accounts without sockets that are all rate limited over HTTP are tried in a few seconds, and the client gets the 429', async () => {
  await using service = await startSocketWorld({ accounts: 10 })
  for (const { sim } of service.members) {
    sim.always({ on: 'handshake', status: 503 })
    sim.always(faults.rateLimited(20))
  }
  const headers = { ...NATIVE_CLIENT, 'user-agent': 'test' }
  const init = { method: 'POST', headers, body: JSON.stringify(codexBody()) }
  const response = await fetch(`${service.url}/backend-api/codex/responses`, init)
  expect(response.status).toBe(429)
  await response.text()
  await expectNothingLeft(service)
}, 120_000)
