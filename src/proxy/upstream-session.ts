/** The upstream socket of one downstream socket: kept between its turns, as long as it may serve the next. */
import type { UpstreamSocket } from '../upstream/socket.ts'

/** The service closes a connection after 60 minutes, in the middle of a turn if need be (client protocol §14). */
const MAX_AGE_MS = 55 * 60_000

export class UpstreamSession {
  #socket: UpstreamSocket | null = null
  #accountId: string | null = null
  #isOver = false

  /** The account at the other end of a connection that can still take a turn; null without one. `now` is monotonic. */
  accountAt(now: number): string | null {
    return this.#socket?.isOpen && now - this.#socket.openedAt < MAX_AGE_MS ? this.#accountId : null
  }

  /** The kept socket when it leads to this account; any other is closed. The caller gives it back with `keep`. */
  take(accountId: string, now: number): UpstreamSocket | null {
    const socket = this.#socket
    const fits = this.accountAt(now) === accountId
    this.#socket = null
    if (fits) return socket
    socket?.close()
    return null
  }

  keep(socket: UpstreamSocket, accountId: string): void {
    if (this.#isOver) socket.close()
    else {
      this.#socket = socket
      this.#accountId = accountId
    }
  }

  /** The downstream socket is gone: what is kept is closed, and so is what is given back later. */
  end(): void {
    this.#isOver = true
    this.#socket?.close()
    this.#socket = null
  }
}
