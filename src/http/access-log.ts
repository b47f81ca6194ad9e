/** One log line per request: route, status, duration. No secrets, no query values. */
import { matchedRoutes } from 'hono/route'
import type { Ctx } from '../boot/bindings.ts'
import type { Level } from '../lib/log.ts'
import { createMiddleware } from './handlers.ts'
import { isModelPath } from './model-path.ts'

const MAX_PATH_CHARS = 120

/** Written when the headers are ready; the end of a stream is in the request log. */
export const accessLog = createMiddleware(async (c, next) => {
  await next()
  logAnswer(c)
})

export const logAnswer = (c: Ctx): void => {
  const level = getLevel(c)
  if (!c.env.log.writes(level)) return
  c.env.log[level]('request', {
    method: c.req.method,
    path: loggedPath(c),
    status: c.res.status,
    ms: Math.round((c.env.clock.monotonic() - c.get('arrivedAt')) * 1000) / 1000,
    ip: c.get('clientIp') ?? undefined,
    request: c.get('requestId'),
  })
}

/**
 * Successful probes and model requests, which have the request log, are logged at debug. A failure after the client
 * disconnected is not a warning.
 */
const getLevel = (c: Ctx): Level => {
  if (c.res.status >= 500 && !c.req.raw.signal.aborted) return 'warn'
  return isModelPath(c.req.path) || IS_PROBE.test(c.req.path) ? 'debug' : 'info'
}

const IS_PROBE = /^\/health(\/|$)/

/** Words this long may be secrets or ids: an invite link with an extra slash is still an invite link. */
const LONG_WORD = /[\w%-]{20,}/g

/**
 * The route pattern, because a path can contain a secret (an invite); without a matching route, the path with long
 * words removed.
 */
export const loggedPath = (c: Ctx): string => {
  const route = matchedRoutes(c).find(({ handler }) => handler.length < 2)
  return route?.path ?? c.req.path.replace(LONG_WORD, '…').slice(0, MAX_PATH_CHARS)
}
