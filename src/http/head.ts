/** HEAD runs the handler of GET and sends nothing of its body: a stream would wait for ever for somebody to read it. */
import { createMiddleware } from './handlers.ts'

export const headOnly = createMiddleware(async (c, next) => {
  await next()
  if (c.req.method === 'HEAD') await c.res.body?.cancel()
})
