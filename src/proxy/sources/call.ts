/** Calls a model source with its key and a time limit, and passes its errors on to the client. */
import { AppError } from '../../errors.ts'
import { getObject, getText, isObject, parseJson } from '../../lib/json.ts'
import { encodeUtf8 } from '../../lib/utf8.ts'
import type { Source } from '../../model/sources/sources.ts'
import { errorText, isCompressed } from '../../upstream/bounded-body.ts'
import { failureFromThrown } from '../exchange/classify.ts'
import type { ProxyDeps } from '../turn/proxy-deps.ts'
import { elapsedMs, type Turn } from '../turn/turn.ts'
import { getRedactor, type Redactor } from './redactor.ts'
import { credentialsRejected, notJson, sourceFailure } from './source-errors.ts'

export interface SourceRequest {
  /** Under the base URL of the source: `/responses`. */
  path: string
  body: Uint8Array<ArrayBuffer>
  contentType: string
  accept: string
}

export interface Called {
  /** The status is 2xx, and there is a body. */
  response: Response
  blot: Redactor
}

/**
 * Resolves when the answer begins. Rejects with the error for the client, or with the reason of `signal`.
 */
export const callSource = async (
  proxyDeps: ProxyDeps,
  turn: Turn,
  { source, request, signal }: { source: Source; request: SourceRequest; signal: AbortSignal },
): Promise<Called> => {
  turn.log.phase = 'connect'
  turn.capture?.sourceAttempt(source)
  try {
    turn.log.upstreamTransport = 'http'
    turn.log.isSent = true
    const response = await proxyDeps.sourceFetch.fetch(source, { ...request, signal })
    turn.log.connectMs = elapsedMs(turn.arrivedAt, proxyDeps.clock.monotonic())
    const blot = getRedactor(source.key())
    turn.capture?.answered(response.status, withoutKey(response.headers, blot))
    if (!response.ok) throw await rejected(proxyDeps, turn, { source, response, blot })
    if (isCompressed(response)) throw refuse(response, notJson(source, 'compressed data'))
    return { response, blot }
  } catch (cause) {
    signal.throwIfAborted()
    throw sourceFailure(source, failureFromThrown(cause))
  }
}

const withoutKey = (headers: Headers, blot: Redactor): Headers =>
  new Headers([...headers].map(([name, value]) => [name, blot.text(value)]))

/** Notes for a capture why the attempt failed, with the code that the log has. */
export const attemptFailed = ({ capture }: Turn, error: AppError): AppError => {
  capture?.failed(error.extra.upstream?.code ?? error.code, error.message)
  return error
}

/** An unread body keeps its connection (Bun 1.4.5). */
const refuse = (response: Response, error: AppError): AppError => {
  void response.body?.cancel().catch(() => {}) // it may be closed already
  return error
}

const rejected = async (
  { clock }: ProxyDeps,
  { capture }: Turn,
  { source, response, blot }: Called & { source: Source },
): Promise<AppError> => {
  const { status } = response
  if (status === 401 || status === 403) return refuse(response, credentialsRejected(source))
  if (status < 400) return refuse(response, notJson(source, `status ${status}`))
  const text = blot.text(await errorText(response, clock))
  capture?.bytes(encodeUtf8(text))
  const body = parseJson(text)
  if (!isObject(body)) return notJson(source, `status ${status} and no JSON`)
  const error = isObject(body.error) ? body.error : body
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN)
  return new AppError('model_source_error', {
    status,
    message: messageIn(body, error) || `The model source '${source.name}' answered with status ${status}.`,
    upstream: { code: codeIn(error), type: getText(error.type) || null },
    ...(getText(error.param) && { param: getText(error.param) }),
    ...(Number.isInteger(retryAfter) && retryAfter >= 0 && { retryAfterSeconds: retryAfter }),
    body: text,
  })
}

const messageIn = (body: Record<string, unknown>, error: Record<string, unknown>): string =>
  getText(error.message) || getText(body.error) || getText(body.message) || getText(body.detail)

const codeIn = ({ code }: Record<string, unknown>): string | null =>
  typeof code === 'string' ? code : typeof code === 'number' ? String(code) : null

export const errorIn = (event: unknown): { message: string; code: string | null; type: string | null } | null => {
  const { error } = getObject(event)
  if (!isObject(error) && typeof error !== 'string') return null
  const stated = getObject(error)
  return {
    message: getText(error) || getText(stated.message) || 'The model source reported an error.',
    code: codeIn(stated),
    type: getText(stated.type) || null,
  }
}

/** The error in an event of another dialect, as the `error` event that settling reads. */
export const toErrorEvent = (event: unknown) => ({
  type: 'error',
  error: errorIn(event) ?? { message: 'The model source reported an error.', code: null, type: null },
})
