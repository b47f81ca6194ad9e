/** The errors a handler of the stand-in upstream throws: an error response in one of ChatGPT's formats, or a reset. */
import { isJson, type Json } from './script.ts'

export class Refusal extends Error {
  readonly status: number
  /** A string or bytes are sent unchanged, a function creates the stream to send, anything else is sent as JSON. */
  readonly body: unknown
  readonly headers: Record<string, string>

  constructor(status: number, body: unknown, headers: Record<string, string> = {}) {
    super(`refused with ${status}`)
    this.status = status
    this.body = body
    this.headers = headers
  }

  toResponse(more: Record<string, string>): Response {
    const { body, status, headers } = this
    const isRaw = typeof body === 'string' || body instanceof Uint8Array || typeof body === 'function'
    const type = isRaw ? 'text/plain' : 'application/json'
    return new Response(sentAs(body), { status, headers: { 'content-type': type, ...more, ...headers } })
  }

  /** The in-band error of a socket (client-protocol §5). */
  toFrame(more: Record<string, string>): Json {
    return { type: 'error', status: this.status, error: getError(this.body), headers: { ...more, ...this.headers } }
  }
}

function sentAs(body: unknown): BodyInit | null {
  if (body === undefined) return null
  if (typeof body === 'function') return body()
  if (typeof body === 'string') return body
  return body instanceof Uint8Array ? new Uint8Array(body) : JSON.stringify(body)
}

/** ChatGPT's message in the body of an error, in any of its formats. */
function getError(body: unknown): Json {
  if (!isJson(body)) return anError(null, String(body ?? 'The request was refused.'))
  if (isJson(body.error)) return body.error
  if (!isJson(body.detail)) return anError('invalid_request_error', String(body.detail))
  return { ...anError(null, String(body.detail.code)), ...body.detail }
}

function anError(type: string | null, message: string): Json {
  return { message, type, code: null, param: null }
}

/** `{"detail": …}`, the format of ChatGPT's own checks. */
export function detail(status: number, text: string): Refusal {
  return new Refusal(status, { detail: text })
}

/** `{"error": {…}}`, the shape of the model API behind it. */
export function apiError(status: number, code: string | null, message: string, param: string | null = null): Refusal {
  return new Refusal(status, { error: { message, type: 'invalid_request_error', code, param } })
}

/** Thrown when the connection must break before any header. */
export class ConnectionReset extends Error {}

/** What Bun's `fetch` rejects with when the peer resets the connection. */
export function resetError(): TypeError {
  return Object.assign(new TypeError('The socket connection was closed unexpectedly.'), { code: 'ECONNRESET' })
}
