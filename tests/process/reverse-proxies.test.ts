/** docs/reverse-proxies.md: its configurations in the real proxies, with Sluice set up as documented. */
import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { CADDY, CHROMIUM, ensureProgram, NGINX } from '../../scripts/programs.ts'
import { readConfig } from '../../src/boot/env.ts'
import { anyContains, parseCidr } from '../../src/lib/cidr.ts'
import { MEASURES } from '../../views/measures.ts'
import { launchBrowser, type TestBrowser, getText as textIn } from '../browser/browser.ts'
import { codexBody, isTerminal, parseEvents, type StreamEvent } from '../support/app.ts'
import { getCodeBlocks } from '../support/fenced.ts'
import { PATIENCE_MS, until } from '../support/until.ts'
import { answers, getText, isJson } from '../support/upstream/script.ts'
import { CLIENT_ADDRESS, HOST, type Network, ORIGIN, openNetwork } from './reverse-proxies-network.ts'
import { MANUAL, type ProxyServer, startCaddy, startNginx, startProxyManager } from './reverse-proxies-servers.ts'
import { PASSWORD, startWorld, type World } from './reverse-proxies-world.ts'

setDefaultTimeout(120_000)

const nginx = await ensureProgram(NGINX)
const caddy = await ensureProgram(CADDY)
const chromium = await ensureProgram(CHROMIUM)

/** Elsewhere it is skipped and counted; with `CI=true` it must run. */
const CAN_RUN = process.platform === 'linux' && [nginx, caddy, chromium].every((path) => path !== undefined)
const onLinux = describe.skipIf(!CAN_RUN && process.env.CI !== 'true')
if (!CAN_RUN) console.log('note: the reverse proxies are NOT RUN: that takes Linux, nginx, Caddy and Chromium')

const NATIVE = '/backend-api/codex/responses'
const AGENT = 'codex_exec/0.169.0 (Debian 12.0.0; x86_64) xterm'
const BIG_BYTES = 20 * 1024 * 1024

let world: World
let browser: TestBrowser
const proxies = new Map<string, ProxyServer>()
const networks = new Map<string, Network>()

const STARTS = { nginx: startNginx, 'Nginx Proxy Manager': startProxyManager, Caddy: startCaddy } as const
type Name = keyof typeof STARTS
const NAMES = Object.keys(STARTS) as Name[] // as: a record of all names
/** Each has an account of its own to pause and take up again. */
const ACCOUNTS: Record<Name, string> = {
  nginx: 'ada@example.test',
  'Nginx Proxy Manager': 'grace@example.test',
  Caddy: 'alan@example.test',
}

const getNetwork = (name: string): Network => {
  const network = networks.get(name)
  if (!network) throw new Error(`${name} was not started.`)
  return network
}

onLinux('with the settings of the document', () => {
  beforeAll(async () => {
    ;[world, browser] = await Promise.all([
      startWorld({ headings: ['Set up Sluice'], accounts: Object.values(ACCOUNTS) }),
      launchBrowser(),
    ])
    await Promise.all(NAMES.map(start))
  }, 120_000)

  afterAll(async () => {
    for (const one of [...networks.values(), ...proxies.values(), browser, world]) await one?.[Symbol.asyncDispose]()
  })

  afterEach(() => {
    const seen = [...world.upstream.oddities]
    world.gate.open()
    world.upstream.reset()
    expect(seen).toEqual([])
  })

  describe.each(NAMES)('%s', (name) => {
    test('passes on every event before the next one is sent', async () => {
      const { events, seen } = await beginSlowly(getNetwork(name))
      while (!isTerminal(seen.at(-1) ?? '')) {
        const [event] = await Promise.all([getNext(events), world.gate.next()])
        seen.push(event.type)
      }
      expect(seen.filter((type) => type === 'response.output_text.delta')).toHaveLength(5)
      expect(seen.at(-1)).toBe('response.completed')
    })

    test('cancels the upstream request of a client that disconnected', async () => {
      const leaving = new AbortController()
      await beginSlowly(getNetwork(name), leaving.signal)
      expect(world.upstream.openStreams).toBe(1)
      leaving.abort()
      await until(() => world.upstream.openStreams === 0, world.server.output)
    })

    test('opens sockets, and a request uses one', async () => {
      const headers = { authorization: `Bearer ${world.key}`, 'user-agent': AGENT }
      const socket = await getNetwork(name).socket(NATIVE, headers)
      socket.send({ type: 'response.create', ...codexBody() })
      const seen: string[] = []
      while (!isTerminal(seen.at(-1) ?? '')) seen.push((await socket.next()).type)
      socket.close()
      expect(seen.at(-1)).toBe('response.completed')
    })

    test.each([
      ['uncompressed', {}, (text: string) => text],
      [
        'compressed',
        { 'content-encoding': 'zstd' },
        (text: string) => new Uint8Array(Bun.zstdCompressSync(text, { level: 1 })),
      ],
    ] as const)('accepts a body of 20 MB, %s', async (_how, headers, encode) => {
      const text = noise(BIG_BYTES)
      const body = encode(JSON.stringify(codexBody(text)))
      expect(body.length).toBeGreaterThan(BIG_BYTES * 0.7)
      const response = await ask(getNetwork(name), body, { headers: { ...headers, session_id: 'with-an-underscore' } })
      expect(response.status).toBe(200)
      expect(parseEvents(await response.text()).at(-1)?.type).toBe('response.completed')
      // Questions about usage come in between.
      const received = world.upstream.requests.findLast(({ path }) => path.endsWith('/codex/responses'))
      expect(received?.headers.session_id).toBe('with-an-underscore')
      expect(Bun.hash(saidIn(received?.body))).toBe(Bun.hash(text))
    })

    test('distinguishes our pages from those of other sites, and passes on the client address', async () => {
      expect((await signIn(getNetwork(name), 'https://elsewhere.example.com')).status).toBe(403)
      const { requests } = await whileSignedIn(getNetwork(name), async (api) => {
        await (await ask(getNetwork(name), JSON.stringify(codexBody()))).text()
        const log = () => api<{ requests: { clientIp: string }[] }>('/api/request-logs')
        await until(async () => (await log()).requests.length > 0, world.server.output)
        return log()
      })
      expect(new Set(requests.map(({ clientIp }) => clientIp))).toEqual(new Set([CLIENT_ADDRESS]))
    })
  })

  /** In parallel, because most of it waits for the page. */
  test('a browser signs in, sees live changes, and its doctor reports no problems', async () => {
    await Promise.all(NAMES.map(useDashboard))
  })
})

