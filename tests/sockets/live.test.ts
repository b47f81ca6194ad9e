/** The WebSocket of a live call, end to end: who can connect, what passes in both directions, and how it ends. */
import { describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { accounts } from '../../db/schema/accounts.ts'
import { apiKeys } from '../../db/schema/keys.ts'
import { liveCalls } from '../../db/schema/live-calls.ts'
import { users } from '../../db/schema/people.ts'
import { AppError } from '../../src/errors.ts'
import type { LiveOptions } from '../support/live.ts'
import { connectSocket, SocketRefused, type TestSocket } from '../support/socket-client.ts'
import { until } from '../support/until.ts'
import { CAPABILITY, expectNothingLeft, type SocketWorld, startSocketWorld, write } from './ground.ts'

const PATHS: Record<string, (id: string) => string> = {
  native: (id) => `/backend-api/codex/${id}`,
  live: (id) => `/v1/live/${id}`,
  realtime: (id) => `/v1/realtime?call_id=${id}`,
}
const FORMS = Object.entries(PATHS)
const LOGGED: Record<string, string> = {
  native: '/backend-api/codex/{call_id}',
  live: '/v1/live/{call_id}',
  realtime: '/v1/realtime',
}

interface Joining {
  headers?: Record<string, string>
  protocols?: string[]
}

/** A service with a key and a call that the key has created. */
const calling = async (options: LiveOptions = {}) => {
  const service = await startSocketWorld(options)
  const { key, row } = await service.key()
  const bearer = { authorization: `Bearer ${key}`, 'user-agent': 'test' }
  const create = async (): Promise<string> => {
    const response = await fetch(`${service.url}/v1/realtime/calls`, { method: 'POST', headers: bearer, body: 'v=0' })
    await response.text()
    return (response.headers.get('location') ?? '').replace('/v1/realtime/calls/', '')
  }
  const join = (path: string, { headers = {}, protocols = [] }: Joining = {}): Promise<TestSocket> =>
    connectSocket(service.socketUrl + path, { headers: { ...bearer, ...headers }, protocols })
  const joined = async (path: string, joining: Joining = {}) => {
    const client = await join(path, joining)
    const peer = service.upstream.liveSockets.at(-1)
    if (!peer) throw new Error('The call did not reach the upstream.')
    return { client, peer }
  }
  return Object.assign(service, { apiKey: key, keyId: row.id, bearer, create, join, joined })
}
type Calling = Awaited<ReturnType<typeof calling>>

const refusal = async (handshake: Promise<TestSocket>): Promise<{ status: number; code: string; body: string }> => {
  const error = await handshake.then(
    () => null,
    (err: unknown) => err,
  )
  if (!(error instanceof SocketRefused)) throw new Error(`The handshake was not refused: ${error}`)
  return { status: error.status, code: JSON.parse(error.body).error.code, body: error.body }
}
const refusedWith = async (handshake: Promise<TestSocket>) => {
  const { status, code } = await refusal(handshake)
  return [status, code]
}
const sidebandRows = async (service: SocketWorld) =>
  (await service.rows()).filter(({ transport }) => transport === 'websocket')
const ended = (service: SocketWorld, rows = 1) =>
  until(async () => (await sidebandRows(service)).length === rows, 'the log row')
const text = (size: number) => 'x'.repeat(size)
const MIB = 1024 * 1024

describe.each(FORMS)('a call by the %s path', (form, path) => {
  test('passes text and binary frames both ways untouched, and leaves one row with its duration', async () => {
    await using service = await calling({ accounts: 2 })
    service.upstream.liveGreeting = ['{"type":"session.created"}', 'second']
    const { client, peer } = await service.joined(path(await service.create()))
    expect(await client.next()).toEqual({ type: 'session.created' })
    expect(await client.next()).toMatchObject({ text: 'second' })
    const odd = '{ "type" : "a",\n"é":"\\u0000" }'
    client.send(odd)
    client.send(new Uint8Array([0, 255, 7]))
    await peer.until(({ received }) => received.length === 2)
    expect(peer.received[0]).toBe(odd)
    expect([...(peer.received[1] as Buffer)]).toEqual([0, 255, 7]) // as: it was sent as binary
    peer.send(odd)
    peer.send(new Uint8Array([9, 0, 200]))
    expect(await client.next()).toEqual(JSON.parse(odd))
    const { type, bytes } = await client.next()
    expect([type, ...(bytes as Buffer)]).toEqual(['(binary)', 9, 0, 200]) // as: a binary event has bytes
    client.close(1000, 'done')
    await ended(service)
    const [row] = await sidebandRows(service)
    expect(row).toMatchObject({
      kind: 'live',
      route: LOGGED[form] ?? '',
      status: 'ok',
      httpStatus: 101,
      upstreamTransport: 'websocket',
      model: null,
      inputTokens: null,
      outputTokens: null,
      costMicros: null,
      errorCode: null,
      attempts: 1,
      keyId: service.keyId,
    })
    expect(row?.totalMs).toBeGreaterThan(row?.connectMs ?? Number.POSITIVE_INFINITY)
    await expectNothingLeft(service)
  })

  test('no key or a wrong one: 401', async () => {
    await using service = await calling()
    const id = await service.create()
    const nobody = connectSocket(service.socketUrl + path(id), {})
    expect(await refusedWith(nobody)).toEqual([401, 'invalid_api_key'])
    const wrong = service.join(path(id), { headers: { authorization: 'Bearer sk-clb-wrong' } })
    expect(await refusedWith(wrong)).toEqual([401, 'invalid_api_key'])
    expect(service.upstream.handshakes).toEqual([])
  })

  test('the capability header is rejected', async () => {
    await using service = await calling()
    const asked = service.join(path(await service.create()), { headers: { [CAPABILITY]: 'trusted_cyber' } })
    expect(await refusedWith(asked)).toEqual([400, 'required_capability_transport_unsupported'])
  })

  test('an unknown call, one of another key, and an expired one: 404', async () => {
    await using service = await calling()
    const id = await service.create()
    expect(await refusedWith(service.join(path('rtc_unknown')))).toEqual([404, 'realtime_call_not_found'])
    const other = { authorization: `Bearer ${(await service.key()).key}` }
    expect(await refusedWith(service.join(path(id), { headers: other }))).toEqual([404, 'realtime_call_not_found'])
    await write(service, (tx) =>
      tx
        .update(liveCalls)
        .set({ createdAt: Date.now() - 7_200_000 })
        .run(),
    )
    expect(await refusedWith(service.join(path(id)))).toEqual([404, 'realtime_call_not_found'])
    expect(service.upstream.handshakes).toEqual([])
    await expectNothingLeft(service)
  })

  test('the owner deleted, paused, out of scope or at its cap: 503', async () => {
    await using service = await calling({
      accounts: 2,
      settings: { proxyAccountStreamLimit: 1, capacityWaitSeconds: 0 },
    })
    const id = await service.create()
    const unavailable = [503, 'continuity_owner_unavailable']
    const owner = (await service.bindings.db.select().from(liveCalls).get())?.accountId ?? ''
    const { client } = await service.joined(path(id))
    expect(await refusedWith(service.join(path(id)))).toEqual(unavailable) // the first connection has the only slot
    client.close(1000)
    await ended(service, 2)
    service.bindings.pool.apply(owner, { kind: 'pause', at: Date.now() })
    expect(await refusedWith(service.join(path(id)))).toEqual(unavailable)
    await write(service, (tx) => tx.delete(accounts).where(eq(accounts.id, owner)).run())
    await service.bindings.pool.reload()
    expect(await refusedWith(service.join(path(id)))).toEqual(unavailable)
    await expectNothingLeft(service)
  })

  test('its account is reserved by a usage cap: 503, except for keys of its owner', async () => {
    await using service = await calling({ accounts: 2 })
    const id = await service.create()
    const owner = (await service.bindings.db.select().from(liveCalls).get())?.accountId ?? ''
    const window = { usedPercent: 85, windowMinutes: 10_080, resetAt: Date.now() + 86_400_000 }
    const windows = { fiveHour: null, weekly: window, monthly: null }
    service.bindings.pool.observe(owner, { at: Date.now(), windows, credits: null, planType: null })
    const account = service.bindings.pool.get(owner)!
    account.maxUsedPercentSecondary = 80
    expect(await refusedWith(service.join(path(id)))).toEqual([503, 'continuity_owner_unavailable'])
    await write(service, async (tx) => {
      const ada = { id: 'usr_ada', username: 'ada', roleId: 'role_viewer', status: 'active', createdAt: 0 } as const
      await tx.insert(users).values(ada).run()
      await tx.update(apiKeys).set({ ownerUserId: ada.id }).where(eq(apiKeys.id, service.keyId)).run()
    })
    await service.bindings.keys.reload()
    account.exemptOwnerId = 'usr_ada'
    const { client } = await service.joined(path(id))
    client.close(1000)
    await ended(service, 2)
    await expectNothingLeft(service)
  })

  test('uses its account even when that has used up its quota', async () => {
    await using service = await calling({ accounts: 2 })
    const id = await service.create()
    const owner = (await service.bindings.db.select().from(liveCalls).get())?.accountId ?? ''
    const at = Date.now()
    const event = { evidence: 'test', resetAt: at + 60_000, retryAfterMs: null, cause: null }
    service.bindings.pool.apply(owner, { kind: 'quota_exceeded', at, ...event })
    expect(service.bindings.pool.get(owner)?.state.status).toBe('quota_exceeded')
    const { client, peer } = await service.joined(path(id))
    const { sim } = service.members.find(({ id: member }) => member === owner) ?? {}
    expect(peer.handshake.account).toBe(sim?.chatgptAccountId ?? '')
    client.close(1000)
    await ended(service)
  })

  test.each([
    [400, 400],
    [401, 502],
    [403, 502],
    [404, 404],
    [429, 429],
    [500, 500],
    [503, 503],
    [302, 502],
  ])(
    'a handshake that the upstream answers with %i: %i, without its message, and no refresh',
    async (status, answered) => {
      await using service = await calling()
      const id = await service.create()
      for (const { sim } of service.members)
        sim.always({ on: 'handshake', status, body: { error: { message: 'secret words', code: 'their_code' } } })
      const { body, ...rest } = await refusal(service.join(path(id)))
      expect(rest).toEqual({ status: answered, code: 'upstream_websocket_handshake_failed' })
      expect(body).not.toContain('secret words')
      expect(service.upstream.handshakes).toHaveLength(1)
      expect(service.upstream.requests.filter(({ path: to }) => to.includes('token'))).toEqual([])
      expect(await sidebandRows(service)).toMatchObject([{ status: 'error', httpStatus: answered, attempts: 1 }])
      expect(JSON.stringify([await service.rows(), await service.attemptRows(), service.lines])).not.toContain(
        'secret words',
      )
      await expectNothingLeft(service)
    },
  )

  test('a connection that breaks: 503', async () => {
    await using service = await calling()
    const id = await service.create()
    for (const { sim } of service.members) sim.always({ on: 'handshake', reset: true })
    expect(await refusedWith(service.join(path(id)))).toEqual([503, 'realtime_live_unavailable'])
    await expectNothingLeft(service)
  })

  test('the binding survives a restart', async () => {
    await using service = await calling({ accounts: 3 })
    const id = await service.create()
    await service.restart()
    const { client } = await service.joined(path(id))
    client.close(1000)
    await ended(service)
    await expectNothingLeft(service)
  })

  test('the id, the key and the offer are in no log', async () => {
    await using service = await calling()
    const id = await service.create()
    const { client } = await service.joined(path(id))
    client.close(1000)
    await ended(service)
    await refusal(service.join(path(id), { headers: { authorization: 'Bearer sk-clb-wrong' } }))
    await refusal(service.join(path('rtc_notknown')))
    await service.bindings.ledger.flush()
    const logged = JSON.stringify([await service.rows(), await service.attemptRows(), service.lines])
    for (const secret of [id, 'rtc_notknown', service.apiKey]) expect(logged).not.toContain(secret)
  })
})

describe('a call id that is not valid: 400', () => {
  test.each([
    '/backend-api/codex/rtc_',
    `/backend-api/codex/rtc_${'a'.repeat(253)}`,
    '/backend-api/codex/0F8FAD5B-D9CB-469F-A165-70867728950E',
    '/v1/live/abc',
    '/v1/live/rtc_a%20b',
    '/v1/realtime?call_id=',
    '/v1/realtime?call_id=abc',
    '/v1/realtime',
    '/backend-api/codex/ID?call_id=ID',
    '/v1/live/ID?call_id=ID',
    '/v1/live/ID?a=1&call%5Fid=x',
    '/v1/realtime?call_id=ID&call_id=ID',
  ])('%s', async (path) => {
    await using service = await calling()
    const id = await service.create()
    const asked = service.join(path.replaceAll('ID', id))
    expect(await refusedWith(asked)).toEqual([400, 'invalid_realtime_call_id'])
    expect(service.upstream.handshakes).toEqual([])
    expect(await sidebandRows(service)).toMatchObject([{ kind: 'live', status: 'error', httpStatus: 400 }])
    await expectNothingLeft(service)
  })

  test('without an upgrade the route does not exist', async () => {
    await using service = await calling()
    const id = await service.create()
    for (const [, path] of FORMS) {
      const response = await fetch(service.url + path(id), { headers: service.bearer })
      expect([response.status, (await response.json()).error.code]).toEqual([404, 'not_found'])
    }
  })
})

describe('what the upstream gets', () => {
  test('a few headers of the client, and the credentials of the account', async () => {
    await using service = await calling()
    const kept = {
      'openai-alpha': 'live=v1',
      'x-session-id': 'x',
      'session-id': 's',
      'thread-id': 't',
      originator: 'codex_cli_rs',
      'x-oai-attestation': 'proof',
      'user-agent': 'codex_cli_rs/1',
    }
    const dropped = {
      cookie: 'a=b',
      version: '1',
      'x-codex-turn-state': 'x',
      'accept-language': 'de',
      'x-api-key': 'k',
    }
    const { client, peer } = await service.joined(`/v1/live/${await service.create()}`, {
      headers: { ...kept, ...dropped, 'openai-beta': 'responses_websockets=2026-02-06, realtime=v1' },
    })
    const { sim } = service.members[0] ?? {}
    expect(peer.handshake.headers).toMatchObject({
      ...kept,
      'openai-beta': 'realtime=v1',
      authorization: `Bearer ${sim?.accessToken}`,
      'chatgpt-account-id': sim?.chatgptAccountId ?? '',
    })
    for (const name of [...Object.keys(dropped), 'x-request-id'])
      expect(peer.handshake.headers).not.toHaveProperty(name)
    client.close(1000)
    await ended(service)
    await expectNothingLeft(service)
  })

  test.each([
    ['native', '?a=1', '/v1/live/ID'],
    ['live', '?a=1&b=2', '/v1/live/ID'],
    ['realtime', '&a=1&b=%2F&a=2', '/v1/realtime?a=1&b=%2F&a=2&call_id=ID'],
    ['realtime', '&key=sk-clb-x&model=m', '/v1/realtime?model=m&call_id=ID'],
    ['realtime', '', '/v1/realtime?call_id=ID'],
  ])('the %s path with %s', async (form, query, sent) => {
    await using service = await calling()
    const id = await service.create()
    const { client, peer } = await service.joined((PATHS[form] ?? String)(id) + query)
    const { pathname, search } = new URL(peer.handshake.url)
    expect(pathname + search).toBe(sent.replace('ID', id))
    client.close(1000)
    await ended(service)
    await expectNothingLeft(service)
  })
})

describe('subprotocols', () => {
  const chosen = (service: Calling, protocol: string) => {
    for (const { sim } of service.members)
      sim.always({ on: 'handshake', headers: { 'sec-websocket-protocol': protocol } })
  }

  test('are offered as by the client, and the choice is returned', async () => {
    await using service = await calling()
    chosen(service, 'b')
    const { client, peer } = await service.joined(`/v1/live/${await service.create()}`, { protocols: ['a', 'b'] })
    expect(peer.handshake.headers['sec-websocket-protocol']?.replaceAll(' ', '')).toBe('a,b')
    expect(client.opened.headers['sec-websocket-protocol']).toBe('b')
    client.close(1000)
    await ended(service)
  })

  test.each<{ protocols: string[] }>([{ protocols: ['a', 'b'] }, { protocols: [] }, { protocols: ['ab'] }])(
    'a choice that was not offered in $protocols: 502',
    async ({ protocols }) => {
      await using service = await calling()
      chosen(service, 'c')
      const asked = service.join(`/v1/live/${await service.create()}`, { protocols })
      expect(await refusedWith(asked)).toEqual([502, 'upstream_websocket_subprotocol_mismatch'])
      await expectNothingLeft(service)
    },
  )

  test('the one with the key of a browser is not sent', async () => {
    await using service = await calling({ settings: { corsOrigins: 'http://localhost:3000' } })
    chosen(service, 'realtime')
    const id = await service.create()
    const client = await connectSocket(`${service.socketUrl}/v1/realtime?call_id=${id}`, {
      headers: { origin: 'http://localhost:3000' },
      protocols: ['realtime', `openai-insecure-api-key.${service.apiKey}`],
    })
    const peer = service.upstream.liveSockets.at(-1)
    expect(peer?.handshake.headers['sec-websocket-protocol']).toBe('realtime')
    expect(client.opened.headers['sec-websocket-protocol']).toBe('realtime')
    client.close(1000)
    await ended(service)
    await expectNothingLeft(service)
  })
})

describe('how a call ends', () => {
  const CLOSES = [
    { code: 1000, reason: 'done', passed: [1000, 'done'] },
    { code: 1001, reason: '', passed: [1001, ''] },
    { code: 1011, reason: 'é'.repeat(61), passed: [1011, 'é'.repeat(61)] },
    { code: 1014, reason: 'x', passed: [1014, 'x'] },
    { code: 3000, reason: 'x', passed: [3000, 'x'] },
    { code: 4999, reason: 'bye', passed: [4999, 'bye'] },
  ]
  const DONE = [1000, 1001]

  test.each(CLOSES)('the client closes with $code $reason', async ({ code, reason, passed }) => {
    await using service = await calling()
    const { client, peer } = await service.joined(`/v1/live/${await service.create()}`)
    client.close(code, reason)
    await peer.until(({ handshake }) => handshake.closed !== null)
    expect([peer.handshake.closed?.code, peer.handshake.closed?.reason]).toEqual(passed as [number, string])
    await ended(service)
    expect(await sidebandRows(service)).toMatchObject([{ status: 'ok', httpStatus: 101 }])
    await expectNothingLeft(service)
  })

  test.each(CLOSES)('the upstream closes with $code $reason', async ({ code, reason, passed }) => {
    await using service = await calling()
    const { client, peer } = await service.joined(`/v1/live/${await service.create()}`)
    peer.send('last')
    peer.close(code, reason)
    const closed = await client.closed
    expect(client.events).toMatchObject([{ text: 'last' }])
    expect([closed.code, closed.reason]).toEqual(passed as [number, string])
    await ended(service)
    const [row] = await sidebandRows(service)
    expect(row).toMatchObject(
      DONE.includes(code) ? { status: 'ok' } : { status: 'error', httpStatus: 101, errorCode: 'stream_incomplete' },
    )
    await expectNothingLeft(service)
  })

  test('the client closes without a code: the upstream gets 1011', async () => {
    await using service = await calling()
    const { client, peer } = await service.joined(`/v1/live/${await service.create()}`)
    client.close()
    await peer.until(({ handshake }) => handshake.closed !== null)
    expect(peer.handshake.closed?.code).toBe(1011)
    await ended(service)
  })

  test('the client disappears: the upstream gets 1011, and the row says cancelled', async () => {
    await using service = await calling()
    const { client, peer } = await service.joined(`/v1/live/${await service.create()}`)
    client.terminate()
    await peer.until(({ handshake }) => handshake.closed !== null)
    expect(peer.handshake.closed?.code).toBe(1011)
    await ended(service)
    expect(await sidebandRows(service)).toMatchObject([{ status: 'cancelled' }])
    await expectNothingLeft(service)
  })

  test('the upstream disappears: the client gets 1011', async () => {
    await using service = await calling()
    const { client, peer } = await service.joined(`/v1/live/${await service.create()}`)
    peer.terminate()
    expect((await client.closed).code).toBe(1011)
    await ended(service)
    expect(await sidebandRows(service)).toMatchObject([{ status: 'error', errorCode: 'stream_incomplete' }])
    await expectNothingLeft(service)
  })

  test('draining ends it with 1012 on both sides', async () => {
    await using service = await calling()
    const { client, peer } = await service.joined(`/v1/live/${await service.create()}`)
    expect(service.bindings.turns.size).toBe(1)
    for (const turn of service.bindings.turns) turn.abort(new AppError('draining'))
    expect((await client.closed).code).toBe(1012)
    await peer.until(({ handshake }) => handshake.closed !== null)
    expect(peer.handshake.closed?.code).toBe(1012)
    await expectNothingLeft(service)
  })
})

describe('large frames', () => {
  test.each(['text', 'binary'])('16 MiB of %s pass both ways', async (type) => {
    await using service = await calling()
    const { client, peer } = await service.joined(`/v1/live/${await service.create()}`)
    const frame = type === 'text' ? text(16 * MIB) : new Uint8Array(16 * MIB)
    client.send(frame)
    await peer.until(({ received }) => received.length === 1)
    expect(Buffer.byteLength(peer.received[0] ?? '')).toBe(16 * MIB)
    peer.send(frame)
    const event = await client.next()
    expect(event.type === '(binary)' ? (event.bytes as Buffer).length : String(event.text).length).toBe(16 * MIB) // as: it is one
    client.close(1000)
    await ended(service)
    await expectNothingLeft(service)
  })

  test.each(['text', 'binary'])('a byte more from the client closes both with 1009 (%s)', async (type) => {
    await using service = await calling()
    const { client, peer } = await service.joined(`/v1/live/${await service.create()}`)
    client.send(type === 'text' ? text(16 * MIB + 1) : new Uint8Array(16 * MIB + 1))
    expect((await client.closed).code).toBe(1009)
    await peer.until(({ handshake }) => handshake.closed !== null)
    expect([peer.handshake.closed?.code, peer.received.length]).toEqual([1009, 0])
    await ended(service)
    await expectNothingLeft(service)
  })

  test.each(['text', 'binary'])('a byte more from the upstream closes both with 1009 (%s)', async (type) => {
    await using service = await calling()
    const { client, peer } = await service.joined(`/v1/live/${await service.create()}`)
    peer.send(type === 'text' ? text(16 * MIB + 1) : new Uint8Array(16 * MIB + 1))
    expect((await client.closed).code).toBe(1009)
    await peer.until(({ handshake }) => handshake.closed !== null)
    expect([peer.handshake.closed?.code, client.events.length]).toEqual([1009, 0])
    await ended(service)
    await expectNothingLeft(service)
  })
})

describe('back-pressure', () => {
  const FRAMES = 64
  /** In this time everything would have been taken, were it not held back. */
  const roundTrips = async (service: SocketWorld) => {
    for (let n = 0; n < 200; n++) await (await fetch(`${service.url}/health`)).text()
  }

  test('a client that does not read stops the upstream, and gets everything in order afterwards', async () => {
    await using service = await calling()
    const { client, peer } = await service.joined(`/v1/live/${await service.create()}`)
    client.pause()
    for (let n = 0; n < FRAMES; n++) peer.send(`${n} ${text(MIB)}`)
    await roundTrips(service)
    expect(peer.bufferedBytes).toBeGreaterThan((FRAMES / 2) * MIB)
    client.resume()
    for (let n = 0; n < FRAMES; n++) expect(String((await client.next()).text).split(' ')[0]).toBe(String(n))
    client.close(1000)
    await ended(service)
    await expectNothingLeft(service)
  })

  test('frames that wait for the client arrive before the close of the upstream', async () => {
    await using service = await calling()
    const { client, peer } = await service.joined(`/v1/live/${await service.create()}`)
    client.pause()
    for (let n = 0; n < 16; n++) peer.send(`${n} ${text(MIB)}`)
    peer.close(4000, 'over')
    client.resume()
    expect(await client.closed).toEqual({ code: 4000, reason: 'over' })
    expect(client.events.map(({ text: words }) => String(words).split(' ')[0])).toEqual(
      Array.from({ length: 16 }, (_, n) => String(n)),
    )
    await ended(service)
    await expectNothingLeft(service)
  })

  test('an upstream that does not read stops the client, and gets everything in order afterwards', async () => {
    await using service = await calling()
    const { client, peer } = await service.joined(`/v1/live/${await service.create()}`)
    peer.pause()
    for (let n = 0; n < FRAMES; n++) client.send(`${n} ${text(MIB)}`)
    await roundTrips(service)
    expect(client.bufferedBytes).toBeGreaterThan((FRAMES / 2) * MIB)
    peer.resume()
    await peer.until(({ received }) => received.length === FRAMES)
    expect(peer.received.map((frame) => String(frame).split(' ')[0])).toEqual(
      Array.from({ length: FRAMES }, (_, n) => String(n)),
    )
    client.close(1000)
    await ended(service)
    await expectNothingLeft(service)
  })
})

describe('what an open call counts as', () => {
  test('an open call is a stream of its account, a running request and a gauge', async () => {
    await using service = await calling()
    const { client } = await service.joined(`/v1/live/${await service.create()}`)
    const metrics = async () =>
      (await (await fetch(`${service.url}/metrics`)).text()).match(/^sluice_live_calls .*$/m)?.[0]
    expect(service.bindings.pool.all().map(({ inFlight }) => inFlight)).toEqual([1])
    expect(await metrics()).toBe('sluice_live_calls 1')
    client.close(1000)
    await ended(service)
    expect(await metrics()).toBe('sluice_live_calls 0')
    await expectNothingLeft(service)
  })

  test('the limits of open sockets apply, and the connection counts as no further request', async () => {
    await using service = await calling({ settings: { socketsPerKey: 1 } })
    const limits = [{ limitType: 'requests' as const, limitWindow: 'daily' as const, maxValue: 1, modelFilter: '' }]
    const { key } = await service.key({ limits })
    const headers = { authorization: `Bearer ${key}`, 'user-agent': 'test' }
    const created = await fetch(`${service.url}/v1/live`, { method: 'POST', headers, body: 'v=0' })
    await created.text()
    const id = created.headers.get('location')?.split('/').at(-1) ?? ''
    const { client } = await service.joined(`/v1/live/${id}`, { headers })
    expect(await refusedWith(service.join(`/v1/live/${id}`, { headers }))).toEqual([429, 'too_many_sockets'])
    client.close(1000)
    await ended(service)
    const again = await service.joined(`/v1/live/${id}`, { headers })
    again.client.close(1000)
    await ended(service, 2)
    await expectNothingLeft(service)
  })
})
