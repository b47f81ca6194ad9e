/** The routes of ChatGPT as the stand-in plays them. */
import type { Context } from 'hono'
import { Hono } from 'hono'
import type { Account } from './accounts.ts'
import { answerHeaders } from './answer-headers.ts'
import { encryptedFor, getUsage, openFrame, wireUsage } from './events.ts'
import type { Fault, FaultRoute } from './faults.ts'
import { judgeFiles } from './files.ts'
import { judgeCompact, judgeResponses } from './judge.ts'
import type { ReceivedRequest } from './ledger.ts'
import { catalogFor, getEtag } from './models.ts'
import { grantCode, grantTokens, presentedBy } from './oauth.ts'
import { planStream, type Step } from './plan.ts'
import { authenticate, noteLiteMarker, receive } from './received.ts'
import { detail, Refusal } from './refusal.ts'
import { relayRoutes } from './relay-routes.ts'
import { consumeResetCredit } from './reset-credits.ts'
import { type Answer, answers, defaultAnswer, type Turn } from './script.ts'
import { signInRoutes } from './sign-in-routes.ts'
import { precompute, sseBody } from './stream.ts'
import { rateHeaders, resetCreditsDocument, usageDocument } from './usage.ts'
import { applyEarlyFault, type World } from './world.ts'

/** The origin of every request according to the trace page. */
export const EXIT_ADDRESS = '203.0.113.9'

export type Env = { Bindings: { overSocket: boolean }; Variables: { received: ReceivedRequest } }
type C = Context<Env>

/** ChatGPT at its usual paths; every request is recorded before anything else happens. */
export function serviceRoutes(world: World): Hono<Env> {
  const routes = new Hono<Env>()
  routes.use(async (c, next) => {
    const received = await receive(c.req.raw, world.now(), world.ledger)
    c.set('received', received)
    await next()
    received.status = c.res.status
    c.res.headers.set('x-request-id', world.mint('req'))
    if (!isStream(c.res)) received.finished = true
  })
  routes.post('/backend-api/codex/responses', (c) => respond(c, world))
  routes.post('/backend-api/codex/responses/compact', (c) => compact(c, world))
  routes.get('/backend-api/codex/models', (c) => models(c, world))
  routes.get('/backend-api/wham/usage', (c) => usage(c, world))
  routes.get('/backend-api/wham/rate-limit-reset-credits', (c) => resetCredits(c, world))
  routes.post('/backend-api/wham/rate-limit-reset-credits/consume', (c) => redeemResetCredit(c, world))
  routes.get('/cdn-cgi/trace', (c) => c.text(`fl=1\nh=chatgpt.com\nip=${EXIT_ADDRESS}\nts=1\n`))
  routes.post('/oauth/token', (c) => token(c, world))
  relayRoutes(routes, world)
  signInRoutes(routes, world)
  return routes
}

/** Renders a thrown error; a reset or the client's own abort is rethrown. */
export function refuse(error: Error, c: C, world: World): Response {
  if (!(error instanceof Refusal)) throw error
  const account = world.accounts.byId(c.get('received')?.account ?? '')
  return error.toResponse(account ? rateHeaders(account, world.now()) : {})
}

async function respond(c: C, world: World): Promise<Response> {
  const received = c.get('received')
  const account = authenticate(received, world.accounts, world.ledger)
  noteLiteMarker(received, world.ledger)
  const turn = judgeResponses({ ...received, account, bodyChars: received.bodyText.length })
  judgeFiles(turn.input, account, world.ledger)
  const fault = await struck(c, world, account, 'responses')
  const answer = world.script?.(turn) ?? defaultAnswer(turn)
  const closeStream = world.ledger.openStream()
  const body = sseBody(stepsFor(turn, answer, fault, world), {
    signal: c.req.raw.signal,
    sleep: world.sleep,
    perChunk: fault?.manyEvents?.perChunk ?? answer.perChunk ?? 1,
    overSocket: c.env.overSocket,
    onSent(events) {
      received.eventsSent += events
    },
    onEnd(end) {
      closeStream()
      received.finished = end === 'finished'
      received.aborted = end === 'aborted'
    },
  })
  return new Response(body, {
    status: fault?.streamStatus ?? 200,
    headers: {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      'openai-model': turn.model,
      ...answerHeaders(received, account, world),
    },
  })
}

