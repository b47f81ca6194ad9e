/** The dashboard: pages and their JSON API. */
import { Hono } from 'hono'
import type { AppEnv } from '../boot/bindings.ts'
import { accessLog } from '../http/access-log.ts'
import { crossSite } from '../http/cross-site.ts'
import { refillForm } from '../http/fill-form.ts'
import { headOnly } from '../http/head.ts'
import { renderError, renderNotFound } from '../http/render-error.tsx'
import { markLive, shell } from '../http/reply.tsx'
import { plainHost, requestContext, routedPath } from '../http/request-context.ts'
import { requireOneAccessGate } from '../http/route-table.ts'
import { securityHeaders } from '../http/security-headers.ts'
import { localTimes } from '../http/viewer-clock.ts'
import { mountDashboard } from './dashboard-routes.ts'

const createDashboard = (): Hono<AppEnv> => {
  const app = new Hono<AppEnv>({ getPath: routedPath })
  app.onError(renderError)
  app.notFound(renderNotFound)
  app.use(
    requestContext,
    accessLog,
    headOnly,
    markLive,
    shell,
    securityHeaders,
    plainHost,
    crossSite,
    localTimes,
    refillForm,
  )
  mountDashboard(app)
  requireOneAccessGate(app)
  return app
}

export const dashboard = createDashboard()
