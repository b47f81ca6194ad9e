/** The gateway, available from start: model traffic and probes. The dashboard is loaded when needed. */
import { Hono } from 'hono'
import type { AppEnv, Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { logAnswer } from '../http/access-log.ts'
import { allowOrigin, preflightAnswer, unlistedPreflight } from '../http/cors.ts'
import { errorAnswer, problemJson } from '../http/error-answer.ts'
import { createMiddleware } from '../http/handlers.ts'
import { answerOptions, headOnly } from '../http/head.ts'
import { isModelPath } from '../http/model-path.ts'
import {
  plainHostOrNone,
  requirePlainHost,
  routedPath,
  setArrival,
  setRequestIdHeader,
} from '../http/request-context.ts'
import { requireOneAccessGate } from '../http/route-table.ts'
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

/**
 * Before and after every handler. Model traffic has no pages or cookies to protect, and its gate checks the Host, so the
 * dashboard's other middleware is left out.
 */
export const arrival = createMiddleware(async (c, next) => {
  setArrival(c)
  const preflight = preflightAnswer(c)
  if (preflight) c.res = preflight
  else await next()
  setRequestIdHeader(c)
  allowOrigin(c)
  logAnswer(c)
})

export const renderGatewayError = errorAnswer(problemJson)

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