function stepsFor(turn: Turn, answer: Answer, fault: Fault | null, world: World): Iterable<Step> {
  const plan = () => planStream(openFrame(turn, world.now(), world.mint), answer, fault)
  if (!answer.precomputed || fault) return plan()
  const known = world.replays.get(answer)
  if (known) return known
  const steps = precompute(plan(), answer.perChunk ?? 1)
  world.replays.set(answer, steps)
  return steps
}

async function compact(c: C, world: World): Promise<Response> {
  if (world.compactRetired) throw detail(404, 'Not Found')
  const received = c.get('received')
  const account = authenticate(received, world.accounts, world.ledger)
  noteLiteMarker(received, world.ledger)
  const turn = judgeCompact({ ...received, account, bodyChars: received.bodyText.length })
  await struck(c, world, account, 'compact')
  const retained = turn.input
    .filter((item) => item.role === 'user' || item.role === 'developer')
    .map((item) => ({ type: 'message', ...item }))
  const encrypted_content = encryptedFor(account.chatgptAccountId, world.mint)
  const summary = { type: 'compaction', id: world.mint('cmp'), encrypted_content }
  return c.json({
    id: world.mint('resp'),
    object: 'response.compaction',
    created_at: Math.floor(world.now() / 1000),
    output: [...retained, summary],
    usage: wireUsage(getUsage(turn, answers.compaction(), 0)),
  })
}

async function models(c: C, world: World): Promise<Response> {
  const account = authenticate(c.get('received'), world.accounts, world.ledger)
  await struck(c, world, account, 'models')
  const clientVersion = c.req.query('client_version')
  if (!clientVersion) throw detail(400, 'client_version is required')
  const entries = catalogFor(account, clientVersion)
  return c.json({ models: entries }, 200, { etag: getEtag(entries) })
}

async function usage(c: C, world: World): Promise<Response> {
  const account = authenticate(c.get('received'), world.accounts, world.ledger)
  await struck(c, world, account, 'usage')
  return c.json(usageDocument(account, world.now()))
}

async function resetCredits(c: C, world: World): Promise<Response> {
  const account = authenticate(c.get('received'), world.accounts, world.ledger)
  await struck(c, world, account, 'reset-credits')
  return c.json(resetCreditsDocument(account))
}

async function redeemResetCredit(c: C, world: World): Promise<Response> {
  const received = c.get('received')
  const account = authenticate(received, world.accounts, world.ledger)
  await struck(c, world, account, 'redeem')
  return c.json(consumeResetCredit(account, received.body, world.now()))
}

async function token(c: C, world: World): Promise<Response> {
  const received = c.get('received')
  if (received.headers['content-type']?.startsWith('application/x-www-form-urlencoded')) {
    const { account, answer } = grantCode(world.signIns, new URLSearchParams(received.bodyText))
    received.account = account.chatgptAccountId
    return c.json(answer)
  }
  const account = presentedBy(world.accounts, received.body)
  if (account) {
    received.account = account.chatgptAccountId
    await struck(c, world, account, 'token')
  }
  return c.json(grantTokens(world.accounts, received.body))
}

/** Takes the account's fault and plays the part of it that comes before or instead of a 200. */
async function struck(c: C, world: World, account: Account, route: FaultRoute): Promise<Fault | null> {
  const fault = account.takeFault(route)
  await applyEarlyFault(fault, world, { signal: c.req.raw.signal, record: c.get('received') })
  return fault
}

function isStream(response: Response): boolean {
  return response.headers.get('content-type')?.startsWith('text/event-stream') ?? false
}
