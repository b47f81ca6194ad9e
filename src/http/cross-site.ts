/** Refuses state-changing dashboard requests that another site made the browser send (spec §5, cross-site protection). */
import type { Context } from 'hono'
import type { AppEnv } from '../bindings.ts'
import { AppError } from '../errors.ts'
import { createMiddleware } from './handlers.ts'

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS'])
/** Routes for bearer clients: a page of another site cannot make a browser attach that header. */
const BEARER_ROUTES = ['/api/fleet/', '/api/codex/']

/** Covers everything under `/api/`, JSON and forms. Throws `cross_site_request_rejected`, saying what arrived. */
export const crossSite = createMiddleware(async (c, next) => {
  if (isCovered(c) && !isSameOrigin(c)) throw rejection(c)
  await next()
})

const isCovered = (c: Context<AppEnv>): boolean =>
  !SAFE_METHODS.has(c.req.method) &&
  c.req.path.startsWith('/api/') &&
  !BEARER_ROUTES.some((prefix) => c.req.path.startsWith(prefix)) &&
  !/^bearer\s+\S/i.test(c.req.header('authorization') ?? '')

/**
 * `Sec-Fetch-Site` is the browser's own verdict and cannot be forged by a page, so it decides alone where it is sent: the
 * Origin would only disagree behind a proxy that ends TLS. A client that sends neither is not a browser.
 */
const isSameOrigin = (c: Context<AppEnv>): boolean => {
  const verdict = c.req.header('sec-fetch-site')
  const origin = c.req.header('origin')
  if (origin?.includes(',')) return false
  if (verdict !== undefined) return verdict === 'same-origin' || verdict === 'none'
  return origin === undefined || ownOrigins(c).includes(origin.toLowerCase())
}

const ownOrigins = (c: Context<AppEnv>): string[] => {
  const { host, protocol } = new URL(c.req.url)
  const served = host === '' ? [] : [`${protocol}//${host}`]
  const { PUBLIC_URL } = c.env.env
  return PUBLIC_URL ? [...served, new URL(PUBLIC_URL).origin] : served
}

const rejection = (c: Context<AppEnv>): AppError =>
  new AppError('cross_site_request_rejected', {
    message:
      'The request came from another site and was refused. ' +
      'Behind a reverse proxy, forward the Host header as the browser sent it, with its port.',
    details: {
      host: c.req.header('host') ?? null,
      origin: c.req.header('origin') ?? null,
      secFetchSite: c.req.header('sec-fetch-site') ?? null,
    },
  })
