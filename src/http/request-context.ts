/** What every request needs first: its id, arrival time and client address, and a Host that is a plain name. */

import { getPath } from 'hono/utils/url'
import { getTrust } from '../auth/caller.ts'
import type { Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { clientIp } from '../lib/client-ip.ts'
import { createMiddleware } from './handlers.ts'

/** Ids that are safe in a log line and a header; others are replaced. */
const SANE_ID = /^[\w.:-]{1,128}$/

/** Sets `requestId`, `arrivedAt`, `peer`, `clientIp` and `viaProxy`, and sends the request id. Mounted first. */
export const requestContext = createMiddleware(async (c, next) => {
  setArrival(c)
  await next()
  setRequestIdHeader(c)
})

/** The first half of `requestContext`. */
export const setArrival = (c: Ctx): void => {
  c.set('arrivedAt', c.env.clock.monotonic())
  c.set('requestId', getRequestId(c))
  const peer = getPeer(c)
  const { ip, viaProxy } = clientIp({ peer, headers: c.req.raw.headers, trust: getTrust(c) })
  c.set('peer', peer)
  c.set('clientIp', ip)
  c.set('viaProxy', viaProxy)
}

/** Runs last: headers set before the handler are lost when it returns its own Response, as streams do. */
export const setRequestIdHeader = (c: Ctx): void => c.res.headers.set('x-request-id', c.get('requestId'))

/**
 * The socket's remote address, ignoring proxies; null on a Unix socket. On a loopback listener it is always local, and
 * asking the socket takes 20 µs (Bun 1.4.5).
 */
const getPeer = (c: Ctx): string | null => {
  const { peer, server, env } = c.env
  if (peer !== undefined) return peer
  return env.HOST === '127.0.0.1' ? env.HOST : (server?.requestIP(c.req.raw)?.address ?? null)
}

const getRequestId = (c: Ctx): string => {
  const given = c.req.header('x-request-id') ?? c.req.header('request-id')
  return given !== undefined && SANE_ID.test(given) ? given : c.env.random.orderedId('req', c.env.clock.now())
}

/** A plain name or address. Two Host headers arrive joined by a comma and fail here; so do user names, paths and blanks. */
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
