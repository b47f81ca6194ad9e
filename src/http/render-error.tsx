/** Shows an error in the form its caller can read: the only reader of `AppError`, mounted as `onError` and `notFound`. */
import type { Context } from 'hono'
import { HTTPException } from 'hono/http-exception'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { ErrorAlert, ErrorPage, type ErrorProps } from '../../views/error.tsx'
import type { AppEnv } from '../bindings.ts'
import { AppError, openAiError } from '../errors.ts'
import { isModelPath } from './model-path.ts'
import { representation } from './reply.tsx'

type Ctx = Context<AppEnv>

/** Answers with the envelope of the surface; logs in full what is not one of ours, and shows only its request id. */
export const renderError = (thrown: unknown, c: Ctx): Response | Promise<Response> => {
  const err = hasLeft(thrown, c) ? new AppError('invalid_request_error', { cause: thrown }) : asAppError(thrown)
  const requestId = (c.get('requestId') as string | undefined) ?? null // as: an error can come before the id is set
  if (err.code === 'internal_error')
    c.env.log.error('a request failed', { request: requestId, method: c.req.method, path: c.req.path, err: thrown })
  c.status(err.status as ContentfulStatusCode) // as: every status of the table carries a body
  c.header('Vary', 'Accept, HX-Request, HX-Request-Type')
  const { retryAfterSeconds } = err.extra
  if (retryAfterSeconds !== undefined) c.header('Retry-After', String(Math.max(1, Math.ceil(retryAfterSeconds))))
  return isModelPath(pathOf(c, err)) ? c.json({ error: openAiError(err) }) : renderForDashboard(c, err, requestId)
}

/** `app.notFound`: nothing answers here. */
export const renderNotFound = (c: Ctx): Response | Promise<Response> => renderError(new AppError('not_found'), c)

const renderForDashboard = (c: Ctx, err: AppError, requestId: string | null): Response | Promise<Response> => {
  const shown: ErrorProps = { code: err.code, status: err.status, message: messageOf(err, requestId), requestId }
  switch (representation(c)) {
    case 'json':
      return c.json({ error: dashboardError(err, shown.message) })
    case 'fragment':
      c.header('HX-Retarget', '#flash')
      c.header('HX-Reswap', 'innerHTML')
      return c.html(<ErrorAlert {...shown} />)
    case 'page':
      return c.render(<ErrorPage {...shown} />, { title: `${err.status}` })
  }
}

const dashboardError = ({ code, extra: { param, details } }: AppError, message: string) => ({
  code,
  message,
  ...(param && { param }),
  ...(details && Object.keys(details).length > 0 && { details }),
})

const messageOf = (err: AppError, requestId: string | null): string =>
  err.code === 'internal_error' && requestId ? `${err.message} Request id: ${requestId}` : err.message

/** The client broke off in the middle of its body: nobody's fault here, and nobody reads the answer. */
const hasLeft = (thrown: unknown, c: Ctx): boolean =>
  thrown instanceof Error && thrown.name === 'AbortError' && c.req.raw.signal.aborted

/** Hono's own refusals arrive as `HTTPException`: a body that is no JSON or no form, and limits of its middleware. */
const asAppError = (thrown: unknown): AppError => {
  if (!(thrown instanceof HTTPException)) return AppError.from(thrown)
  if (thrown.status === 404) return new AppError('not_found', { cause: thrown })
  if (thrown.status === 413) return new AppError('payload_too_large', { cause: thrown })
  if (thrown.status !== 400) return AppError.from(thrown)
  return new AppError(thrown.message.includes('JSON') ? 'malformed_json' : 'invalid_request_error', { cause: thrown })
}

/** With a bad Host the URL is the path alone, and what the router made of it is not what was asked for. */
const pathOf = (c: Ctx, err: AppError): string =>
  err.code === 'bad_host' && c.req.url.startsWith('/') ? c.req.url.replace(/\?.*/s, '') : c.req.path
