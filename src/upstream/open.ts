/** Opens one model turn on one account: a response over HTTP as soon as its headers are there, or a connection for frames. */
import { AppError } from '../errors.ts'
import type { Clock } from '../lib/clock.ts'
import type { Dial } from './dial.ts'
import { type AccountCredentials, socketHeaders, upstreamHeaders } from './headers.ts'
import type { UpstreamSocket } from './socket.ts'

interface OpenRequest {
  /** Path under the upstream base URL. */
  path: string
  headers: Readonly<Record<string, string>>
  body: Uint8Array<ArrayBuffer>
  accept: string
  /** Ends the attempt, from outside or by the connect limit. */
  attempt: AbortController
  /** How long a connection may take; looked at only when no headers came within it. */
  connectTimeoutMs: number
}

export interface Upstream {
  dial: Dial
  clock: Clock
  baseUrl: string
}

/** Sends the turn. Rejects with the runtime's error or the reason of `attempt`; `upstream_unreachable` when no connection can be made. */
export const openTurn = async (
  upstream: Upstream,
  account: AccountCredentials,
  request: OpenRequest,
): Promise<Response> => {
  const url = upstream.baseUrl + request.path
  let isOver = false // a check may still be under way when the headers come
  const cancelCheck = upstream.clock.after(request.connectTimeoutMs, async () => {
    const can = await upstream.dial.canConnect(url)
    if (!can && !isOver) request.attempt.abort(new AppError('upstream_unreachable'))
  })
  try {
    return await upstream.dial.fetch(url, {
      method: 'POST',
      headers: upstreamHeaders(request.headers, account, { accept: request.accept, contentType: 'application/json' }),
      body: request.body,
      signal: request.attempt.signal,
    })
  } finally {
    isOver = true
    cancelCheck()
  }
}

/** Connects a socket for turns of the account. Rejects with `HandshakeRefused`, the runtime's error or the reason of `attempt`. */
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
    agent: await dial.socketAgent(url),
    clock,
    timeoutMs: connectTimeoutMs,
    signal: attempt.signal,
  })
}

export const socketUrl = (baseUrl: string, path: string): string => (baseUrl + path).replace(/^http/, 'ws')
