/** What is done with every request of the gateway before its handler and behind it. */
import type { Ctx } from '../bindings.ts'
import { logAnswer } from './access-log.ts'
import { allowOrigin, preflightAnswer } from './cors.ts'
import { errorAnswer, problemJson } from './error-answer.ts'
import { createMiddleware } from './handlers.ts'
import { noteArrival, tellRequestId } from './request-context.ts'

export const renderGatewayError = errorAnswer(problemJson)

/**
 * Model traffic has no pages, no cookies and no browser to protect, and its gate looks at the Host: every layer it does not
 * pass is time to the first byte.
 */
export const arrival = createMiddleware(async (c, next) => {
  noteArrival(c)
  const preflight = preflightAnswer(c)
  if (preflight) c.res = preflight
  else await next()
  noteDeparture(c)
})

/**
 * The same for a handler that is alone with its request (`known-paths.ts`): a layer of middleware is an async function of the
 * framework's and one of its own, and both together a fiftieth of a turn (measured). Hence none here, either.
 */
export const alone = <More extends object>(handle: ((c: Ctx) => Promise<Response>) & More) => {
  const serve = (c: Ctx): Promise<Response> => {
    noteArrival(c)
    return run(handle, c).then(
      (answer) => finish(c, answer),
      async (err) => finish(c, await renderGatewayError(err, c)),
    )
  }
  return Object.assign(serve, handle, { isAlone: true })
}

/** What a gate throws at once, too, is a rejection. */
const run = (handle: (c: Ctx) => Promise<Response>, c: Ctx): Promise<Response> => {
  try {
    return handle(c)
  } catch (err) {
    return Promise.reject(err)
  }
}

const finish = (c: Ctx, answer: Response): Response => {
  c.res = answer
  noteDeparture(c)
  return c.res
}

const noteDeparture = (c: Ctx): void => {
  tellRequestId(c)
  allowOrigin(c)
  logAnswer(c)
}
