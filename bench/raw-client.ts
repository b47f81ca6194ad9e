/** A minimal HTTP/1.1 client on a TCP socket, because the load driver must cost far less than what it measures. */
import type { Socket } from 'bun'

/** The result of one request. Times are from `Bun.nanoseconds()`; `firstByteNs` is the first byte of the body. */
export type Reply = {
  status: number
  sentNs: number
  firstByteNs: number
  bytes: number
  /** The stream ended with the last event of its dialect and the last chunk. */
  complete: boolean
}

/** Called for every read of body bytes; used by the stream scenarios. */
export type OnData = (bytes: Buffer, connection: Connection) => void

const END = '0\r\n\r\n'
/** The last event of a Responses, chat or Messages stream. */
const LAST_EVENT = /response\.completed|\[DONE\]|message_stop/

/** One keep-alive connection with at most one request in flight. */
export class Connection {
  #socket: Socket<undefined> | null = null
  #head = ''
  #inBody = false
  #lengthLeft = -1
  #tail = ''
  #reply: Reply = emptyReply()
  #settle: ((reply: Reply) => void) | null = null
  #fail: ((error: Error) => void) | null = null
  readonly #url: URL
  readonly #onData: OnData | undefined

  constructor(url: string, onData?: OnData) {
    this.#url = new URL(url)
    this.#onData = onData
  }

  /** Sends prebuilt bytes and resolves when the response has ended. Rejects when the connection closes earlier. */
  async send(request: Uint8Array): Promise<Reply> {
    const socket = this.#socket ?? (await this.#connect())
    this.#head = ''
    this.#tail = ''
    this.#inBody = false
    this.#lengthLeft = -1
    this.#reply = emptyReply()
    const ended = new Promise<Reply>((resolve, reject) => {
      this.#settle = resolve
      this.#fail = reject
    })
    this.#reply.sentNs = Bun.nanoseconds()
    this.#write(socket, request)
    return ended
  }

  pause(): void {
    this.#socket?.pause()
  }

  resume(): void {
    this.#socket?.resume()
  }

  /** Closes immediately, like a client that was killed. */
  drop(): void {
    this.#socket?.terminate()
    this.#socket = null
  }

  async #connect(): Promise<Socket<undefined>> {
    const socket = await Bun.connect({
      hostname: this.#url.hostname,
      port: Number(this.#url.port),
      socket: {
        data: (_, bytes) => this.#receive(bytes),
        drain: (self) => this.#write(self, this.#unsent),
        close: () => this.#closed(),
        error: (_, error) => this.#closed(error),
      },
    })
    socket.setNoDelay(true)
    this.#socket = socket
    return socket
  }

  #unsent: Uint8Array = new Uint8Array()

  #write(socket: Socket<undefined>, bytes: Uint8Array): void {
    if (bytes.length === 0) return
    const written = Math.max(0, socket.write(bytes))
    this.#unsent = bytes.subarray(written)
  }

  #receive(bytes: Buffer): void {
    let body = bytes
    if (!this.#inBody) {
      this.#head += bytes.toString('latin1')
      const end = this.#head.indexOf('\r\n\r\n')
      if (end === -1) return
      const headBefore = this.#head.length - bytes.length
      body = bytes.subarray(end + 4 - headBefore)
      this.#readHead(this.#head.slice(0, end))
      if (body.length === 0 && this.#lengthLeft !== 0) return
    }
    const reply = this.#reply
    if (reply.bytes === 0) reply.firstByteNs = Bun.nanoseconds()
    reply.bytes += body.length
    this.#onData?.(body, this)
    if (this.#lengthLeft >= 0) {
      this.#lengthLeft -= body.length
      if (this.#lengthLeft <= 0) this.#end()
      return
    }
    this.#tail =
      body.length >= 2048
        ? body.toString('latin1', body.length - 2048)
        : (this.#tail + body.toString('latin1')).slice(-2048)
    if (this.#tail.endsWith(END)) this.#end()
  }

  #readHead(head: string): void {
    this.#inBody = true
    this.#reply.status = Number(head.slice(9, 12))
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)
    this.#lengthLeft = length ? Number(length[1]) : -1
  }

  #end(): void {
    this.#reply.complete = LAST_EVENT.test(this.#tail)
    const settle = this.#settle
    this.#settle = null
    this.#fail = null
    settle?.(this.#reply)
  }

  #closed(cause?: Error): void {
    this.#socket = null
    const fail = this.#fail
    this.#settle = null
    this.#fail = null
    fail?.(new Error(`connection closed after status ${this.#reply.status} and ${this.#reply.bytes} bytes`, { cause }))
  }
}

/** The exact bytes of one POST. */
export function requestBytes(url: string, headers: Record<string, string>, body: string): Uint8Array {
  const { host, pathname } = new URL(url)
  const lines = Object.entries({ host, ...headers, 'content-length': String(Buffer.byteLength(body)) })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return Buffer.from(`POST ${pathname} HTTP/1.1\r\n${head}\r\n${body}`)
}

function emptyReply(): Reply {
  return { status: 0, sentNs: 0, firstByteNs: 0, bytes: 0, complete: false }
}
