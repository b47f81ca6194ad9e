/** The whole service: a gateway for model clients, and a dashboard that is loaded when somebody first asks for it. */
import type { Hono } from 'hono'
import type { AppEnv, Bindings } from './bindings.ts'
import { gateway } from './gateway.ts'

/** What the gateway knows; with a Host that cannot be used, or none, the URL is the path alone. */
const GATEWAY_URL = /^(https?:\/\/[^/?]+)?\/((v1|backend-api)(\/|\?|$)|health(\/(live|ready|startup))?(\?|$))/

export const isForGateway = (url: string): boolean => GATEWAY_URL.test(url)

/** Answers one request. */
export const answer = (request: Request, env: Bindings): Response | Promise<Response> =>
  isForGateway(request.url)
    ? gateway.fetch(request, env)
    : loadDashboard().then((dashboard) => dashboard.fetch(request, env))

let dashboard: Promise<Hono<AppEnv>> | null = null

/** A fifth of the memory of an idle service, and of the time it takes to start (measured). */
export const loadDashboard = (): Promise<Hono<AppEnv>> => {
  dashboard ??= import('./dashboard.ts').then((module) => module.dashboard)
  return dashboard
}
