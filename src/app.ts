/** The one Hono app: the order of the middleware, the routes, and how errors end. */
import { Hono, type MiddlewareHandler } from 'hono'
import { every } from 'hono/combine'
import type { AppEnv } from './bindings.ts'
import { accessLog } from './http/access-log.ts'
import { crossSite } from './http/cross-site.ts'
import { refillForm } from './http/fill-form.ts'
import { headOnly } from './http/head.ts'
import { plainHost } from './http/host.ts'
import { isModelPath } from './http/model-path.ts'
import { renderError, renderNotFound } from './http/render-error.tsx'
import { shell } from './http/reply.tsx'
import { requestContext } from './http/request-context.ts'
import { demandOneAccessGate } from './http/route-table.ts'
import { securityHeaders } from './http/security-headers.ts'
import { mountRoutes } from './routes.ts'

/** `strict: false` would make `/api/api-keys/` and `/api/api-keys` one route and hide that the interface names both. */
const createApp = (): Hono<AppEnv> => {
  const app = new Hono<AppEnv>()
  app.onError(renderError)
  app.notFound(renderNotFound)
  app.use(requestContext, accessLog, byAudience)
  mountRoutes(app)
  demandOneAccessGate(app)
  return app
}

const forPeople = every(headOnly, shell, securityHeaders, plainHost, crossSite, refillForm)

/** Model traffic has no pages, no cookies and no browser to protect; every layer it does not pass is time to the first byte. */
const byAudience: MiddlewareHandler<AppEnv> = (c, next) =>
  isModelPath(c.req.path) ? plainHost(c, next) : forPeople(c, next)

export const app = createApp()
