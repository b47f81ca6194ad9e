/** What is there from the first moment: model traffic and probes. A machine that nobody looks at needs nothing else. */
import { Hono } from 'hono'
import { TrieRouter } from 'hono/router/trie-router'
import type { AppEnv, Ctx } from './bindings.ts'
import { AppError } from './errors.ts'
import { mountGateway } from './gateway-routes.ts'
import { logAnswer } from './http/access-log.ts'
import { errorAnswer, problemJson } from './http/error-answer.ts'
import { createMiddleware } from './http/handlers.ts'
import { headOnly, tellMethods } from './http/head.ts'
import { demandPlainHost, plainHostOrNone } from './http/host.ts'
import { KnownPaths } from './http/known-paths.ts'
import { noteArrival, tellRequestId } from './http/request-context.ts'
import { demandOneAccessGate } from './http/route-table.ts'
import { routedPath } from './http/routed-path.ts'
import { securityHeaders } from './http/security-headers.ts'

const renderError = errorAnswer(problemJson)

/** `strict: false` would make `/api/api-keys/` and `/api/api-keys` one route and hide that the interface names both. */
const createGateway = (): Hono<AppEnv> => {
  const app = new Hono<AppEnv>({ getPath: routedPath, router: new KnownPaths(new TrieRouter()) })
  app.onError(renderError)
  app.notFound(notFound)
  app.use(arrival)
  app.use('/health/*', headOnly, tellMethods, securityHeaders, plainHostOrNone)
  mountGateway(app)
  demandOneAccessGate(app)
  return app
}

/**
 * Model traffic has no pages, no cookies and no browser to protect, and its gate looks at the Host: every layer it does not
 * pass is time to the first byte.
 */
const arrival = createMiddleware(async (c, next) => {
  noteArrival(c)
  await next()
  tellRequestId(c)
  logAnswer(c)
})

const notFound = (c: Ctx): Response | Promise<Response> => {
  try {
    demandPlainHost(c)
    throw new AppError('not_found')
  } catch (err) {
    return renderError(err, c)
  }
}

export const gateway = createGateway()
