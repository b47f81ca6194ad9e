/** Short calls to a model source whose whole answer is JSON: its list of models, and tests. */
import { AppError } from '../errors.ts'
import type { Clock } from '../lib/clock.ts'
import { getObject, getText, parseJson } from '../lib/json.ts'
import { redactSecret } from '../lib/redact-secret.ts'
import type { Source } from '../model/sources/sources.ts'
import { errorText, wholeText } from './bounded-body.ts'
import type { SourceFetch } from './source-fetch.ts'

export interface SourceCallDeps {
  sourceFetch: Pick<SourceFetch, 'fetch'>
  clock: Clock
}

export type CalledSource = Pick<Source, 'baseUrl' | 'key'>

interface Question {
  path: string
  /** Sent with POST; absent: GET. */
  json?: Record<string, unknown>
  /** For everything, including the body. */
  timeoutMs: number
  signal?: AbortSignal
}

/** The list of models of a large provider has a thousand entries of a KB. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024
const SHOWN_CHARS = 300

/**
 * The parsed answer. Throws `model_source_unreachable`, `model_source_credentials_error`, `model_source_error`,
 * `invalid_upstream_response`, whose messages never contain the key, and the reason of an aborted `signal`.
 */
export const callModelSource = async (
  { sourceFetch, clock }: SourceCallDeps,
  source: CalledSource,
  { path, json, timeoutMs, signal }: Question,
): Promise<unknown> => {
  const limit = new AbortController()
  const cancel = clock.after(timeoutMs, () => limit.abort(tooLate(timeoutMs)))
  try {
    const response = await sourceFetch.fetch(source, {
      path,
      accept: 'application/json',
      ...(json && { body: JSON.stringify(json), contentType: 'application/json' }),
      signal: signal ? AbortSignal.any([signal, limit.signal]) : limit.signal,
    })
    const text = await getBody(response, limit.signal)
    return read(response, text, source)
  } finally {
    cancel()
  }
}

/** Ends with the signal even if reading does not. */
const getBody = async (response: Response, signal: AbortSignal): Promise<string> => {
  const stop = Promise.withResolvers<never>()
  const onAbort = () => {
    void response.body?.cancel().catch(() => {}) // being read
    stop.reject(signal.reason)
  }
  signal.addEventListener('abort', onAbort, { once: true })
  stop.promise.catch(() => {}) // the read may win
  try {
    const reading = response.ok ? wholeText(response, MAX_ANSWER_BYTES) : errorText(response)
    return await Promise.race([reading, stop.promise])
  } catch (cause) {
    signal.throwIfAborted()
    if (cause instanceof AppError && cause.code === 'upstream_error')
      throw new AppError('invalid_upstream_response', {
        message: `The answer of the model source is larger than ${MAX_ANSWER_BYTES / 1024 / 1024} MiB or cannot be decoded.`,
        cause,
      })
    throw new AppError('model_source_unreachable', { message: 'The answer of the model source broke off.', cause })
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

const read = (response: Response, text: string, source: CalledSource): unknown => {
  const body = parseJson(text)
  if (!response.ok) throw refusal(response.status, body, text, source)
  if (body !== undefined && typeof body === 'object' && body !== null) return body
  const isPage = /^\s*</.test(text)
  throw new AppError('invalid_upstream_response', {
    message: isPage
      ? 'The model source answered with a web page, not JSON. Check the base URL: most servers need /v1 at its end.'
      : 'The model source did not answer with JSON. Check the base URL: most servers need /v1 at its end.',
  })
}

const refusal = (status: number, body: unknown, text: string, source: CalledSource): AppError => {
  const words = redactSecret(getWords(body) || (/^\s*</.test(text) ? '' : text.trim()), source.key())
  const said = words === '' ? '.' : `: ${words.slice(0, SHOWN_CHARS)}`
  if (status === 401 || status === 403)
    return new AppError('model_source_credentials_error', {
      message: `The model source rejected its API key (${status})${said}`,
    })
  const hint = status === 404 && words === '' ? ' Check the base URL: most servers need /v1 at its end.' : ''
  return new AppError('model_source_error', { message: `The model source answered ${status}${said}${hint}` })
}

/** `{error: {message}}`, `{error: "…"}`, `{message}`, `{detail: "…"}`. */
const getWords = (body: unknown): string => {
  const top = getObject(body)
  return getText(getObject(top.error).message) || getText(top.error) || getText(top.message) || getText(top.detail)
}

const tooLate = (timeoutMs: number): AppError =>
  new AppError('model_source_unreachable', {
    message: `The model source did not answer within ${Math.round(timeoutMs / 1000)} seconds.`,
  })
