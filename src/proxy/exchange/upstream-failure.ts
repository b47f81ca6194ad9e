/** Converts every upstream failure (a status, an event, a thrown error) to one shape; `classify.ts` judges it. */
import { AppError } from '../../errors.ts'
import { getObject, getText, isObject, type JsonObject, parseJson } from '../../lib/json.ts'
import { plausibleReset } from '../../model/accounts/account-state.ts'
import { fromRateHeaders, limitFamily } from '../../model/accounts/usage-reports.ts'
import { hasAnyWindow, isExhausted } from '../../model/accounts/usage-windows.ts'
import { getEgressReason } from '../../model/egress/route.ts'
import { isCompressed } from '../../upstream/bounded-body.ts'
import { SocketClosed } from '../../upstream/socket-errors.ts'

export interface UpstreamFailure {
  /** How far the attempt got: connecting, waiting for headers, a status, an event in the stream, the stream itself. */
  where: 'connect' | 'headers' | 'status' | 'event' | 'stream'
  status: number | null
  code: string | null
  type: string | null
  /** A message suitable for the client. */
  message: string
  /** ms since epoch */
  resetsAt: number | null
  retryAfterMs: number | null
  /** Only the allowance of single models is used up; the account itself has room. */
  isOfOneModel?: boolean
  /** The answer has neither an error code nor a message of ChatGPT. */
  isUnexplained?: boolean
  /** The account does not have the route itself, so another account may. */
  isRouteMissing?: boolean
  /** What guards the route rejected the request before ChatGPT saw it. */
  isBlocked?: boolean
  /** The upstream's body, for the log and for error members that are passed on. */
  body?: unknown
}

/** The upstream closed the stream before its terminal event. */
export const endedEarly: UpstreamFailure = Object.freeze({
  where: 'stream',
  status: null,
  code: 'stream_incomplete',
  type: null,
  message: 'The stream from ChatGPT ended before the response was complete.',
  resetsAt: null,
  retryAfterMs: null,
})

/** An error status. Reads `{error:{…}}`, `{error:"…"}`, `{detail:"…"}`, `{detail:{…}}`, `Retry-After` and rate headers. */
export const failureFromResponse = (
  status: number,
  headers: Headers,
  bodyText: string,
  at: number,
): UpstreamFailure => {
  const body = parseJson(bodyText) ?? null // an intermediary's HTML page; its text is kept as the body
  const facts = getFacts(getError(body), headers, at)
  const message = facts.message ?? `ChatGPT answered with status ${status}.`
  const isExplained = isServiceError(body) && (facts.code ?? facts.type ?? facts.message) !== null
  const isUnexplained = !isExplained && !isServiceErrorCut(bodyText) && !isCompressed({ headers })
  return { ...facts, where: 'status', status, message, isUnexplained, body: body ?? bodyText }
}

/** The two shapes of ChatGPT's errors; assumed to be all. */
const isServiceError = (body: unknown): boolean => isObject(body) && ('error' in body || 'detail' in body)

