/** Opens one turn on one account: an HTTP response as soon as its headers arrive, or a socket. */
import { AppError } from '../errors.ts'
import type { Clock } from '../lib/clock.ts'
import { type Dial, extraConnectMs } from './dial.ts'
import { type AccountCredentials, socketHeaders, upstreamHeaders } from './headers.ts'
import type { UpstreamSocket } from './socket.ts'

interface OpenRequest {
  /** `POST` when absent. */
  method?: 'GET' | 'POST'
  /** Path under the upstream base URL. */
  path: string
  headers: Readonly<Record<string, string>>
  body: Uint8Array<ArrayBuffer> | null
  /** Content type of the body; JSON when absent, null without a body. */
  contentType?: string | null
  accept: string
  /** Aborted from outside or by the connect limit. */
  attempt: AbortController
  /** Limit for connecting; checked only if no headers have arrived by then. */
  connectTimeoutMs: number
}

export interface Upstream {
  dial: Dial
  clock: Clock
  baseUrl: string
}

/**
 * Sends the turn. Rejects with the runtime's error or the reason of `attempt`; `upstream_unreachable` when no
 * connection is possible.
 */
export const openTurn = async (
  upstream: Upstream,
  account: AccountCredentials,
  request: OpenRequest,
): Promise<Response> => {
  const { method = 'POST', accept, body, contentType = 'application/json' } = request
  const url = upstream.baseUrl + request.path
  let isOver = false // a check may still be running when the headers arrive
  const cancelCheck = upstream.clock.after(request.connectTimeoutMs, async () => {
    const can = await upstream.dial.canConnect(url, account.route)
    if (!can && !isOver) request.attempt.abort(new AppError('upstream_unreachable'))
  })
  try {
    return await upstream.dial.fetch(
      url,
      {
        method,
        headers: upstreamHeaders(request.headers, account, { accept, contentType: body === null ? null : contentType }),
        body,
        signal: request.attempt.signal,
      },
      account.route,
    )
  } finally {
    isOver = true
    cancelCheck()
  }
}

/**
 * Connects a socket for turns of the account. Rejects with `HandshakeRejected`, the runtime's error or the reason of
 * `attempt`.
 */
export const connect = async (
  { dial, clock, baseUrl }: Upstream,
  account: AccountCredentials,
  { path, headers, attempt, connectTimeoutMs }: Omit<OpenRequest, 'body' | 'accept'>,
): Promise<UpstreamSocket> => {
  const { openSocket } = await import('./socket.ts')
  const url = socketUrl(baseUrl, path)
  return openSocket({
    url,
    headers: socketHeaders(headers, account),
    agent: await dial.socketAgent(url, account.route),
    clock,
    timeoutMs: connectTimeoutMs + extraConnectMs(account.route),
    signal: attempt.signal,
  })
}

export const socketUrl = (baseUrl: string, path: string): string => (baseUrl + path).replace(/^http/, 'ws')
