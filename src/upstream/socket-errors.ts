/** How the upstream rejects a socket, or closes it during a turn. Apart from `socket.ts`, so that importing this loads no sockets. */
import { AppError } from '../errors.ts'

/** Close codes of RFC 6455 §7.4.1 and its registry. */
const TOO_LARGE = 1009
/** Going away, frame too large, restarting, try again later: assumed never to be about the account. */
const NOT_ABOUT_THE_ACCOUNT: ReadonlySet<number> = new Set([1001, TOO_LARGE, 1012, 1013])

/** Closed for a reason unrelated to the account. */
export class SocketClosed extends Error {
  override readonly name = 'SocketClosed'
  readonly code = 'socket_closed'
  readonly isTooLarge: boolean

  constructor(closeCode: number) {
    super(sentence(closeCode))
    this.isTooLarge = closeCode === TOO_LARGE
  }
}

/** The error of a turn whose socket was closed with this code. */
export const closedWith = (closeCode: number): Error =>
  NOT_ABOUT_THE_ACCOUNT.has(closeCode)
    ? new SocketClosed(closeCode)
    : new AppError('stream_incomplete', { message: sentence(closeCode) })

const sentence = (closeCode: number): string =>
  `ChatGPT closed the socket with code ${closeCode} before the response was complete.`

/** The upstream rejected the handshake with an ordinary HTTP answer. */
export class HandshakeRejected extends Error {
  override readonly name = 'HandshakeRefused'

  /** `body`: at most the first 64 KiB. */
  constructor(
    readonly status: number,
    readonly headers: Headers,
    readonly body: string,
  ) {
    super(`the handshake was answered with status ${status}`)
  }
}