/** A ChatGPT error that was cut off. */
const isServiceErrorCut = (text: string): boolean =>
  parseJson(text) === undefined && /^\s*\{\s*"(error|detail)"/.test(text)

/** A `response.failed` or `error` event, also as a socket frame; null for other events. */
export const failureFromEvent = (event: unknown, at: number): UpstreamFailure | null => {
  if (!isObject(event)) return null
  if (event.type !== 'response.failed' && event.type !== 'error') return null
  const facts = getFacts(getErrorObject(event), getHeaders(event.headers), at)
  const message = facts.message ?? 'ChatGPT reported a failure without a reason.'
  return {
    ...facts,
    where: 'event',
    status: getStatus(event.status) ?? getStatus(event.status_code),
    message,
    body: event,
  }
}

/** The error object of a `response.failed` or `error` event, or of a failed response; its members are unchecked. */
export const getErrorObject = (source: JsonObject): JsonObject => {
  if (isObject(source.error)) return source.error
  const response = getObject(source.response)
  if (isObject(response.error)) return response.error
  // A bare `error` event has its members at the top level, where `type` is the event's name.
  return getError(
    source.type === 'error' || !isObject(source.response) ? { ...source, type: source.error_type } : response,
  )
}

/** The request member that the error in `body`, an answer or an event, is about. */
export const getParam = (body: unknown): string | null => {
  const { param } = getErrorObject(getObject(body))
  return typeof param === 'string' ? param : null
}

/**
 * An error thrown by fetch or a socket. `caughtAt` tells whether headers had arrived, because a reset looks the same
 * before and after. Connection failures are recognised by their code.
 */
export const failureFromThrown = (err: unknown, caughtAt: 'headers' | 'stream' = 'headers'): UpstreamFailure => {
  const none = {
    where: getEgressReason(err) ? ('connect' as const) : caughtAt,
    status: null,
    type: null,
    resetsAt: null,
    retryAfterMs: null,
    body: err,
  }
  if (err instanceof AppError || err instanceof SocketClosed) return { ...none, code: err.code, message: err.message }
  const name = err instanceof Error ? err.name : ''
  const code = getCode(err)
  if (name === 'TimeoutError' || code === 'ETIMEDOUT')
    return { ...none, code: 'upstream_timeout', message: 'ChatGPT did not answer in time.' }
  if (name === 'AbortError') return { ...none, code: 'aborted', message: 'The request was cancelled.' }
  if (caughtAt === 'headers' && code !== null) {
    if (isCertificateCode(code)) return { ...none, where: 'connect', code, message: SENTENCES.certificate }
    if (DIAL_CODES.has(code)) return { ...none, where: 'connect', code, message: SENTENCES.connect }
  }
  return { ...none, code, message: SENTENCES[caughtAt] }
}

/** Whether the code means that the certificate or TLS was rejected. */
export const isCertificateCode = (code: string): boolean =>
  code === 'EPROTO' || /CERT|^ERR_TLS|^ERR_SSL|UNABLE_TO_VERIFY/.test(code)

/** Milliseconds of a "try again in 1h2m3s" hint, added up; null without a hint. */
export const parseTryAgain = (message: string): number | null => {
  const hint = /try again in\s+/i.exec(message)
  if (!hint) return null
  const part =
    /\s*(?:,\s*|and\s+)*(\d+(?:\.\d+)?)\s*(milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)(?![a-z])/iy
  part.lastIndex = hint.index + hint[0].length
  let total: number | null = null
  for (let match = part.exec(message); match; match = part.exec(message)) {
    total = (total ?? 0) + Number(match[1]) * unitMs(match[2] ?? '')
  }
  return total === null ? null : Math.ceil(total)
}

const SENTENCES = {
  connect: 'ChatGPT could not be reached.',
  certificate: 'The TLS connection to ChatGPT failed: its certificate was not accepted.',
  headers: 'The connection to ChatGPT was lost before it answered.',
  stream: 'The stream from ChatGPT ended before the response was complete.',
} as const

/** Thrown by fetch and sockets while connecting. */
const DIAL_CODES: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  'ConnectionRefused',
  'FailedToOpenSocket',
  'ERR_PROXY_TUNNEL',
  'UnsupportedProxyProtocol',
])

const MAX_MESSAGE_LENGTH = 2_000

type Facts = Pick<UpstreamFailure, 'code' | 'type' | 'resetsAt' | 'retryAfterMs' | 'isOfOneModel'> & {
  message: string | null
}

