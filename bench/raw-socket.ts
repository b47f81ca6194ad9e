/** A minimal WebSocket client on a TCP socket, because the driver must cost far less than what it measures. */
import type { Socket } from 'bun'
import { FrameReader, frameBytes, OPCODE } from './frames.ts'

/** Called with each text frame; the bytes are valid during the call only. */
type OnText = (payload: Buffer, socket: RawSocket) => void

export class RawSocket {
  onText: OnText = () => {}
  readonly #reader = new FrameReader((opcode, payload) => this.#take(opcode, payload))
  readonly #opened = Promise.withResolvers<RawSocket>()
  readonly #closed = Promise.withResolvers<void>()
  #socket: Socket<undefined> | null = null
  #head: string | null = ''
  #unsent: Uint8Array = new Uint8Array()

  /** Resolves once the handshake was answered with 101; rejects with any other status. */
  static async open(url: string, path: string, headers: Record<string, string>): Promise<RawSocket> {
    const raw = new RawSocket()
    const { hostname, port, host } = new URL(url)
    const socket = await Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        data: (_, bytes) => raw.#receive(bytes),
        drain: () => raw.#flush(),
        close: () => raw.#end(),
        error: () => raw.#end(),
      },
    })
    socket.setNoDelay(true)
    raw.#socket = socket
    raw.#write(handshake(path, { host, ...headers }))
    return raw.#opened.promise
  }

  /** Resolves when the connection has ended for any reason. */
  get closed(): Promise<void> {
    return this.#closed.promise
  }

  /** Sends prebuilt frame bytes. */
  send(frame: Uint8Array): void {
    this.#write(frame)
  }

  pause(): void {
    this.#socket?.pause()
  }

  /** Sends a close frame and resolves when the peer has closed the connection. */
  close(): Promise<void> {
    this.#write(frameBytes(OPCODE.close, Buffer.from([3, 232]), true))
    return this.#closed.promise
  }

  drop(): void {
    this.#socket?.terminate()
  }

  #receive(bytes: Buffer): void {
    if (this.#head === null) {
      this.#reader.push(bytes)
      return
    }
    this.#head += bytes.toString('latin1')
    const end = this.#head.indexOf('\r\n\r\n')
    if (end === -1) return
    const [head, rest] = [this.#head.slice(0, end), Buffer.from(this.#head.slice(end + 4), 'latin1')]
    this.#head = null
    if (head.startsWith('HTTP/1.1 101')) {
      this.#opened.resolve(this)
      this.#reader.push(rest)
    } else this.#opened.reject(new Error(`refused: ${head} ${rest}`.slice(0, 600)))
  }

  #take(opcode: number, payload: Buffer): void {
    if (opcode === OPCODE.text) this.onText(payload, this)
    else if (opcode === OPCODE.ping) this.#write(frameBytes(OPCODE.pong, payload, true))
    else if (opcode === OPCODE.close) {
      this.#write(frameBytes(OPCODE.close, payload.subarray(0, 2), true))
      this.#socket?.end()
    }
  }

  #write(bytes: Uint8Array): void {
    const all = this.#unsent.length > 0 ? Buffer.concat([this.#unsent, bytes]) : bytes
    const written = Math.max(0, this.#socket?.write(all) ?? 0)
    this.#unsent = all.subarray(written)
  }

  #flush(): void {
    this.#write(new Uint8Array())
  }

  #end(): void {
    this.#opened.reject(new Error('the connection ended during the handshake'))
    this.#opened.promise.catch(() => {}) // no caller waits for it any more
    this.#closed.resolve()
  }
}

function handshake(path: string, headers: Record<string, string>): Uint8Array {
  const all = {
    ...headers,
    upgrade: 'websocket',
    connection: 'Upgrade',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'YmVuY2htYXJrYmVuY2htYQ==',
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`)
}
