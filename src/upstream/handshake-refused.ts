/** What a handshake ends with where there is no socket; apart from them, because they are loaded for the first of them. */

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