/** The facts of a failed answer: from its error first, then its headers, but the wait from headers first. */
const getFacts = (error: JsonObject, headers: Headers, at: number): Facts => {
  const limit = getLimit(headers, at)
  const message = text(error.message) ?? text(error.error_description) ?? null
  const seconds = num(error.resets_at)
  const inSeconds = num(error.resets_in_seconds)
  const code = text(error.code)
  const reached = getText(headers.get(REACHED_TYPE_HEADER))
  return {
    code: isWorkspaceLimit(reached) && (code === null || code === 'usage_limit_reached') ? reached : code,
    type: text(error.type),
    message: message?.slice(0, MAX_MESSAGE_LENGTH) ?? null,
    resetsAt:
      plausibleReset(seconds === null ? null : seconds * 1000, at) ??
      plausibleReset(inSeconds === null ? null : at + inSeconds * 1000, at) ??
      limit.resetsAt,
    retryAfterMs: retryAfterMs(headers, at) ?? (message ? parseTryAgain(message) : null),
    isOfOneModel: limit.isOfOneModel,
  }
}

/** Names the limit that was reached (Codex CLI 0.169). */
export const REACHED_TYPE_HEADER = 'x-codex-rate-limit-reached-type'

/** The spend cap or credits of a workspace, set by its owner; they do not reset with a window. */
export const isWorkspaceLimit = (code: string): boolean => /^workspace_[a-z_]+$/.test(code)

/** The object with `message`, `code` and `type`, wherever the upstream put it. */
const getError = (body: unknown): JsonObject => {
  if (!isObject(body)) return {}
  if (isObject(body.error)) return body.error
  if (typeof body.error === 'string')
    return { ...body, code: body.error, message: body.error_description ?? body.message }
  if (typeof body.detail === 'string') return { message: body.detail }
  if (isObject(body.detail)) return body.detail
  return body
}

/** Often only the rate headers say which window is full and when it resets (Codex CLI 0.169). */
const getLimit = (headers: Headers, at: number): Required<Pick<UpstreamFailure, 'isOfOneModel' | 'resetsAt'>> => {
  const own = fromRateHeaders(headers, at)
  const hasRoom = own !== null && hasAnyWindow(own.windows) && !isExhausted(own, at).exhausted
  const family = hasRoom ? limitFamily(headers) : null
  const refused = family === null ? own : fromRateHeaders(headers, at, family)
  return { isOfOneModel: family !== null, resetsAt: plausibleReset(isExhausted(refused, at).resetAt, at) }
}

const retryAfterMs = (headers: Headers, at: number): number | null => {
  const ms = num(headers.get('retry-after-ms'))
  if (ms !== null && ms >= 0) return Math.ceil(ms)
  const value = headers.get('retry-after')
  const seconds = num(value)
  if (seconds !== null) return seconds >= 0 ? Math.ceil(seconds * 1000) : null
  const date = value ? Date.parse(value) : Number.NaN
  return Number.isNaN(date) ? null : Math.max(0, date - at)
}

const getHeaders = (value: unknown): Headers => {
  const headers = new Headers()
  if (!isObject(value)) return headers
  for (const [name, field] of Object.entries(value)) {
    const isSafe = /^[\w-]+$/.test(name) && (typeof field === 'string' || typeof field === 'number')
    if (isSafe && /^[\x20-\x7e]*$/.test(String(field))) headers.set(name, String(field))
  }
  return headers
}

const getCode = (err: unknown): string | null => (isObject(err) ? text(err.code) : null)

const getStatus = (value: unknown): number | null => {
  const status = num(value)
  return status !== null && Number.isInteger(status) && status >= 300 && status <= 599 ? status : null
}

const unitMs = (unit: string): number => {
  const name = unit.toLowerCase()
  if (name.startsWith('ms') || name.startsWith('milli')) return 1
  return { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }[name.slice(0, 1)] ?? 0
}

const text = (value: unknown): string | null => getText(value).trim() || null

const num = (value: unknown): number | null => {
  const isCandidate = typeof value === 'number' || (typeof value === 'string' && value.trim() !== '')
  return isCandidate && Number.isFinite(Number(value)) ? Number(value) : null
}
