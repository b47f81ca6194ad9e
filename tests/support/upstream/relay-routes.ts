/**
 * The relayed routes of ChatGPT: control, images, files, transcription, live calls. Their responses, and which headers
 * they reject, are assumed; a test replaces a response with `Upstream.answerRelay`.
 */
import type { Context, Hono } from 'hono'
import type { Account } from './accounts.ts'
import type { FaultRoute } from './faults.ts'
import { FILES } from './files.ts'
import type { ReceivedRequest } from './ledger.ts'
import { LIVE_ROUTES } from './live-calls.ts'
import { authenticate } from './received.ts'
import { apiError, detail, Refusal } from './refusal.ts'
import type { Env } from './routes.ts'
import { isJson } from './script.ts'
import { TRANSCRIBE } from './transcribe.ts'
import { rateHeaders } from './usage.ts'
import { applyEarlyFault, type World } from './world.ts'

/** The input of a response to a relayed request. */
export type RelayCall = { received: ReceivedRequest; account: Account; world: World }
/** Null leaves the answer to the default. */
export type RelayAnswer = (call: RelayCall) => Response | null | Promise<Response | null>

export type RelayRoute = {
  method: 'GET' | 'POST'
  /** Under `/backend-api`. */
  path: string
  fault: FaultRoute
  /** `smallest`: a larger header set is blocked before ChatGPT, with an HTML page. */
  headers: 'any' | 'smallest'
  answer: (call: RelayCall) => Response | Promise<Response>
}

const echo = ({ received, account }: RelayCall, members = {}): Response =>
  Response.json(
    { ...members, echo: received.body, by: account.email },
    { headers: { 'openai-processing-ms': '7', etag: '"e1"' } },
  )

/** `output` is the one member that Codex CLI 0.169.0 requires; the rest of the shape is not known. */
const search = (call: RelayCall): Response => echo(call, { output: SEARCH_OUTPUT })
export const SEARCH_OUTPUT = 'Cats are small carnivores.'

const CONTROL: RelayRoute[] = [
  { method: 'POST', path: 'codex/alpha/search', fault: 'control', headers: 'any', answer: search },
  ...[
    'codex/memories/trace_summarize',
    'codex/safety/arc',
    'codex/analytics-events/events',
    'codex/thread/goal/set',
    'codex/thread/goal/clear',
    'codex/thread/goal/get',
  ].map(
    (path): RelayRoute => ({ method: 'POST', path, fault: 'control', headers: 'any', answer: (call) => echo(call) }),
  ),
  ...['codex/thread/goal/get', 'codex/agent-identities/jwks', 'wham/agent-identities/jwks'].map(
    (path): RelayRoute => ({ method: 'GET', path, fault: 'control', headers: 'any', answer: (call) => echo(call) }),
  ),
]

/** A PNG of one pixel. */
export const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
export const IMAGE_USAGE = {
  total_tokens: 1107,
  input_tokens: 50,
  output_tokens: 1057,
  input_tokens_details: { text_tokens: 10, image_tokens: 40 },
}
const IMAGE_FIELDS = new Set([
  'model',
  'prompt',
  'n',
  'size',
  'quality',
  'background',
  'output_format',
  'output_compression',
  'moderation',
  'partial_images',
  'stream',
  'input_fidelity',
])

/** Assumed: JSON only, with known members, and not on a free plan. */
function image({ received, account, world }: RelayCall, isEdit: boolean): Response {
  const { body, headers } = received
  if (account.plan === 'free') throw detail(403, 'Images are not part of the free plan')
  if (!headers['content-type']?.startsWith('application/json') || !isJson(body)) throw detail(400, 'Expected JSON')
  const unknown = Object.keys(body).find((name) => !IMAGE_FIELDS.has(name) && !(isEdit && /^(images|mask)$/.test(name)))
  if (unknown) throw detail(400, `Unsupported parameter: ${unknown}`)
  if (typeof body.prompt !== 'string' || body.prompt === '')
    throw apiError(400, 'missing', 'A prompt is needed', 'prompt')
  const pictures = isEdit ? [...(Array.isArray(body.images) ? body.images : []), ...(body.mask ? [body.mask] : [])] : []
  if (isEdit && !pictures.every((one) => isJson(one) && String(one.image_url).startsWith('data:image/')))
    throw apiError(400, 'invalid_value', 'Images must be data URLs', 'images')
  const made = { b64_json: PIXEL, revised_prompt: `Revised: ${body.prompt}` }
  const created = Math.floor(world.now() / 1000)
  if (body.stream !== true) return Response.json({ created, data: [made], usage: IMAGE_USAGE })
  const name = isEdit ? 'image_edit' : 'image_generation'
  const partial = Array.from({ length: Number(body.partial_images ?? 0) }, (_, index) => ({
    type: `${name}.partial_image`,
    b64_json: PIXEL,
    partial_image_index: index,
  }))
  const completed = { type: `${name}.completed`, b64_json: PIXEL, created_at: created, usage: IMAGE_USAGE }
  return new Response(sse([...partial, completed]), { headers: { 'content-type': 'text/event-stream' } })
}

export const sse = (events: { type: string }[]): string =>
  events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')

const IMAGES: RelayRoute[] = (['generations', 'edits'] as const).map((action) => ({
  method: 'POST',
  path: `codex/images/${action}`,
  fault: 'image',
  headers: 'any',
  answer: (call) => image(call, action === 'edits'),
}))

/** More routes are added to this list as the proxy learns to relay them. */
const ROUTES: readonly RelayRoute[] = [...CONTROL, ...IMAGES, ...FILES, ...TRANSCRIBE, ...LIVE_ROUTES]

export function relayRoutes(routes: Hono<Env>, world: World): void {
  for (const route of ROUTES) routes.on(route.method, `/backend-api/${route.path}`, (c) => answerTo(c, world, route))
}

async function answerTo(c: Context<Env>, world: World, route: RelayRoute): Promise<Response> {
  const received = c.get('received')
  if (route.headers === 'smallest' && hasMoreThanNeeded(received)) throw blocked()
  const account = authenticate(received, world.accounts, world.ledger)
  if (c.req.method === 'GET' && received.bodyText !== '') throw detail(400, 'A GET has no body')
  const fault = account.takeFault(route.fault)
  await applyEarlyFault(fault, world, { signal: c.req.raw.signal, record: received })
  const call: RelayCall = { received, account, world }
  const answer = (await world.relayAnswer?.(call)) ?? (await route.answer(call))
  for (const [name, value] of Object.entries(rateHeaders(account, world.now()))) answer.headers.set(name, value)
  return answer
}

/** Headers that every request has, and the three that the route requires. */
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
