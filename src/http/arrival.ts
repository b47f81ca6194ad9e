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

const logDisconnect = (c: Ctx): void => {
  setRequestIdHeader(c)
  allowOrigin(c)
  logAnswer(c)
}
