/** Turns an error into an HTTP answer: the only reader of `AppError`. Pages are rendered by `render-error.tsx`. */
import { HTTPException } from 'hono/http-exception'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { isOutcomeUnknown } from '../../db/busy.ts'
import type { Principal } from '../auth/principal.ts'
import type { Ctx } from '../boot/bindings.ts'
import {
  AppError,
  anthropicError,
  anthropicStatus,
  type Code,
  openAiError,
  openAiErrorHeaders,
  type Rejection,
  type RejectionReason,
} from '../errors.ts'
import { holds } from '../model/users/permissions.ts'
import { getDatabaseProblem, isNotAFolderError } from '../ops/database-problem.ts'
import { getFolderPaths } from '../ops/folder-paths.ts'
import { loggedPath } from './access-log.ts'
import { isMessagesPath, isModelPath } from './model-path.ts'

type Answer = Response | Promise<Response>
type AnswerDashboard = (c: Ctx, err: AppError, requestId: string | null) => Answer

const OUR_FAULTS: readonly Code[] = ['internal_error', 'database_unavailable']

/**
 * An `onError` handler: logs unexpected errors in full and shows only their request id. Model traffic gets OpenAI's
 * envelope, Messages routes Anthropic's.
 */
export const errorAnswer =
  (answerPeople: AnswerDashboard) =>
  (thrown: unknown, c: Ctx): Answer => {
    const err = hasLeft(thrown, c) ? new AppError('invalid_request_error', { cause: thrown }) : asAppError(thrown, c)
    const requestId = (c.get('requestId') as string | undefined) ?? null // as: an error can occur before the id is set
    if (OUR_FAULTS.includes(err.code))
      c.env.log.error('a request failed', {
        request: requestId,
        method: c.req.method,
        path: loggedPath(c),
        err: thrown,
      })
    if (err.extra.rejection && !isOwnProbe(c, err.extra.rejection))
      c.env.ledger.reject({
        ...err.extra.rejection,
        ip: c.get('clientIp'),
        route: loggedPath(c),
        userAgent: c.req.header('user-agent') ?? null,
      })
    c.status(err.status as ContentfulStatusCode) // as: every status in the table has a body
    c.header('Vary', 'Accept, HX-Request')
    const { retryAfterSeconds } = err.extra
    if (retryAfterSeconds !== undefined) c.header('Retry-After', String(Math.max(1, Math.ceil(retryAfterSeconds))))
    if (!isModelPath(c.req.path)) return answerPeople(c, err, requestId)
    for (const [name, value] of Object.entries(openAiErrorHeaders(err))) c.header(name, value)
    if (isMessagesPath(c.req.path)) {
      c.status(anthropicStatus(err) as ContentfulStatusCode) // as: above
      // Claude Code would retry for minutes (2.1.332).
      if (err.status === 401 || err.code === 'model_source_credentials_error') c.header('x-should-retry', 'false')
      if (requestId !== null) c.header('request-id', requestId)
      return c.json(anthropicError(err, requestId))
    }
    return err.extra.body === undefined
      ? c.json({ error: openAiError(err) })
      : c.body(err.extra.body, { headers: { 'content-type': 'application/json' } })
  }

/** Our own pages request model paths without a key, to see whether a reverse proxy lets them through. */
const isOwnProbe = (c: Ctx, { reason }: Rejection): boolean =>
  c.req.header(PROBE_HEADER) === '1' && KEYLESS.includes(reason)

/** As sent by `views/assets/measures.js`. */
const PROBE_HEADER = 'x-sluice-probe'
/** Guessed and expired keys are always logged, whatever header came with them. */
const KEYLESS: readonly RejectionReason[] = ['missing_key', 'remote_client']

/** The envelope of the dashboard's API. */
export const problemJson = (c: Ctx, err: AppError, requestId: string | null): Answer =>
  c.json({ error: dashboardError(err, getMessage(err, requestId)) })

const dashboardError = ({ code, extra: { param, details } }: AppError, message: string) => ({
  code,
  message,
  ...(param && { param }),
  ...(details && Object.keys(details).length > 0 && { details }),
})

export const getMessage = (err: AppError, requestId: string | null): string =>
  err.code === 'internal_error' && requestId ? `${err.message} Request id: ${requestId}` : err.message

/** The client disconnected while sending its body: not our error, and the answer reaches no one. */
const hasLeft = (thrown: unknown, c: Ctx): boolean =>
  thrown instanceof Error && thrown.name === 'AbortError' && c.req.raw.signal.aborted

/** Hono throws `HTTPException` for malformed JSON and forms and for limits of its middleware. */
const asAppError = (thrown: unknown, c: Ctx): AppError => {
  if (!(thrown instanceof HTTPException)) return databaseError(thrown, c) ?? AppError.from(thrown)
  if (thrown.status === 404) return new AppError('not_found', { cause: thrown })
  if (thrown.status === 413) return new AppError('payload_too_large', { cause: thrown })
  if (thrown.status !== 400) return AppError.from(thrown)
  return new AppError(thrown.message.includes('JSON') ? 'malformed_json' : 'invalid_request_error', { cause: thrown })
}

/** A full or failing disk or a lost folder, as a helpful message with paths for users who may see the doctor page. */
const databaseError = (thrown: unknown, c: Ctx): AppError | null => {
  if (thrown instanceof AppError) return null
  if (isOutcomeUnknown(thrown)) return new AppError('database_unavailable', { message: MAY_BE_SAVED, cause: thrown })
  const { databasePath } = getFolderPaths(c.env.env)
  const known = getDatabaseProblem(thrown, databasePath)
  if (known === null && !isNotAFolderError(thrown, databasePath)) return null
  const trouble = c.env.ops.lostDatabase() ?? known // a missing file is neither damaged nor unreadable
  if (trouble === null) return null
  const principal = c.get('principal') as Principal | undefined // as: an error can occur before any gate
  const message = principal && holds(principal.grants, 'security:write') && `${trouble.says} ${trouble.advice}`
  return new AppError('database_unavailable', { ...(message && { message }), cause: thrown })
}

const MAY_BE_SAVED =
  'The connection to the database was lost while your change was being saved. It may or may not be saved: check before ' +
  'you try again.'
