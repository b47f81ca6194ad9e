/** The gateway, available from start: model traffic and probes. The dashboard is loaded when needed. */
import { Hono } from 'hono'
import type { AppEnv, Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { arrival, renderGatewayError } from '../http/arrival.ts'
import { unlistedPreflight } from '../http/cors.ts'
import { answerOptions, headOnly } from '../http/head.ts'
import { plainHostOrNone, requirePlainHost } from '../http/host.ts'
import { isModelPath } from '../http/model-path.ts'
import { requireOneAccessGate } from '../http/route-table.ts'
import { routedPath } from '../http/routed-path.ts'
import { securityHeaders } from '../http/security-headers.ts'
import { wrongBaseUrl } from '../http/wrong-base-url.ts'
import { mountGateway } from './gateway-routes.ts'

/** `strict: false` would merge `/api/api-keys/` and `/api/api-keys`, which the interface lists separately. */
const createGateway = (): Hono<AppEnv> => {
  const app = new Hono<AppEnv>({ getPath: routedPath })
  app.onError(renderGatewayError)
  app.notFound(notFound)
  app.use(arrival)
  app.use('/health/*', headOnly, answerOptions, securityHeaders, plainHostOrNone)
  mountGateway(app)
  requireOneAccessGate(app)
  return app
}

const notFound = (c: Ctx): Response | Promise<Response> => {
  try {
    requirePlainHost(c)
    if (!isModelPath(c.req.path)) throw new AppError('not_found')
    throw unlistedPreflight(c) ?? wrongBaseUrl(c)
  } catch (err) {
    return renderGatewayError(err, c)
  }
}

export const gateway = createGateway()
