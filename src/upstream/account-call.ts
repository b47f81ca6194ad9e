/** Authenticated upstream calls about one account, with a time limit and one token refresh after a 401. */
import { AppError } from '../errors.ts'
import type { Clock } from '../lib/clock.ts'
import { getObject, getText, parseJson } from '../lib/json.ts'
import { errorText, wholeText } from './bounded-body.ts'
import type { Credentials } from './credentials.ts'
import type { Dial } from './dial.ts'
import { type AccountCredentials, USER_AGENT, upstreamHeaders } from './headers.ts'

export interface AccountCallDeps {
  dial: Dial
  /** Without a trailing slash. */
  baseUrl: string
  clock: Clock
  credentials: Pick<Credentials, 'fresh' | 'refresh'>
}

interface AccountCall {
  /** Path and query under the upstream base URL. */
  path: string
  /** Sent as JSON with POST; without it, GET. */
  json?: Record<string, unknown>
  /** Per try, including the body. */
  timeoutMs: number
  /** Further tries after temporary failures; default none. */
  retries?: number
  signal?: AbortSignal | undefined
}

/** The upstream answered with an error. */
export class UpstreamRejection extends Error {
  override readonly name = 'UpstreamRefusal'

  constructor(
    readonly status: number,
    /** The upstream's error code, if any. An error type is not a code. */
    readonly code: string | null,
    /** Its message, or null. */
    readonly reason: string | null,
    /** Its error type, only for the message. */
    type: string | null = null,
  ) {
    const name = code ?? type
    super(`ChatGPT answered ${status}${name ? ` ${name}` : ''}${reason ? `: ${reason}` : '.'}`)
  }
}

/** Log fields: message and cause of known errors, everything including the stack for others. */
export const getWhy = (err: unknown): Record<string, unknown> => {
  if (err instanceof UpstreamRejection) return { why: err.message }
  if (!(err instanceof AppError) || err.code === 'internal_error') return { err }
  const { cause } = err
  return cause instanceof Error ? { why: `${err.message} ${cause.message}` } : { why: err.message, cause }
}

/**
 * Sends the request and returns the parsed JSON. Throws `UpstreamRejection` for any status but 200, `upstream_timeout`,
 * `upstream_unreachable`, `egress_unavailable`, `upstream_error` for an answer that is not JSON or larger than 8 MiB, what `Credentials`
 * throws, and the reason of an aborted signal.
 */
export const callAsAccount = async (
  deps: AccountCallDeps,
  accountId: string,
  question: AccountCall,
): Promise<unknown> => {
  const account = await deps.credentials.fresh(accountId)
  const first = await callWithRetries(deps, account, question)
  if (first.status !== 401) return read(first)
  const renewed = await deps.credentials.refresh(accountId, account.accessToken)
  return read(await callWithRetries(deps, renewed, question))
}

interface Answer {
  status: number
  text: string
}

const FIRST_PAUSE_MS = 500
/** Model catalogs are the largest of these answers, at some hundred KB. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024

/** Retries 408, 429, 5xx and broken connections; the pause doubles. */
const callWithRetries = async (
  deps: AccountCallDeps,
  account: AccountCredentials,
  question: AccountCall,
): Promise<Answer> => {
  const { retries = 0, signal } = question
  for (let tries = 0; ; tries++) {
    const answer = await askOnce(deps, account, question).catch((err: unknown) => {
      if (tries < retries && err instanceof AppError && err.code === 'upstream_unreachable') return null
      throw err
    })
    if (answer !== null && (tries >= retries || !isPassing(answer.status))) return answer
    await deps.clock.sleep(FIRST_PAUSE_MS * 2 ** tries, signal)
  }
}

const isPassing = (status: number): boolean => status === 408 || status === 429 || status >= 500

const askOnce = async (
  { dial, baseUrl, clock }: AccountCallDeps,
  account: AccountCredentials,
  { path, json, timeoutMs, signal }: AccountCall,
): Promise<Answer> => {
  const limit = new AbortController()
  const cancel = clock.after(timeoutMs, () => limit.abort(new AppError('upstream_timeout')))
  const kind = { accept: 'application/json', ...(json && { contentType: 'application/json' }) }
  try {
    const response = await dial.fetch(
      baseUrl + path,
      {
        headers: upstreamHeaders({ 'user-agent': USER_AGENT }, account, kind),
        ...(json && { method: 'POST', body: JSON.stringify(json) }),
        signal: signal ? AbortSignal.any([signal, limit.signal]) : limit.signal,
      },
      account.route,
    )
    const { status } = response
    return { status, text: await (status === 200 ? wholeText(response, MAX_ANSWER_BYTES) : errorText(response, clock)) }
  } catch (cause) {
    if (limit.signal.aborted) throw limit.signal.reason
    if (signal?.aborted) throw signal.reason
    // an answer arrived but is unreadable, or nothing was sent
    if (cause instanceof AppError && (cause.code === 'upstream_error' || cause.code === 'egress_unavailable'))
      throw cause
    throw new AppError('upstream_unreachable', { cause })
  } finally {
    cancel()
  }
}

const read = ({ status, text }: Answer): unknown => {
  const body = parseJson(text)
  if (status !== 200) throw getRefusal(status, body)
  if (body === undefined) throw new AppError('upstream_error', { message: 'ChatGPT did not answer with JSON.' })
  return body
}

/** `{error:{code, type, message}}`, `{detail:{code, message}}`, `{detail:"…"}`, `{code, message}`. */
const getRefusal = (status: number, body: unknown): UpstreamRejection => {
  const top = getObject(body)
  const inner = getObject(top.error ?? top.detail ?? top)
  const reason = getText(inner.message) || getText(top.detail) || getText(top.error) || null
  return new UpstreamRejection(status, getText(inner.code) || null, reason, getText(inner.type) || null)
}
