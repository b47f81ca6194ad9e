/** A small app with the real middleware in the real order. */
import { Hono } from 'hono'
import type { AppEnv, Bindings } from '../../src/boot/bindings.ts'
import { crossSite } from '../../src/http/cross-site.ts'
import { renderError, renderNotFound } from '../../src/http/render-error.tsx'
import { shell } from '../../src/http/reply.tsx'
import { plainHost, requestContext, routedPath } from '../../src/http/request-context.ts'
import { securityHeaders } from '../../src/http/security-headers.ts'
import type { Fields, Level } from '../../src/lib/log.ts'
import { seededRandom } from '../../src/lib/random.ts'
import { StreamTimer } from '../../src/proxy/downstream/stream-timer.ts'
import { ManualClock } from '../support/clock.ts'

interface Line {
  level: Level
  message: string
  fields: Fields
}

interface Ask extends Omit<RequestInit, 'method'> {
  headers?: Record<string, string>
  /** Socket peer; this machine when absent. */
  peer?: string
}

/** `mount` adds the routes; `ask` sends `'GET /path'`; `lines` has the log. */
export const probe = (mount: (app: Hono<AppEnv>) => void, over: Record<string, unknown> = {}) => {
  const lines: Line[] = []
  const at =
    (level: Level) =>
    (message: string, fields: Fields = {}) =>
      lines.push({ level, message, fields })
  const log = { error: at('error'), warn: at('warn'), info: at('info'), debug: at('debug'), writes: () => true }
  const env = {
    raw: {},
    DATA_DIR: '/data',
    PORT: 2455,
    DASHBOARD_AUTH_MODE: 'standard',
    FIREWALL_TRUST_PROXY_HEADERS: false,
    FIREWALL_TRUSTED_PROXY_CIDRS: [],
    PROXY_UNAUTHENTICATED_CLIENT_CIDRS: [],
  }
  const ops = { lostDatabase: () => null }
  const clock = new ManualClock()
  const bindings = { clock, pulse: new StreamTimer(clock), random: seededRandom(1), log, env, ops, ...over }
  const app = new Hono<AppEnv>({ getPath: routedPath })
  app.onError(renderError)
  app.notFound(renderNotFound)
  app.use(requestContext, shell, securityHeaders, plainHost, crossSite)
  mount(app)
  const ask = async (route: string, { peer = '127.0.0.1', headers = {}, ...init }: Ask = {}) => {
    const [method, path = '/'] = route.split(' ')
    const request = { ...init, method, headers: { host: 'localhost:2455', ...headers } }
    const reached = { ...bindings, peer } as unknown as Bindings // as: a part of what a request can access
    return await app.request(`http://localhost:2455${path}`, request, reached)
  }
  return { ask, lines, app }
}

export const getProblem = async (response: Response): Promise<{ code: string; [more: string]: unknown }> =>
  ((await response.json()) as { error: { code: string } }).error
