/** What happens to every request on its way in and out: Host, request id, address, headers, assets, the log line. */

import { afterAll, expect, test } from 'bun:test'
import { isLocal } from '../../src/auth/caller.ts'
import { accessLog } from '../../src/http/access-log.ts'
import { ASSETS, serveAsset } from '../../src/http/assets.ts'
import { open } from '../../src/http/gates.ts'
import { createHandlers } from '../../src/http/handlers.ts'
import { representation } from '../../src/http/representation.ts'
import { parseCidr } from '../../src/lib/cidr.ts'
import { testApp } from '../support/app.ts'
import { getProblem, probe } from './probe.ts'

const whoAmI = createHandlers(open('test'), (c) =>
  c.json({ id: c.var.requestId, ip: c.var.clientIp, isLocal: isLocal(c) }),
)
const { ask, app } = probe((routes) => {
  routes.get('/who', ...whoAmI)
  routes.get('/api/who', ...whoAmI)
  routes.get('/raw', open('test'), () => new Response('bytes', { headers: { 'content-type': 'text/plain' } }))
  routes.get('/page', open('test'), (c) => c.html('<p>'))
  routes.get('/kind', open('test'), (c) => c.text(representation(c)))
  routes.get('/api/kind', open('test'), (c) => c.text(representation(c)))
  routes.get('/assets/:file', ...serveAsset)
})

test.each(['a,b', 'localhost, localhost', 'x/y@z', 'user@host', 'a b', '<x>', 'host:80?'])(
  'Host %p is rejected',
  async (host) => {
    const response = await ask('GET /api/who', { headers: { host } })
    expect([response.status, (await getProblem(response)).code]).toEqual([400, 'bad_host'])
  },
)

test.each(['localhost', '127.0.0.1:2455', '[::1]:2455', 'sluice.example'])('Host %s passes', async (host) => {
  expect((await ask('GET /who', { headers: { host } })).status).toBe(200)
})

test('a valid request id is kept, another one is replaced, and the response has it', async () => {
  for (const name of ['x-request-id', 'request-id']) {
    const kept = await ask('GET /raw', { headers: { [name]: 'turn-1:a.b_c' } })
    expect(kept.headers.get('x-request-id')).toBe('turn-1:a.b_c')
  }
  for (const bad of ['has space', 'x'.repeat(129), '"quoted"']) {
    const response = await ask('GET /who', { headers: { 'x-request-id': bad } })
    expect(response.headers.get('x-request-id')).toMatch(/^req_\w{22}$/)
    expect(await response.json()).toMatchObject({ id: response.headers.get('x-request-id') })
  }
  expect((await ask('GET /nothing')).headers.get('x-request-id')).toMatch(/^req_/)
})

test('a forwarded header makes a request remote, unless its proxy is trusted', async () => {
  const forwarded = { 'x-forwarded-for': '127.0.0.1' }
  expect(await (await ask('GET /who')).json()).toMatchObject({ ip: '127.0.0.1', isLocal: true })
  expect(await (await ask('GET /who', { headers: forwarded })).json()).toMatchObject({ isLocal: false })
  const env = { FIREWALL_TRUST_PROXY_HEADERS: true, FIREWALL_TRUSTED_PROXY_CIDRS: [parseCidr('10.0.0.0/8')] }
  const trusting = probe((routes) => routes.get('/who', ...whoAmI), { env })
  const response = await trusting.ask('GET /who', { peer: '10.0.0.1', headers: { 'x-forwarded-for': '203.0.113.5' } })
  expect(await response.json()).toMatchObject({ ip: '203.0.113.5', isLocal: false })
})

test('pages can load resources only from here, and only assets are cacheable', async () => {
  const page = await ask('GET /page')
  expect(page.headers.get('content-security-policy')?.split('; ')).toEqual([
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ])
  expect(page.headers.get('cache-control')).toBe('no-store')
  expect(page.headers.get('referrer-policy')).toBe('same-origin')
  expect((await ask('GET /api/who')).headers.get('cache-control')).toBe('no-store')
  const raw = await ask('GET /raw')
  expect(raw.headers.get('cache-control')).toBe('no-store')
  expect((await ask('GET /who')).headers.get('cache-control')).toBe('no-store')
  expect(raw.headers.get('x-content-type-options')).toBe('nosniff')
})

test('htmx gets a fragment, a browser a page, others JSON; an API address opened in a browser shows JSON', async () => {
  const kind = async (path: string, headers: Record<string, string> = {}) =>
    (await ask(`GET ${path}`, { headers })).text()
  expect(await kind('/kind')).toBe('json')
  expect(await kind('/kind', { accept: 'text/html' })).toBe('page')
  expect(await kind('/api/kind', { accept: 'text/html' })).toBe('json')
  expect(await kind('/kind', { 'hx-request': 'true', accept: 'text/html' })).toBe('fragment')
})

