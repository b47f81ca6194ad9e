/** The whole service: a gateway for model clients, and a dashboard that is loaded when somebody first asks for it. */
import type { Hono } from 'hono'
import type { AppEnv, Bindings } from './bindings.ts'
import { gateway } from './gateway.ts'

/** What the gateway knows; with a Host that cannot be used, or none, the URL is the path alone. */
const GATEWAY_URL = /^(https?:\/\/[^/?#]+)?\/((v1|backend-api)([/?#]|$)|health(\/(live|ready|startup))?([?#]|$))/

export const isForGateway = (url: string): boolean => GATEWAY_URL.test(url)

/** Answers one request. */
export const answer = (request: Request, env: Bindings): Response | Promise<Response> =>
  isForGateway(request.url) ? gateway.fetch(request, env) : answerPeople(request, env)

const answerPeople = async (request: Request, env: Bindings): Promise<Response> => {
  const dashboard = await loadDashboard().catch((err: unknown) => {
    loading = null
    env.log.error('the dashboard could not be loaded; restart Sluice', { err })
    return null
  })
  return dashboard ? dashboard.fetch(request, env) : notLoaded()
}

/** As `errors.ts` has it, whose words for people are among what is missing. */
const notLoaded = (): Response => {
  const error = { code: 'internal_error', message: 'The dashboard could not be loaded; the log says why.' }
  return Response.json({ error }, { status: 500, headers: { 'cache-control': 'no-store' } })
}

/** The one module of its kind: what is loaded once is the same for every server in this process. */
let loading: Promise<Hono<AppEnv>> | null = null

/**
 * The pages are a tenth of the memory of an idle service and a quarter of its start from source. Loading them takes some
 * 40 ms in the executable, for which everything waits, once.
 */
export const loadDashboard = (): Promise<Hono<AppEnv>> => {
  loading ??= import('./dashboard.ts').then(({ dashboard }) => dashboard)
  return loading
}
