/** What happens to every gateway request before and after its handler. */
import type { Ctx } from '../boot/bindings.ts'
import { logAnswer } from './access-log.ts'
import { allowOrigin, preflightAnswer } from './cors.ts'
import { errorAnswer, problemJson } from './error-answer.ts'
import { createMiddleware } from './handlers.ts'
import { setArrival, setRequestIdHeader } from './request-context.ts'

export const renderGatewayError = errorAnswer(problemJson)

/**
 * Model traffic has no pages or cookies to protect, and its gate checks the Host, so the dashboard's other
 * middleware is left out.
 */
export const arrival = createMiddleware(async (c, next) => {
  setArrival(c)
  const preflight = preflightAnswer(c)
  if (preflight) c.res = preflight
  else await next()
  logDisconnect(c)
})

/**
 * The same without middleware, for handlers that are `alone` (`known-paths.ts`): one middleware layer costs two async
 * functions, 2 % of a turn (Bun 1.4.5).
 */
export const alone = <More extends object>(handle: ((c: Ctx) => Promise<Response>) & More) => {
  const serve = (c: Ctx): Promise<Response> => {
    setArrival(c)
    return run(handle, c).then(
      (answer) => finish(c, answer),
      async (err) => finish(c, await renderGatewayError(err, c)),
    )
  }
  return Object.assign(serve, handle, { isAlone: true })
}

/** A gate may throw synchronously, which becomes a rejection. */
const run = (handle: (c: Ctx) => Promise<Response>, c: Ctx): Promise<Response> => {
  try {
    return handle(c)
  } catch (err) {
    return Promise.reject(err)
  }
}

const finish = (c: Ctx, answer: Response): Response => {
  c.res = answer
  logDisconnect(c)
  return c.res
}

const logDisconnect = (c: Ctx): void => {
  setRequestIdHeader(c)
  allowOrigin(c)
  logAnswer(c)
}
