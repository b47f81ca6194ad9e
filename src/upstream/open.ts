/** Opens one model turn on one account over HTTP and hands back the response as soon as its headers are there. */
import { AppError } from '../errors.ts'
import type { Clock } from '../lib/clock.ts'
import type { Dial } from './dial.ts'
import { type AccountCredentials, upstreamHeaders } from './headers.ts'

export interface OpenRequest {
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
  const cancelCheck = upstream.clock.after(request.connectTimeoutMs, () => {
    void upstream.dial.canConnect(url).then((can) => can || request.attempt.abort(new AppError('upstream_unreachable')))
  })
  try {
    return await upstream.dial.fetch(url, {
      method: 'POST',
      headers: upstreamHeaders(request.headers, account, { accept: request.accept, contentType: 'application/json' }),
      body: request.body,
      signal: request.attempt.signal,
    })
  } finally {
    cancelCheck()
  }
}
