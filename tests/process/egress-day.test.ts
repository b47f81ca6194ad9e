/**
 * A day of two accounts in different pools, through an HTTP and a SOCKS proxy that record connections: every socket of
 * an account uses its own pool, and none the environment or a direct connection.
 */
import { expect, test } from 'bun:test'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { createEndpoint } from '../../src/model/egress/endpoints.ts'
import { bindAccount, createPool } from '../../src/model/egress/pools.ts'
import { refreshCatalogs } from '../../src/upstream/models.ts'
import { probe } from '../../src/upstream/probe.ts'
import { redeem } from '../../src/upstream/redeem.ts'
import { fetchResetCredits } from '../../src/upstream/reset-credits.ts'
import { fetchUsage } from '../../src/upstream/usage.ts'
import { ACTOR, create, expectCompleted, type SocketWorld, startSocketWorld, write } from '../sockets/ground.ts'
import { codexBody } from '../support/app.ts'
import { freePort } from '../support/free-port.ts'
import { connectSocket } from '../support/socket-client.ts'
import { until } from '../support/until.ts'
import { HIDDEN_HOST, startEgressProxy } from './egress-proxy.ts'
import { startSocksProxy } from './socks-proxy.ts'

/** Forwards to `targetPort` and keeps what clients sent. */
const startTap = async (targetPort: number) => {
  const sockets = new Set<Socket>()
  const seen = { text: '' }
  const server = createServer((client) => {
    const target = connect(targetPort, '127.0.0.1')
    for (const socket of [client, target]) sockets.add(socket.on('error', () => {}))
    client.on('data', (bytes) => {
      seen.text += bytes.toString('latin1')
    })
    client.pipe(target).pipe(client)
    client.on('close', () => target.destroy())
    target.on('close', () => client.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port, // as: it listens on a port
    text: () => seen.text,
    /** Method and path of every request and handshake. */
    lines: () =>
      [...seen.text.matchAll(/(GET|POST) (\S+) HTTP\/1\.1\r\n/g)].map(([, method, path]) => `${method} ${path}`),
    async [Symbol.asyncDispose]() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

const HOST = `http://${HIDDEN_HOST}`

type Service = SocketWorld

/** All requests of Sluice to ChatGPT and OpenAI for one account, with a key that can use no other. */
const workFor = async (service: Service, id: string) => {
  const { bindings, url, socketUrl } = service
  const { proxyDeps, pool, resetCredits, db, log } = bindings
  const deps = { ...proxyDeps.upstream, credentials: proxyDeps.credentials, pool, resetCredits, db, log }
  const { key } = await service.key({ name: id, assignedAccountIds: [id] })
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const send = async (path: string, body: unknown, more: Record<string, string> = {}) => {
    const isText = typeof body === 'string'
    const sent = body === undefined || isText || body instanceof FormData ? body : JSON.stringify(body)
    const { 'content-type': _, ...bare } = headers
    const response = await fetch(url + path, {
      method: 'POST',
      headers: { ...(body instanceof FormData ? bare : headers), ...more },
      body: sent as BodyInit, // as: one of the three
    })
    const text = await response.text()
    expect([path, response.status, response.status < 300 ? '' : text]).toEqual([path, response.status, ''])
    return { response, text }
  }
  await send('/backend-api/codex/responses', codexBody())
  await send('/v1/chat/completions', { model: 'gpt-5.5', messages: [{ role: 'user', content: 'hello' }] })
  const socket = await connectSocket(`${socketUrl}/backend-api/codex/responses`, { headers })
  expectCompleted(await socket.turn(create()))
  socket.terminate()
  await send('/backend-api/codex/alpha/search', { query: 'x' })
  await send('/v1/images/generations', { prompt: 'A square' })
  const audio = new FormData()
  audio.append('file', new File(['RIFF'], 'a.wav', { type: 'audio/wav' }))
  audio.append('model', 'gpt-4o-transcribe')
  await send('/v1/audio/transcriptions', audio)
  const file = JSON.parse((await send('/backend-api/files', FILE)).text) as { file_id: string }
  await send(`/backend-api/files/${file.file_id}/uploaded`, undefined)
  await send('/v1/warmup/force', {})
  const call = await send('/v1/realtime/calls', 'v=0', { 'content-type': 'application/sdp' })
  const callId = (call.response.headers.get('location') ?? '').replace('/v1/realtime/calls/', '')
  const sideband = await connectSocket(`${socketUrl}/v1/live/${callId}`, { headers })
  sideband.terminate()
  await fetchUsage(deps, id)
  await refreshCatalogs(deps, { accountIds: [id], versions: ['0.99.0'] })
  await fetchResetCredits(deps, id)
  await redeem(deps, { accountId: id, creditId: null, requestId: `r-${id}` })
  expect((await probe(deps, id, 'gpt-5.5')).ok).toBe(true)
  const { accessToken } = await proxyDeps.credentials.fresh(id)
  await proxyDeps.credentials.refresh(id, accessToken)
}

const FILE = { file_name: 'a.txt', file_size: 3, use_case: 'codex' }

/** Signs in to the account again in the browser, and with a code. Returns the codes that went to OpenAI. */
const signInAgain = async (service: Service, place: number, egressPoolId: string | null) => {
  const { bindings, upstream, members } = service
  const { id, sim } = members[place] ?? { id: null, sim: upstream.addAccount() }
  const { signIns } = bindings
  const begin = { accountId: id, egressPoolId, actor: ACTOR, home: service.url }
  const browser = await signIns.begin({ ...begin, method: 'browser' })
  const callback = upstream.signIns.approve(signIns.getOffer(browser).authorizationUrl ?? '', sim)
  const flow = await signIns.receive(callback, { who: ACTOR.id, flowId: browser.id, address: null })
  expect([flow.status, flow.errorMessage]).toEqual(['success', null])
  await signIns.begin({ ...begin, method: 'device' })
  await signIns.cancel((await signIns.status(ACTOR.id, null)).id, ACTOR)
  return new URL(callback).searchParams.get('code') ?? ''
}

const DAY = [
  'POST /backend-api/codex/responses',
  'GET /backend-api/codex/responses',
  'GET /backend-api/codex/models?client_version=0.99.0',
  'GET /backend-api/wham/usage',
  'GET /backend-api/wham/rate-limit-reset-credits',
  'POST /backend-api/wham/rate-limit-reset-credits/consume',
  'POST /backend-api/codex/alpha/search',
  'POST /backend-api/codex/images/generations',
  'POST /backend-api/transcribe',
  'POST /backend-api/files',
  'POST /oauth/token',
  'POST /api/accounts/deviceauth/usercode',
]

test('every socket of a day goes through the pool of its account', async () => {
  const taps: { [Symbol.asyncDispose](): Promise<void> }[] = []
  const environment = {
    CODEX_LB_UPSTREAM_BASE_URL: `${HOST}/backend-api`,
    CODEX_LB_AUTH_BASE_URL: HOST,
    SLUICE_REALTIME_BASE_URL: HOST,
    CODEX_LB_OAUTH_CALLBACK_PORT: String(freePort()),
  }
  const proxies: Record<string, string> = {}
  await using service = await startSocketWorld({
    accounts: 2,
    environment,
    proxies,
    settings: { apiKeyAuthEnabled: true },
  })
  const [tapA, tapB, tapElse] = await Promise.all([1, 2, 3].map(() => startTap(service.upstreamPort)))
  if (!tapA || !tapB || !tapElse) throw new Error('There are three.')
  taps.push(tapA, tapB, tapElse)
  await using http = await startEgressProxy(tapA.port)
  await using socks = await startSocksProxy(tapB.port)
  await using ofEnvironment = await startEgressProxy(tapElse.port)
  for (const name of ['HTTP_PROXY', 'ALL_PROXY', 'WS_PROXY']) proxies[name] = ofEnvironment.url
  const { random, sealer } = service.bindings
  const poolOver = async (name: string, url: string): Promise<string> => {
    const { protocol, hostname: host, port, username, password } = new URL(url)
    const scheme = protocol.slice(0, -1) as 'http' | 'socks5h' // as: those of the two proxies
    const login = { username, password: decodeURIComponent(password) }
    const input = { name, scheme, host, port: Number(port), ...login, isActive: true }
    return write(service, async (tx) => {
      const { id } = await createEndpoint(tx, input, { sealer, random, actor: ACTOR })
      return (await createPool(tx, { name, endpointIds: [id], isActive: true }, { random, actor: ACTOR })).id
    })
  }
  const pools = [await poolOver('A', http.url), await poolOver('B', socks.url('socks5h'))]
  const codes: string[] = []
  for (const [place, { id, sim }] of service.members.entries()) {
    await write(service, (tx) => bindAccount(tx, id, pools[place] ?? null, ACTOR))
    sim.setResetCredits([{ id: `credit-${place}`, expiresAt: Date.now() + 86_400_000, grantedAt: 0 }])
  }
  // One after the other and then in parallel: connections are kept, and neither may carry the other's requests.
  for (const { id } of service.members) await workFor(service, id)
  await Promise.all(
    service.members.map(async (_, place) => {
      codes[place] = await signInAgain(service, place, null)
    }),
  )
  await Promise.all(service.members.map(({ id }) => workForAgain(service, id)))
  const newCode = await signInAgain(service, 2, pools[1] ?? null)
  await until(() => service.bindings.turns.size === 0, 'nothing running')

  const [linesA, linesB] = [tapA.lines(), tapB.lines()]
  for (const line of DAY) expect([line, linesA.includes(line), linesB.includes(line)]).toEqual([line, true, true])
  for (const pattern of [/^POST .*files\/.+\/uploaded$/, /realtime\/calls/, /^GET \/v1\/live\/rtc_/])
    expect([pattern, linesA.some((line) => pattern.test(line)), linesB.some((line) => pattern.test(line))]).toEqual([
      pattern,
      true,
      true,
    ])
  const marks = service.members.map(({ sim }, place) => [sim.chatgptAccountId, codes[place] ?? 'no code'])
  for (const [place, tap] of [tapA, tapB].entries()) {
    for (const own of marks[place] ?? []) expect(tap.text()).toContain(own)
    for (const other of marks[1 - place] ?? []) expect(tap.text()).not.toContain(other)
  }
  expect([tapA.text().includes(newCode), tapB.text().includes(newCode)]).toEqual([false, true])
  expect([tapElse.text(), ofEnvironment.passed]).toEqual(['', []])
  expect(new Set([...http.passed.map((target) => target.replace('CONNECT ', '')), ...socks.passed])).toEqual(
    new Set([`${HIDDEN_HOST}:80`]),
  )
  // Nothing reached the upstream on another route.
  const { requests, handshakes } = service.upstream
  const arrived = requests.filter(({ method }) => method !== 'WS').length + handshakes.length
  expect(linesA.length + linesB.length).toBe(arrived)
  for (const tap of taps) await tap[Symbol.asyncDispose]()
}, 120_000)

/** Without what can be done only once. */
const workForAgain = async (service: Service, id: string) => {
  const { proxyDeps } = service.bindings
  const deps = { ...proxyDeps.upstream, credentials: proxyDeps.credentials }
  await Promise.all([fetchUsage(deps, id), fetchResetCredits(deps, id), probe(deps, id, 'gpt-5.5')])
}
