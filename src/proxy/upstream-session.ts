/** The upstream socket of one downstream socket: kept between its turns, as long as it may serve the next. */
import { MINUTE_MS } from '../lib/durations.ts'
import type { UpstreamSocket } from '../upstream/socket.ts'

/** The service closes a connection after 60 minutes, in the middle of a turn if need be (client protocol §14). */
const MAX_AGE_MS = 55 * MINUTE_MS

/** A connection and who stands behind it: the service judges the token at the handshake and never again. */
export interface Connection {
  socket: UpstreamSocket
  accountId: string
  accessToken: string
}

export class UpstreamSession {
  #kept: Connection | null = null
  #isOver = false

  /** The account at the other end of a connection that can still take a turn; null without one. `now` is monotonic. */
  accountAt(now: number): string | null {
    const kept = this.#kept
    return kept?.socket.isOpen && now - kept.socket.openedAt < MAX_AGE_MS ? kept.accountId : null
  }

  /** The kept connection when it leads to this account; any other is closed. The caller gives it back with `keep`. */
  take(accountId: string, now: number): Connection | null {
    const kept = this.#kept
    if (this.accountAt(now) !== accountId) {
      this.drop()
      return null
    }
    this.#kept = null
    return kept
  }

  keep(connection: Connection): void {
    if (this.#isOver) connection.socket.close()
    else this.#kept = connection
  }

  /** Closes what is kept: it failed, or its account may not serve any more. */
  drop(): void {
    this.#kept?.socket.close()
    this.#kept = null
  }

  /** Closes what is kept unless its account passes. */
  keepOnly(isFit: (accountId: string) => boolean): void {
    if (this.#kept && !isFit(this.#kept.accountId)) this.drop()
  }

  /** The downstream socket is gone: what is kept is closed, and so is what is given back later. */
  end(): void {
    this.#isOver = true
    this.drop()
  }
}
