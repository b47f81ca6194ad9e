/**
 * The routes of the service that are relayed: control, images, files, transcription, live calls. What they answer, and which
 * headers they refuse, is assumed; a test replaces the answer of any of them with `Upstream.answerRelay`.
 */
import type { Context, Hono } from 'hono'
import type { Account } from './accounts.ts'
import type { FaultRoute } from './faults.ts'
import type { ReceivedRequest } from './ledger.ts'
import { authenticate } from './received.ts'
import { detail, Refusal } from './refusal.ts'
import type { Env } from './routes.ts'
import { rateHeaders } from './usage.ts'
import { strike, type World } from './world.ts'

/** What the answer to a relayed request is made from. */
export type RelayCall = { received: ReceivedRequest; account: Account; world: World }
/** Null leaves the answer to the default. */
export type RelayAnswer = (call: RelayCall) => Response | null | Promise<Response | null>

export type RelayRoute = {
  method: 'GET' | 'POST'
  /** Under `/backend-api`. */
  path: string
  fault: FaultRoute
  /** `smallest`: a fuller header set is blocked before the service, with an HTML page. */
  headers: 'any' | 'smallest'
  answer: (call: RelayCall) => Response | Promise<Response>
}

const echo = ({ received, account }: RelayCall): Response =>
  Response.json({ echo: received.body, by: account.email }, { headers: { 'openai-processing-ms': '7', etag: '"e1"' } })

const CONTROL: RelayRoute[] = [
  ...[
    'codex/alpha/search',
    'codex/memories/trace_summarize',
    'codex/safety/arc',
    'codex/analytics-events/events',
    'codex/thread/goal/set',
    'codex/thread/goal/clear',
    'codex/thread/goal/get',
  ].map((path): RelayRoute => ({ method: 'POST', path, fault: 'control', headers: 'any', answer: echo })),
  ...['codex/thread/goal/get', 'codex/agent-identities/jwks', 'wham/agent-identities/jwks'].map(
    (path): RelayRoute => ({ method: 'GET', path, fault: 'control', headers: 'any', answer: echo }),
  ),
]

/** More routes are added to this list as the proxy learns to relay them. */
const ROUTES: readonly RelayRoute[] = [...CONTROL]

export function relayRoutes(routes: Hono<Env>, world: World): void {
  for (const route of ROUTES) routes.on(route.method, `/backend-api/${route.path}`, (c) => answerTo(c, world, route))
}

async function answerTo(c: Context<Env>, world: World, route: RelayRoute): Promise<Response> {
  const received = c.get('received')
  if (route.headers === 'smallest' && hasMoreThanNeeded(received)) throw blocked()
  const account = authenticate(received, world.accounts, world.ledger)
  if (c.req.method === 'GET' && received.bodyText !== '') throw detail(400, 'A GET has no body')
  const fault = account.takeFault(route.fault)
  await strike(fault, world, { signal: c.req.raw.signal, record: received })
  const call: RelayCall = { received, account, world }
  const answer = (await world.relayAnswer?.(call)) ?? (await route.answer(call))
  for (const [name, value] of Object.entries(rateHeaders(account, world.now()))) answer.headers.set(name, value)
  return answer
}

/** What every request has, whoever sends it, and the three that the route needs. */
const SMALLEST = new Set([
  'authorization',
  'chatgpt-account-id',
  'user-agent',
  'accept',
  'accept-encoding',
  'connection',
  'content-length',
  'content-type',
  'host',
])

function hasMoreThanNeeded({ headers }: ReceivedRequest): boolean {
  return Object.keys(headers).some((name) => !SMALLEST.has(name))
}

function blocked() {
  return new Refusal(403, '<html><body>Forbidden</body></html>', { 'content-type': 'text/html' })
}