test.each(Object.values(ASSETS))('%s is cached forever, plain or compressed', async (path) => {
  const plain = await ask(`GET ${path}`)
  expect(plain.status).toBe(200)
  expect(plain.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
  const zipped = await ask(`GET ${path}`, { headers: { 'accept-encoding': 'br, gzip' } })
  expect(zipped.headers.get('content-encoding')).toBe('gzip')
  expect(new TextDecoder().decode(Bun.gunzipSync(await zipped.arrayBuffer()))).toBe(await plain.text())
})

test('an asset of another build is not found, and is not cacheable', async () => {
  const { status, headers } = await ask('GET /assets/app-000000000000.css')
  expect([status, headers.get('cache-control')]).toEqual([404, 'no-store'])
})

test.each([0, 3, 100])('with %d accounts the first page stays small, with its style and scripts', async (accounts) => {
  const service = await testApp({ accounts })
  const html = await (await service.ask('GET /dashboard', { headers: { accept: 'text/html' } })).text()
  expect(html).toContain('</html>')
  expect(Buffer.byteLength(html)).toBeLessThanOrEqual(40 * 1024)
  const loaded = [...html.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path = '']) => path)
  expect(loaded.toSorted()).toEqual(Object.values(ASSETS).toSorted())
  const sizes = await Promise.all(
    loaded.map(async (path) => {
      const response = await ask(`GET ${path}`, { headers: { 'accept-encoding': 'gzip' } })
      expect(response.headers.get('content-encoding')).toBe('gzip')
      return (await response.arrayBuffer()).byteLength
    }),
  )
  expect(sizes.reduce((sum, bytes) => sum + bytes, Bun.gzipSync(html).length)).toBeLessThanOrEqual(60 * 1024)
})

test('one log line per request, with the route pattern and no query', async () => {
  const { ask: send, lines } = probe((routes) => {
    routes.use(accessLog)
    routes.get('/invite/:token', open('test'), (c) => c.text(''))
    routes.get('/invite/:token{.+}', open('test'), (c) => c.text(''))
    routes.get('/health', open('test'), (c) => c.text(''))
    routes.get('/down', open('test'), (c) => c.text('', 503))
    routes.get('/v1/models', open('test'), (c) => c.text(''))
  })
  await send('GET /invite/secret?key=secret', { headers: { authorization: 'Bearer secret' } })
  await send('GET /health')
  await send('GET /down')
  await send('GET /v1/models')
  await send('GET /unknown?q=secret')
  expect(JSON.stringify(lines)).not.toContain('secret')
  expect(lines.map(({ level, fields }) => [level, fields.path, fields.status])).toEqual([
    ['info', '/invite/:token', 200],
    ['debug', '/health', 200],
    ['warn', '/down', 503],
    ['debug', '/v1/models', 200],
    ['info', '/unknown', 404],
  ])
})

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch: (request, self) => app.fetch(request, { ...probeBindings, server: self } as never), // as: a part of what a request can access
})
const probeBindings = {
  clock: { now: () => 0, monotonic: () => 0 },
  random: { orderedId: () => 'req_test' },
  env: { FIREWALL_TRUST_PROXY_HEADERS: false },
  log: { error: () => {} },
}
afterAll(() => server.stop(true))

/** Sends bytes as they are and returns the whole answer: no client library sends a bad Host. */
const sendRaw = async (text: string): Promise<string> => {
  let answer = ''
  const { promise, resolve } = Promise.withResolvers<void>()
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port: server.port!,
    socket: {
      data: (_socket, bytes) => {
        answer += bytes.toString()
      },
      close: () => resolve(),
    },
  })
  socket.write(text)
  await promise
  return answer
}

test.each([
  ['two Host headers', 'Host: localhost\r\nHost: localhost'],
  ['a Host with a path', 'Host: x/y@z'],
  ['a Host with an impossible port', 'Host: localhost:99999'],
  ['an empty Host', 'Host:'],
])('on the wire, %s gets 400 in the error format of the requested path', async (_name, header) => {
  const answer = await sendRaw(`GET /v1/models HTTP/1.1\r\n${header}\r\nConnection: close\r\n\r\n`)
  expect(answer).toStartWith('HTTP/1.1 400')
  expect(answer).toContain('"code":"bad_host"')
  expect(answer).toContain('"type":"invalid_request_error"')
})

test('the address of the socket is found, and a real request from this machine is local', async () => {
  const response = await fetch(`http://127.0.0.1:${server.port}/who`)
  expect(await response.json()).toEqual({ id: 'req_test', ip: '127.0.0.1', isLocal: true })
})
