/**
 * Rejects a Host that is not a plain name or address, or was sent twice, before anything uses it. The router works
 * without one.
 */

import { getPath } from 'hono/utils/url'
import type { Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { createMiddleware } from './handlers.ts'

/** Two Host headers arrive joined by a comma and fail here; so do user names, paths and blanks. */
const HOST = /^[A-Za-z0-9.\-[\]:]+$/

/**
 * Throws `bad_host`. For a missing or unusable Host, Bun provides a URL without an origin, which the router would
 * misread.
 */
export const requirePlainHost = ({ req }: Ctx): void => {
  const host = req.header('host')
  if ((host !== undefined && !HOST.test(host)) || !URL.canParse(req.url)) throw new AppError('bad_host')
}

export const plainHost = createMiddleware((c, next) => {
  requirePlainHost(c)
  return next()
})

/** For probes: load balancers may use HTTP/1.0 without a Host (RFC 1945), and nothing is built from it there. */
export const plainHostOrNone = createMiddleware((c, next) => {
  if (c.req.header('host') !== undefined) requirePlainHost(c)
  return next()
})

/** For an unusable or missing Host the runtime's URL is only the path, which the router would misread. */
export const routedPath = (request: Request): string =>
  request.url.startsWith('/') ? request.url.replace(/[?#].*/s, '') : getPath(request)
