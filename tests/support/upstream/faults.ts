/** The faults of an account of the stand-in upstream, and ready-made examples. */

/** The routes a fault can hit; a fault without `on` hits `responses`. */
export type FaultRoute =
  | 'responses'
  | 'compact'
  | 'models'
  | 'usage'
  | 'reset-credits'
  | 'redeem'
  | 'token'
  | 'handshake'
  | 'create'
  | 'control'
  | 'image'
  | 'file'
  | 'transcribe'
  | 'live'

/**
 * Every field is optional and they compose: `{ delayHeadersMs: 50, status: 500 }` is a slow error. On a socket a
 * `responses` fault affects one `response.create`, and its `status` is an in-band error; `handshake` affects the
 * upgrade itself, and `create` a `response.create` only, while HTTP works.
 */
export type Fault = {
  on?: FaultRoute
  /** Wait before the response headers. */
  delayHeadersMs?: number
  /** Destroy the connection before any header: `fetch` rejects with a TypeError of code ECONNRESET. Ends a socket. */
  reset?: boolean
  /**
   * Answer with this status instead of doing anything; `body` is sent unchanged if it is a string or bytes, else as
   * JSON. A function creates the stream that is sent.
   */
  status?: number
  body?: unknown
  headers?: Record<string, string>

  /** Another status than 200 for the stream of an answer. */
  streamStatus?: number
  /** The rest shapes the stream of a 200. Counts are of events already sent. */
  delayFirstEventMs?: number
  /** Pause between any two events. */
  dripMs?: number
  /** Send a `codex.rate_limits` event first. */
  rateLimitsEvent?: boolean
  /** After `afterEvents` (1) events of the answer, end with `response.failed` carrying this error. */
  failAfterCreated?: { code: string; message: string; afterEvents?: number; [field: string]: unknown }
  /** After `afterEvents` (1) events, send `{"type":"error",…}` and end without a terminal event. */
  errorEvent?: { code: string; message: string; afterEvents?: number; [field: string]: unknown }
  /** End with `response.incomplete` instead of `response.completed`. */
  incomplete?: { reason: string }
  /** Replace the answer by one message of `count` deltas of `bytes` characters, `perChunk` (1) events per write. */
  manyEvents?: { count: number; bytes: number; perChunk?: number }
  /** Write garbage between two events. */
  malformedChunk?: { afterEvents: number; text?: string }
  /**
   * Send nothing more, forever, and keep the connection open: between two events, or after the last, also that of
   * `errorEvent`.
   */
  silence?: { afterEvents: number }
  /** `fin` ends the body cleanly but early, a socket with close 1000; `reset` breaks the connection. */
  dropAfter?: { events: number; how: 'fin' | 'reset' }
  /** End the body cleanly right before the terminal event, a socket with close 1000. */
  omitTerminal?: boolean

  /** The rest is for sockets. Close it in the middle of a turn; 0 is before any event. Over SSE a clean early end. */
  close?: { code: number; reason?: string; afterEvents: number }
  /** Drop the TCP connection in the middle of a turn, without a close frame. */
  terminate?: { afterEvents: number }
  /** Send a binary frame between two events. */
  binaryFrame?: { afterEvents: number }
  /** Close after the turn has ended, however it did. */
  closeIdle?: { code: number; reason?: string }
  /**
   * Stop reading from the socket for good, from the handshake or from this turn on; data is still sent. The stand-in
   * then notices nothing of its peer, not even a disconnect, until `closeSockets` or `stop`.
   */
  stopReading?: boolean
  /** Leave pings unanswered. The runtime answers those it reads by itself, so this too stops the reading. */
  ignorePings?: boolean
}

type ErrorFields = { message: string; type?: string | null; code?: string | null; [field: string]: unknown }

const refusal = (status: number, error: ErrorFields, headers: Record<string, string> = {}): Fault => ({
  status,
  body: { error: { param: null, ...error } },
  headers,
})

const badRequest = (code: string, message: string): Fault =>
  refusal(400, { message, type: 'invalid_request_error', code })

/** Ready-made errors with the bodies of ChatGPT. */
export const faults = {
  /** 429 of an exhausted account. `resetsAt` is ms since epoch; without it the client cannot tell when to retry. */
  usageLimit: (options: { resetsAt?: number; planType?: string; headers?: Record<string, string> } = {}): Fault => ({
    status: 429,
    body: {
      error: {
        type: 'usage_limit_reached',
        message: 'The usage limit has been reached',
        plan_type: options.planType ?? 'plus',
        ...(options.resetsAt === undefined ? {} : { resets_at: Math.floor(options.resetsAt / 1000) }),
      },
    },
    headers: { 'x-codex-active-limit': 'premium', ...options.headers },
  }),
  usageNotIncluded: (): Fault =>
    refusal(429, { type: 'usage_not_included', message: 'Your plan does not include this.' }),
  insufficientQuota: (): Fault =>
    refusal(429, { type: 'insufficient_quota', code: 'insufficient_quota', message: 'The quota is used up.' }),
  /** 429 that asks the client to wait; without `retryAfterSeconds` the native client gives up immediately. */
  rateLimited: (retryAfterSeconds?: number): Fault =>
    refusal(
      429,
      { type: 'requests', code: 'rate_limit_exceeded', message: 'Too many requests; slow down.' },
      retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) },
    ),
  unauthorized: (code = 'token_expired'): Fault =>
    refusal(401, { type: null, code, message: 'The access token was refused.' }),
  forbidden: (): Fault => ({ status: 403, body: { detail: 'Forbidden' } }),
  /** 403 with an HTML page, as an edge proxy in front of ChatGPT sends it. */
  forbiddenHtml: (): Fault => html(403, 'Forbidden'),
  deactivatedWorkspace: (): Fault => ({ status: 402, body: { detail: { code: 'deactivated_workspace' } } }),
  serverError: (): Fault =>
    refusal(500, { type: 'server_error', code: 'server_error', message: 'An error occurred while processing.' }),
  badGatewayHtml: (): Fault => html(502, 'Bad gateway'),
  overloaded: (): Fault =>
    refusal(503, { type: 'service_unavailable_error', code: 'server_is_overloaded', message: 'Overloaded.' }),
  slowDown: (retryAfterSeconds?: number): Fault =>
    refusal(
      503,
      { type: 'service_unavailable_error', code: 'slow_down', message: 'slow down' },
      retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) },
    ),
  modelNotSupported: (model: string): Fault => ({ status: 400, body: { detail: modelNotSupported(model) } }),
  modelNotFound: (model: string): Fault =>
    refusal(404, { type: 'invalid_request_error', code: 'model_not_found', message: `There is no model ${model}.` }),
  invalidValue: (): Fault => badRequest('invalid_value', 'Invalid value: bad.'),
  contextLength: (): Fault => badRequest('context_length_exceeded', 'The input exceeds the context window.'),
  invalidEncryptedContent: (): Fault =>
    badRequest('invalid_encrypted_content', 'The encrypted content could not be verified.'),
  cyberPolicy: (): Fault => badRequest('cyber_policy', 'The content was flagged.'),
  invalidPrompt: (): Fault => badRequest('invalid_prompt', 'Invalid prompt: policy'),
} as const

/** ChatGPT's message for a model outside the plan. */
export function modelNotSupported(model: string): string {
  return `The '${model}' model is not supported when using Codex with a ChatGPT account.`
}

function html(status: number, title: string): Fault {
  return {
    status,
    body: `<html><head><title>${status} ${title}</title></head><body><h1>${title}</h1></body></html>`,
    headers: { 'content-type': 'text/html; charset=UTF-8' },
  }
}
