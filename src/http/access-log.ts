/** One line per request: what was asked, what was answered, how long it took. No secrets, no query values. */
import { matchedRoutes } from 'hono/route'
import type { Ctx } from '../bindings.ts'
import type { Level } from '../lib/log.ts'
import { createMiddleware } from './handlers.ts'
import { isModelPath } from './model-path.ts'

const MAX_PATH_CHARS = 120

/** Written when the answer's headers are ready; a stream goes on after its line, and the request log has its end. */
export const accessLog = createMiddleware(async (c, next) => {
  await next()
  logAnswer(c)
})

export const logAnswer = (c: Ctx): void => {
  const level = levelOf(c)
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
 * Probes say nothing while they are well, and every model turn has its row in the request log. What is answered where the
 * connection is gone reaches nobody.
 */
const levelOf = (c: Ctx): Level => {
  if (c.res.status >= 500 && !c.req.raw.signal.aborted) return 'warn'
  return isModelPath(c.req.path) || IS_PROBE.test(c.req.path) ? 'debug' : 'info'
}

const IS_PROBE = /^\/health(\/|$)/

/** As long as a secret, an id or a name nobody needs to read: an invite link with a slash too many is still an invite link. */
const LONG_WORD = /[\w%-]{20,}/g

/** The pattern of the route, because a path can hold a secret (an invite); where no route knows it, the short words of the path. */
export const loggedPath = (c: Ctx): string => {
  const route = matchedRoutes(c).find(({ handler }) => handler.length < 2)
  return route?.path ?? c.req.path.replace(LONG_WORD, '…').slice(0, MAX_PATH_CHARS)
}
