/** The upstream socket of one client socket, kept between turns as long as it can serve the next. */
import { MINUTE_MS } from '../../lib/durations.ts'
import type { Route } from '../../model/egress/route.ts'
import type { AccountCredentials } from '../../upstream/headers.ts'
import type { UpstreamSocket } from '../../upstream/socket.ts'

/** The upstream closes connections after 60 minutes, even in the middle of a turn (assumed). */
const MAX_AGE_MS = 55 * MINUTE_MS

/** A connection and its account. The upstream checks the token only at the handshake. */
export interface Connection {
  socket: UpstreamSocket
  accountId: string
  accessToken: string
  /** By which it was opened; an account with another route now needs a new connection. */
  route: Route
}

export class UpstreamSession {
  #kept: Connection | null = null
  #isOver = false

  /** The account of a connection that can still take a turn; null without one. `now` is monotonic. */
  accountAt(now: number): string | null {
    const kept = this.#kept
    return kept?.socket.isOpen && now - kept.socket.openedAt < MAX_AGE_MS ? kept.accountId : null
  }

  /** The kept connection if it belongs to this account and its route; any other is closed. Return it with `keep`. */
  take({ id, route }: Pick<AccountCredentials, 'id' | 'route'>, now: number): Connection | null {
    const kept = this.#kept
    if (this.accountAt(now) !== id || kept?.route !== route) {
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

  /** Closes the kept connection. */
  drop(): void {
    this.#kept?.socket.close()
    this.#kept = null
  }

  /** Closes the kept connection unless it passes. */
  keepOnly(isFit: (connection: Connection) => boolean): void {
    if (this.#kept && !isFit(this.#kept)) this.drop()
  }

  /** The client socket is closed: closes the kept connection, and any that is returned later. */
  end(): void {
    this.#isOver = true
    this.drop()
  }
}
