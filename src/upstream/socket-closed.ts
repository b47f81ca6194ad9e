/** How the service closed a socket during a turn; in a file of its own, so that who names it does not load sockets. */
import { AppError } from '../errors.ts'

/** Close codes of RFC 6455 §7.4.1 and its registry. */
const TOO_LARGE = 1009
/** Going away, too large a frame, restarting, try again later: assumed never to be about the account. */
const NOT_ABOUT_THE_ACCOUNT: ReadonlySet<number> = new Set([1001, TOO_LARGE, 1012, 1013])

/** Closed for a reason that has nothing to do with the account. */
export class SocketClosed extends Error {
  override readonly name = 'SocketClosed'
  readonly code = 'socket_closed'
  readonly isTooLarge: boolean

  constructor(closeCode: number) {
    super(sentence(closeCode))
    this.isTooLarge = closeCode === TOO_LARGE
  }
}

/** What a turn rejects with whose socket was closed with this code. */
export const closedWith = (closeCode: number): Error =>
  NOT_ABOUT_THE_ACCOUNT.has(closeCode)
    ? new SocketClosed(closeCode)
    : new AppError('stream_incomplete', { message: sentence(closeCode) })

const sentence = (closeCode: number): string =>
  `ChatGPT closed the socket with code ${closeCode} before the response was complete.`
