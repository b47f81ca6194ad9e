/** Checks whether the upstream is reachable over HTTP and WebSocket, as requests use it, and whether the clocks agree. */
import type { Agent } from 'node:http'
import type { Clock } from '../lib/clock.ts'
import { NOT_FOR_AN_ACCOUNT } from '../model/egress/route.ts'
import type { Dial } from '../upstream/dial.ts'
import { PLAIN_JSON_HEADERS, USER_AGENT } from '../upstream/headers.ts'
import { type Check, type Found, passed, problem, unknown, warning } from './checks.ts'

export interface UpstreamFacts {
  /** Without `socketAgent` (no proxy support for sockets) the socket check is skipped. */
  dial: Pick<Dial, 'fetch' | 'isProxied' | 'canConnect'> & { socketAgent?: Dial['socketAgent'] }
  clock: Clock
  /** Without a trailing slash. */
  baseUrl: string
  authBaseUrl: string
}

export const upstreamChecks = (facts: UpstreamFacts): Check[] => {
  // One request serves two checks. It carries no token, so it is rejected, and any answer will do.
  const answer = timed(facts, `${facts.baseUrl}/codex/models`)
  answer.catch(() => {}) // reported by both checks
  return [
    { id: 'upstream_http', title: 'ChatGPT over HTTP', run: () => checkReached(facts, facts.baseUrl, answer) },
    { id: 'upstream_websocket', title: 'ChatGPT over WebSocket', run: () => checkHandshake(facts) },
    {
      id: 'sign_in_service',
      title: 'OpenAI sign-in',
      run: () => checkReached(facts, facts.authBaseUrl, timed(facts, `${facts.authBaseUrl}/`)),
    },
    { id: 'clock', title: 'Clock', run: () => checkClock(answer) },
  ]
}

const TIMEOUT_MS = 5000

interface Timed {
  status: number
  /** The Date header as ms since epoch; NaN: missing or unreadable. */
  date: number
  /** Our wall clock halfway between request and answer. */
  middle: number
  tookMs: number
}

const timed = async ({ dial, clock }: UpstreamFacts, url: string): Promise<Timed> => {
  const limit = new AbortController()
  const cancel = clock.after(TIMEOUT_MS, () => limit.abort(new Error(`no answer within ${TIMEOUT_MS / 1000} s`)))
  const [began, start] = [clock.now(), clock.monotonic()]
  try {
    const response = await dial.fetch(url, { signal: limit.signal, headers: PLAIN_JSON_HEADERS }, NOT_FOR_AN_ACCOUNT)
    const tookMs = clock.monotonic() - start
    await response.body?.cancel()
    const date = Date.parse(response.headers.get('date') ?? '')
    return { status: response.status, date, middle: began + tookMs / 2, tookMs }
  } finally {
    cancel()
  }
}

const EGRESS = 'Check the network, DNS and proxy variables (https_proxy, all_proxy, no_proxy) of the server.'

const checkReached = async ({ dial }: UpstreamFacts, url: string, answer: Promise<Timed>): Promise<Found> => {
  const { host } = new URL(url)
  try {
    const { status, tookMs } = await answer
    if (status >= 500)
      return warning(
        `${host} answered with status ${status} after ${Math.round(tookMs)} ms.`,
        'The problem is on their side. Try again later.',
      )
    return passed(`${host} answered after ${Math.round(tookMs)} ms.`)
  } catch (err) {
    if (!dial.isProxied(url, NOT_FOR_AN_ACCOUNT)) return problem(`Can’t reach ${host}: ${getMessage(err)}.`, EGRESS)
    const why = (await dial.canConnect(url, NOT_FOR_AN_ACCOUNT))
      ? getMessage(err)
      : 'the proxy doesn’t accept connections'
    return problem(`Can’t reach ${host} through the outbound proxy: ${why}.`, EGRESS)
  }
}

const WARN_SKEW_MS = 30_000
const BAD_SKEW_MS = 120_000

/** The header has whole seconds, so the result may be off by half a second. */
const checkClock = async (answer: Promise<Timed>): Promise<Found> => {
  const found = await answer.catch(() => null)
  if (!found?.date) return unknown('Can’t check it, because ChatGPT didn’t answer.')
  const skewMs = found.middle - (found.date + 500)
  const size = `${Math.round(Math.abs(skewMs) / 1000)} s ${skewMs > 0 ? 'ahead of' : 'behind'} ChatGPT’s`
  const advice =
    'Turn on time synchronization (timedatectl set-ntp true). A wrong clock makes valid tokens look expired.'
  if (Math.abs(skewMs) >= BAD_SKEW_MS) return problem(`The clock of this machine is ${size}.`, advice)
  if (Math.abs(skewMs) >= WARN_SKEW_MS) return warning(`The clock of this machine is ${size}.`, advice)
  return passed('It agrees with the clock of ChatGPT.')
}

const checkHandshake = async ({ dial, clock, baseUrl }: UpstreamFacts): Promise<Found> => {
  const { host } = new URL(baseUrl)
  if (!dial.socketAgent) return unknown('Not checked, because requests go over HTTP.')
  try {
    const url = `${baseUrl.replace(/^http/, 'ws')}/codex/responses`
    const { status, tookMs } = await handshake({ url, agent: await dial.socketAgent(url, NOT_FOR_AN_ACCOUNT), clock })
    return passed(`${host} answered the handshake (${status}) after ${Math.round(tookMs)} ms.`)
  } catch (err) {
    return warning(
      `No WebSocket to ${host}: ${getMessage(err)}.`,
      `Requests go over HTTP until then. ${EGRESS} SLUICE_UPSTREAM_WEBSOCKET_TRUST_ENV decides whether sockets use the proxy variables.`,
    )
  }
}

interface Handshake {
  url: string
  agent: Agent | undefined
  clock: Clock
}

/** Rejected without a token; what counts is that ChatGPT answered. */
const handshake = async ({ url, agent, clock }: Handshake): Promise<{ status: number; tookMs: number }> => {
  // the runtime's own; its global one hides the status of a rejected handshake
  const { default: WebSocket } = await import('ws')
  const start = clock.monotonic()
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const ws = new WebSocket(url, { agent, perMessageDeflate: false, headers: { 'user-agent': USER_AGENT } })
  const cancel = clock.after(TIMEOUT_MS, () => reject(new Error(`no answer within ${TIMEOUT_MS / 1000} s`)))
  ws.on('error', reject)
  ws.once('open', () => resolve(101))
  ws.once('unexpected-response', (_, response) => {
    response.resume()
    resolve(response.statusCode ?? 0)
  })
  try {
    return { status: await promise, tookMs: clock.monotonic() - start }
  } finally {
    cancel()
    ws.terminate()
  }
}

const REASONS = new Map([
  ['ECONNREFUSED', 'connection refused'],
  ['ECONNRESET', 'connection reset'],
  ['ENOTFOUND', 'host name not found'],
  ['ETIMEDOUT', 'connection timed out'],
  ['ConnectionRefused', 'connection refused'],
  ['FailedToOpenSocket', 'connection failed'],
])

const getMessage = (err: unknown): string => {
  if (!(err instanceof Error)) return String(err)
  const code = 'code' in err ? String(err.code) : ''
  return REASONS.get(code) ?? err.message.replace(/[.?!]+$/, '')
}