test('Traefik, which is not run: its example is a compose file consistent with itself and with our settings', () => {
  const [text = ''] = getCodeBlocks(MANUAL, 'Traefik', 'yaml')
  const compose = Bun.YAML.parse(text) as Compose // as: the used fields are checked below
  const { traefik, sluice } = compose.services
  const { PUBLIC_URL, FIREWALL_TRUST_PROXY_HEADERS, FIREWALL_TRUSTED_PROXY_CIDRS } = readConfig(sluice.environment)
  expect([PUBLIC_URL, FIREWALL_TRUST_PROXY_HEADERS]).toEqual([ORIGIN, true])
  const { ipv4_address: address } = traefik.networks.edge
  expect(anyContains(FIREWALL_TRUSTED_PROXY_CIDRS, address)).toBe(true)
  expect(anyContains([parseCidr(compose.networks.edge.ipam.config[0].subnet)!], address)).toBe(true)
  const labels = Object.fromEntries(sluice.labels.map((label) => label.split(/=(.*)/s)))
  const router = 'traefik.http.routers.sluice'
  expect(labels[`${router}.rule`]).toBe(`Host(\`${HOST}\`)`)
  expect(traefik.command).toContain(`--entrypoints.${labels[`${router}.entrypoints`]}.address=:443`)
  expect(traefik.command.join('\n')).toContain(`--certificatesresolvers.${labels[`${router}.tls.certresolver`]}.acme.`)
  expect(labels['traefik.http.services.sluice.loadbalancer.server.port']).toBe(String(readConfig({}).PORT))
})

/** The part of the compose file that is about the two. */
interface Compose {
  services: {
    traefik: { command: string[]; networks: { edge: { ipv4_address: string } } }
    sluice: { environment: Record<string, string>; labels: string[] }
  }
  networks: { edge: { ipam: { config: [{ subnet: string }] } } }
}

const start = async (name: Name): Promise<void> => {
  const proxy = await STARTS[name]((name === 'Caddy' ? caddy : nginx) ?? '', { port: world.server.port })
  proxies.set(name, proxy)
  networks.set(name, await openNetwork(proxy.port))
}

const ask = (
  network: Network,
  body: string | Uint8Array<ArrayBuffer>,
  { headers = {}, signal }: { headers?: Record<string, string>; signal?: AbortSignal | undefined } = {},
): Promise<Response> =>
  network.fetch(NATIVE, {
    method: 'POST',
    body,
    ...(signal && { signal }),
    headers: {
      authorization: `Bearer ${world.key}`,
      'content-type': 'application/json',
      'user-agent': AGENT,
      ...headers,
    },
  })

