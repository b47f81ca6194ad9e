/** Refuses a Host that is not a plain name or address, or that came twice, before anything is routed or built from it. */
import type { Ctx } from '../bindings.ts'
import { AppError } from '../errors.ts'
import { createMiddleware } from './handlers.ts'

/** Two Host headers arrive joined by a comma and fail here; so do user names, paths and blanks. */
const HOST = /^[A-Za-z0-9.\-[\]:]+$/

/**
 * Throws `bad_host`. Bun gives a request whose Host it cannot use, or that has none, a URL without an origin, which the
 * router would read from the wrong place.
 */
export const demandPlainHost = ({ req }: Ctx): void => {
  const host = req.header('host')
  if ((host !== undefined && !HOST.test(host)) || !URL.canParse(req.url)) throw new AppError('bad_host')
}

export const plainHost = createMiddleware((c, next) => {
  demandPlainHost(c)
  return next()
})

/** For probes: a load balancer may ask by HTTP/1.0, which needs no Host (RFC 1945), and nothing is built from it there. */
export const plainHostOrNone = createMiddleware((c, next) => {
  if (c.req.header('host') !== undefined) demandPlainHost(c)
  return next()
})
