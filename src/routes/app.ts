/** The whole app: a gateway for model clients, and a dashboard loaded on first use. */
import type { Hono } from 'hono'
import type { AppEnv, Bindings } from '../boot/bindings.ts'
import { gateway } from './gateway.ts'

/** Paths of the gateway; with an unusable or missing Host, the URL is only the path. */
const GATEWAY_URL =
  /^(https?:\/\/[^/?#]+)?\/((v1|backend-api|wham|mcp)([/?#]|$)|health(\/(live|ready|startup))?([?#]|$))/

export const isForGateway = (url: string): boolean => GATEWAY_URL.test(url)

/**
 * Answers one request. After a hand-over, or while the node leaves, the connection closes with the answer, so that the
 * next request reaches another process.
 */
export const answer = async (request: Request, env: Bindings): Promise<Response> => {
  const response = await (isForGateway(request.url) ? gateway.fetch(request, env) : answerDashboard(request, env))
  const { handedOver, leaving } = env.lifecycle // read last: both can begin while the answer is prepared
  if (handedOver || leaving) response.headers.set('connection', 'close')
  return response
}

const answerDashboard = async (request: Request, env: Bindings): Promise<Response> => {
  const dashboard = await loadDashboard().catch((err: unknown) => {
    loading = null
    env.log.error('the dashboard could not be loaded; restart Sluice', { err })
    return null
  })
  return dashboard ? dashboard.fetch(request, env) : notLoaded()
}

/** Duplicates the text in `errors.ts`, whose page is part of what failed to load. */
const notLoaded = (): Response => {
  const error = { code: 'internal_error', message: 'The dashboard could not be loaded; the log says why.' }
  return Response.json({ error }, { status: 500, headers: { 'cache-control': 'no-store' } })
}

/** Module state by exception: the loaded module is the same for every server in this process. */
let loading: Promise<Hono<AppEnv>> | null = null

/**
 * Pages take a tenth of an idle server's memory and a quarter of its start from source. Loading them blocks for about
 * 40 ms in the executable, once.
 */
export const loadDashboard = (): Promise<Hono<AppEnv>> => {
  loading ??= import('./dashboard.ts').then(({ dashboard }) => dashboard)
  return loading
}