/** An answer of which the first event that says something has come, and no other is sent before `gate.next`. */
const beginSlowly = async (network: Network, signal?: AbortSignal) => {
  world.upstream.script(() => answers.text('one two three four', { deltaChars: 4, dripMs: 1 }))
  world.gate.shut(FIRST_TO_SAY_SOMETHING)
  const events = arrivals(await soon(ask(network, JSON.stringify(codexBody()), { signal })))
  const seen: string[] = []
  for (let count = 0; count <= FIRST_TO_SAY_SOMETHING; count += 1) seen.push((await getNext(events)).type)
  return { events, seen }
}

/** As a browser sends the form, from a page of `origin`. */
const signIn = (network: Network, origin: string): Promise<Response> =>
  network.fetch('/api/dashboard-auth/password/login', {
    method: 'POST',
    redirect: 'manual',
    headers: { origin, accept: 'text/html' },
    body: new URLSearchParams({ username: 'admin', password: PASSWORD }),
  })

type Api = <T>(path: string, method?: string) => Promise<T>

/** With a session that a browser would hold to be one of this name over TLS. */
const whileSignedIn = async <T>(network: Network, use: (api: Api) => Promise<T>): Promise<T> => {
  const response = await signIn(network, ORIGIN)
  expect([response.status, response.headers.get('location')]).toEqual([303, '/dashboard'])
  const cookie = response.headers.get('set-cookie') ?? ''
  expect(cookie).toMatch(/^__Host-sluice_session=.*; Secure/)
  const headers = { cookie: cookie.split(';')[0] ?? '', origin: ORIGIN }
  return use(async (path, method = 'GET') => (await network.fetch(path, { method, headers })).json())
}

const useDashboard = async (name: Name): Promise<void> => {
  const network = getNetwork(name)
  const options = { proxy: { server: network.tunnel }, ignoreHTTPSErrors: true }
  await using visit = await browser.visit(`${ORIGIN}/dashboard`, options)
  const { page, problems } = visit
  await page.fill('[name=password]', PASSWORD)
  const stream = page.waitForResponse('**/api/events*')
  await page.click('button[type=submit]')
  await page.waitForURL('**/dashboard')
  await stream
  await whileSignedIn(network, async (api) => {
    const { accounts } = await api<{ accounts: { accountId: string; email: string }[] }>('/api/accounts')
    const account = accounts.find(({ email }) => email === ACCOUNTS[name])
    await api(`/api/accounts/${account?.accountId}/pause`, 'POST')
    await page.locator('li', { hasText: ACCOUNTS[name] }).getByText('Paused', { exact: true }).waitFor()
    await api(`/api/accounts/${account?.accountId}/reactivate`, 'POST')
  })

  await page.goto(`${ORIGIN}/doctor`)
  const says = (title: string) =>
    textIn(page.locator('.finding', { has: page.getByRole('heading', { name: title, exact: true }) }))
  await until(async () => !/Measuring/.test(await textIn(page.locator('main'))), world.server.output)
  expect([name, await says('Reverse proxy')]).toEqual([
    name,
    expect.stringMatching(new RegExp(`OK\\s+The proxy .* is trusted. Your address is ${CLIENT_ADDRESS}`)),
  ])
  for (const title of ['Host header', ...MEASURES.map(({ title }) => title)])
    expect([name, await says(title)]).toEqual([name, expect.stringMatching(/\bOK\b/)])
  expect([name, problems]).toEqual([name, []])
}

/** `response.created` and `response.in_progress` are kept back until then (docs/decisions.md, "The commit point"). */
const FIRST_TO_SAY_SOMETHING = 2

/** Text that does not compress to less than three quarters of its length. */
const noise = (bytes: number): string => {
  const random = new Uint8Array((bytes / 4) * 3)
  for (let at = 0; at < random.length; at += 65_536) crypto.getRandomValues(random.subarray(at, at + 65_536))
  return Buffer.from(random).toString('base64')
}

/** The text of the last item of a model request. */
const saidIn = (body: unknown): string => {
  const last: unknown = isJson(body) && Array.isArray(body.input) ? body.input.at(-1) : null
  return isJson(last) ? getText(last.content) : ''
}

async function* arrivals(response: Response): AsyncGenerator<StreamEvent, void> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true })
    const end = text.lastIndexOf('\n\n') + 2
    yield* parseEvents(text.slice(0, end < 2 ? 0 : end))
    text = text.slice(end < 2 ? 0 : end)
  }
}

const getNext = async (events: AsyncGenerator<StreamEvent, void>): Promise<StreamEvent> => {
  const next = await soon(events.next())
  if (next.done) throw new Error('The stream ended too early.')
  return next.value
}

/** What was sent and does not arrive is held on the way. */
const soon = async <T extends object>(coming: Promise<T>): Promise<T> => {
  const come = await Promise.race([coming, Bun.sleep(PATIENCE_MS)])
  if (!come) throw new Error('What the upstream sent did not arrive.')
  return come
}
