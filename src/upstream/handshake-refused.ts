/** What a refused handshake ends with; in a file of its own, so that who names it does not load sockets. */

/** The service refused the handshake with an ordinary HTTP answer. */
export class HandshakeRefused extends Error {
  override readonly name = 'HandshakeRefused'

  /** `body`: at most its first 64 KiB. */
  constructor(
    readonly status: number,
    readonly headers: Headers,
    readonly body: string,
  ) {
    super(`the handshake was answered with status ${status}`)
  }
}
