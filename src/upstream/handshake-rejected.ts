/** The error of a rejected handshake; in its own file, so that importing it does not load sockets. */

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
