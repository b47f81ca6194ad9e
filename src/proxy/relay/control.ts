/** Control routes of the native client: search, goals, memories, safety, telemetry and key sets. They use no model tokens. */
import type { Ctx } from '../../boot/bindings.ts'
import { getText } from '../../lib/json.ts'
import { decodeUtf8 } from '../../lib/utf8.ts'
import { type Answered, answerHeaders } from '../downstream/answer.ts'
import { classify, failureFromResponse } from '../exchange/classify.ts'
import { parseObject } from '../ingress/raw-body.ts'
import type { RelayPlan } from './plan.ts'
import {
  admitRelay,
  answerLocally,
  noBody,
  openRelay,
  preparedFor,
  type RelayRequest,
  readBodyFor,
  relay,
  turnRoute,
} from './relay.ts'

const TIMEOUT_MS = 600_000

interface ControlRoute {
  method: RelayPlan['method']
  /** Under the upstream base URL. */
  path: string
  retry: RelayPlan['retry']
}

/** `more`: what the route has beside that, and the thread it is about. */
const requestFor = (
  c: Ctx,
  route: ControlRoute,
  { thread = null, ...more }: Partial<RelayPlan> & { thread?: string | null } = {},
): RelayRequest => {
  const { method, path, retry } = route
  return {
    kind: 'control',
    surface: 'control',
    isNative: true,
    path: path + new URL(c.req.url).search,
    accept: c.req.header('accept') ?? '*/*',
    model: null,
    headers: 'client',
    thread,
    plan: {
      method,
      contentType: c.req.header('content-type') ?? null,
      timeoutMs: TIMEOUT_MS,
      retry,
      passesErrors: true,
      ...more,
    },
  }
}

const control = (route: ControlRoute) =>
  turnRoute(async (c) => {
    const request = requestFor(c, route)
    const body = await readBodyFor(c, request)
    return relay(await admitRelay(c, request, body))
  })

export const search = control({ method: 'POST', path: '/codex/alpha/search', retry: 'idempotent' })
export const summarizeTrace = control({ method: 'POST', path: '/codex/memories/trace_summarize', retry: 'idempotent' })
export const checkSafety = control({ method: 'POST', path: '/codex/safety/arc', retry: 'idempotent' })

const ANALYTICS: ControlRoute = { method: 'POST', path: '/codex/analytics-events/events', retry: 'before-sent' }

/** Telemetry of the client about its user: accepted here and sent nowhere, unless the setting says otherwise. */
export const reportAnalytics = turnRoute(async (c) => {
  const request = requestFor(c, ANALYTICS)
  const served = await admitRelay(c, request, await readBodyFor(c, request))
  return served.turn.settings.forwardClientAnalytics
    ? relay(served)
    : answerLocally(served, Response.json({}, { status: 202 }))
})

const goal = (action: 'set' | 'clear') => {
  const route: ControlRoute = { method: 'POST', path: `/codex/thread/goal/${action}`, retry: 'before-sent' }
  return turnRoute(async (c) => relay(await admitGoal(c, route)))
}

export const setGoal = goal('set')
export const clearGoal = goal('clear')

const GOAL_PATH = '/codex/thread/goal/get'
/** Assumed: an upstream without goals, or without this one, answers one of these. */
const NO_GOAL = [404, 405]

/** By GET with a query, or by POST with a body. */
const getGoal = (method: 'GET' | 'POST') =>
  turnRoute(async (c) => {
    const served = await admitGoal(c, { method, path: GOAL_PATH, retry: 'idempotent' }, { answers: NO_GOAL })
    const answer: Promise<Response> = toGoal({ ...served, answer: () => answer })
    return answer
  })

export const getGoalByQuery = getGoal('GET')
export const getGoalByBody = getGoal('POST')

const MAX_GOAL_BYTES = 1024 * 1024

const toGoal = async (served: Answered): Promise<Response> => {
  const flow = await openRelay(served)
  const bytes = await flow.bytes(MAX_GOAL_BYTES)
  const headers = answerHeaders(served, flow)
  if (!NO_GOAL.includes(flow.status)) return new Response(new Uint8Array(bytes), { status: flow.status, headers })
  const failure = failureFromResponse(flow.status, new Headers(), decodeUtf8(bytes), served.c.env.clock.now())
  const isMissing = flow.status === 405 || failure.code === null || failure.code === 'not_found'
  if (!isMissing) throw classify({ ...failure, isUnexplained: false }, served.c.env.clock.now()).error
  return Response.json({ goal: null }, { headers: { 'server-timing': headers['server-timing'] ?? '' } })
}

/** The thread a goal belongs to is in the body, or in the query of a GET. */
const admitGoal = async (c: Ctx, route: ControlRoute, more: Partial<RelayPlan> = {}): Promise<Answered> => {
  if (route.method === 'GET') {
    const request = requestFor(c, route, { ...more, thread: c.req.query('threadId') ?? null })
    return admitRelay(c, request, noBody(c))
  }
  const unnamed = requestFor(c, route, more)
  const body = await readBodyFor(c, unnamed)
  const { threadId } = preparedFor(c, body, unnamed, () => parseObject(body.bytes))
  return admitRelay(c, requestFor(c, route, { ...more, thread: getText(threadId) || null }), body)
}

const MAX_KEY_SET_BYTES = 1024 * 1024

/** Public keys, so one answer serves every client for five minutes. */
const keySet = (path: string) =>
  turnRoute(async (c) => {
    const request = requestFor(c, { method: 'GET', path, retry: 'idempotent' })
    const served = await admitRelay(c, request, noBody(c))
    const kept = c.env.keySets.get(request.path)
    if (kept) return answerLocally(served, new Response(kept.bytes, { headers: kept.headers }))
    const flow = await openRelay(served)
    const bytes = new Uint8Array(await flow.bytes(MAX_KEY_SET_BYTES))
    const { 'x-codex-turn-state': _state, ...headers } = flow.headers // shared, so without this client's limits
    if (flow.status === 200) c.env.keySets.keep(request.path, { bytes, headers })
    return new Response(bytes, { status: flow.status, headers })
  })

export const codexKeySet = keySet('/codex/agent-identities/jwks')
export const whamKeySet = keySet('/wham/agent-identities/jwks')
