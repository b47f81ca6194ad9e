/** Answers to HEAD and OPTIONS on GET routes. */
import { createMiddleware } from './handlers.ts'

/** HEAD runs the GET handler without its body: a stream would otherwise wait forever for a reader. */
export const headOnly = createMiddleware(async (c, next) => {
  await next()
  if (c.req.method === 'HEAD') await c.res.body?.cancel()
})

/** For probes, which may use OPTIONS (RFC 9110 §9.3.7). */
export const answerOptions = createMiddleware(async (c, next) => {
  await next()
  if (c.req.method === 'OPTIONS') c.res.headers.set('allow', 'GET, HEAD, OPTIONS')
})
