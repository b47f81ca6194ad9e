/** What methods beside GET are answered with, where GET answers. */
import { createMiddleware } from './handlers.ts'

/** HEAD runs the handler of GET and sends nothing of its body: a stream would wait for ever for somebody to read it. */
export const headOnly = createMiddleware(async (c, next) => {
  await next()
  if (c.req.method === 'HEAD') await c.res.body?.cancel()
})

/** For probes, which may ask with OPTIONS (RFC 9110 §9.3.7). */
export const tellMethods = createMiddleware(async (c, next) => {
  await next()
  if (c.req.method === 'OPTIONS') c.res.headers.set('allow', 'GET, HEAD, OPTIONS')
})
