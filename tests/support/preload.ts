/**
 * Runs before every test process: removes proxies from the environment, blocks connections to other machines, and records
 * statements for `tests/statements` if `npm test` wants them.
 */
import { recordStatements } from './record-statements.ts'

const LOCAL_HOSTS = new Set(['127.0.0.1', 'localhost', '[::1]'])

for (const name of Object.keys(process.env)) {
  if (/^((https?|all|no|wss?|socks)_proxy|CODEX_LB_.*|PORT|HOST)$/i.test(name)) delete process.env[name]
}

const { SLUICE_TEST_STATEMENTS: statements } = process.env
if (statements) recordStatements(statements)

const realFetch = globalThis.fetch

/** A test that uses the internet is a mistake: it must fail here, immediately and by name. */
async function localFetch(...[input, init]: Parameters<typeof fetch>): Promise<Response> {
  const { hostname, protocol } = new URL(getProxy(init) ?? (input instanceof Request ? input.url : input))
  if (protocol.startsWith('http') && !LOCAL_HOSTS.has(hostname)) throw new Error(`a test called out to ${hostname}`)
  return realFetch(input, init)
}

/** Behind a proxy, the proxy is the machine that is called. */
function getProxy(init: BunFetchRequestInit | undefined): string | URL | undefined {
  const proxy = init?.proxy
  if (!proxy) return undefined
  return typeof proxy === 'string' || proxy instanceof URL ? proxy : proxy.url
}

globalThis.fetch = Object.assign(localFetch, { preconnect: realFetch.preconnect })
