/** What is there from the first moment: model traffic and probes. A machine that nobody looks at needs nothing else. */
import { Hono, type MiddlewareHandler } from 'hono'
import { every } from 'hono/combine'
import type { AppEnv } from './bindings.ts'
import { AppError } from './errors.ts'
import { mountGateway } from './gateway-routes.ts'
import { accessLog } from './http/access-log.ts'
import { crossSite } from './http/cross-site.ts'
import { errorAnswer, problemJson } from './http/error-answer.ts'
import { headOnly } from './http/head.ts'
import { plainHost } from './http/host.ts'
import { isModelPath } from './http/model-path.ts'
import { requestContext } from './http/request-context.ts'
import { demandOneAccessGate } from './http/route-table.ts'
import { securityHeaders } from './http/security-headers.ts'

const renderError = errorAnswer(problemJson)

/** `strict: false` would make `/api/api-keys/` and `/api/api-keys` one route and hide that the interface names both. */
const createGateway = (): Hono<AppEnv> => {
  const app = new Hono<AppEnv>()
  app.onError(renderError)
  app.notFound((c) => renderError(new AppError('not_found'), c))
  app.use(requestContext, accessLog, byAudience)
  mountGateway(app)
  demandOneAccessGate(app)
  return app
}

const forProbes = every(headOnly, securityHeaders, plainHost, crossSite)

/** Model traffic has no pages, no cookies and no browser to protect; every layer it does not pass is time to the first byte. */
const byAudience: MiddlewareHandler<AppEnv> = (c, next) =>
  isModelPath(c.req.path) ? plainHost(c, next) : forProbes(c, next)

export const gateway = createGateway()
