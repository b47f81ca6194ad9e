/** A loopback HTTP proxy in front of other proxies: the runtime's fetch knows neither SOCKS nor a list of proxies to try. */
import { timingSafeEqual } from 'node:crypto'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { type Target, toEndpoint } from './endpoint.ts'
import { readHead } from './http-head.ts'
import { getWhy, type Opener } from './tunnel.ts'

const USER = 'sluice'
/** Marks answers of the bridge itself; the value is the secret, which no upstream knows. */
const OWN_ANSWER = 'x-sluice-bridge'
/** Why it did not connect, percent-encoded. */
const WHY = 'x-sluice-why'
const MAX_HEAD_BYTES = 256 * 1024
/** Limit for fetch to send its head, which it does in its first packets. */
const HEAD_MS = 10_000

/**
 * A bridge to what `opener` connects through. Listens on 127.0.0.1 from first use and serves only clients that know `secret`. Fetch
 * sends `CONNECT` for `https:` and absolute-form requests for `http:` targets; the latter need a connection each, so
 * fetch must use `keepalive: false`.
 */
export class ProxyBridge {
  readonly #opener: Opener
  readonly #secret: string
  readonly #sockets = new Set<Socket>()
  #server: Server | null = null
  #url: Promise<string> | null = null
  /** Calls that may not have connected yet. */
  #calls = 0
  #isRetired = false

  /** `secret` is base64url. */
  constructor(opener: Opener, secret: string) {
    this.#opener = opener
    this.#secret = secret
  }

  /** `work` gets the proxy URL for fetch. */
  async call<T>(work: (url: string) => Promise<T>): Promise<T> {
    this.#calls++
    try {
      this.#url ??= this.#listen().catch((err) => {
        this.#url = null
        throw err
      })
      return await work(await this.#url)
    } finally {
      this.#calls--
      if (this.#isRetired) this.retire()
    }
  }

  /** The failure in an answer of the bridge itself; null for upstream answers. */
  async failureIn(response: Response): Promise<Error | null> {
    const failure = this.#getFailure(response.headers)
    if (failure) await response.body?.cancel()
    return failure
  }

  /** The same for the error of fetch when a tunnel fails, which has the headers of the answer (Bun 1.4.5). */
  failureBehind(err: unknown): Error | null {
    const headers = err instanceof Error && 'headers' in err ? err.headers : null
    return headers instanceof Headers ? this.#getFailure(headers) : null
  }

  #getFailure(headers: Headers): Error | null {
    if (headers.get(OWN_ANSWER) !== this.#secret) return null
    return this.#opener.failed(decodeURIComponent(headers.get(WHY) ?? ''))
  }

  /** Takes no more connections when the calls that have begun are connected; open ones end by themselves. */
  retire(): void {
    this.#isRetired = true
    if (this.#calls === 0) this.#server?.close()
  }

  /** Closes all its connections. */
  close(): void {
    this.#server?.close()
    this.#server = null
    this.#url = null
    for (const socket of this.#sockets) socket.destroy()
  }

  async #listen(): Promise<string> {
    const server = createServer((client) => void this.#serve(client))
    this.#server = server
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    server.once('error', reject)
    server.once('close', () => reject(new Error('The bridge to the proxy was closed.')))
    server.listen(0, '127.0.0.1', resolve)
    await promise
    server.unref()
    const { port } = server.address() as AddressInfo // as: it listens on a port
    return `http://${USER}:${this.#secret}@127.0.0.1:${port}`
  }

  async #serve(client: Socket): Promise<void> {
    this.#hold(client)
    const head = await readHead(client, { maxBytes: MAX_HEAD_BYTES, timeoutMs: HEAD_MS }).catch(() => null)
    if (head === null) return void client.destroy()
    const asked = parseHead(head.text)
    if (asked === null || !this.#isOurs(asked.authorization)) return void refuse(client, REFUSED)
    try {
      const upstream = this.#hold(await this.#opener.open(asked.target))
      if (client.destroyed) return void upstream.destroy()
      if (asked.forwarded === null) client.write(ESTABLISHED)
      else upstream.write(asked.forwarded)
      if (head.rest.length > 0) upstream.write(head.rest)
      join(client, upstream)
    } catch (err) {
      refuse(client, this.#failed(getWhy(err)))
    }
  }

  #hold(socket: Socket): Socket {
    this.#sockets.add(socket)
    socket.on('error', () => {}).once('close', () => this.#sockets.delete(socket))
    return socket.setNoDelay().unref() // a running request keeps the process alive itself
  }

  #isOurs(authorization: string): boolean {
    const wanted = Buffer.from(`Basic ${btoa(`${USER}:${this.#secret}`)}`)
    const given = Buffer.from(authorization)
    return given.length === wanted.length && timingSafeEqual(given, wanted)
  }

  #failed(why: string): string {
    const head = ['HTTP/1.1 502 Bad Gateway', `${OWN_ANSWER}: ${this.#secret}`, `${WHY}: ${encodeURIComponent(why)}`]
    return [...head, 'Connection: close', 'Content-Length: 0', '\r\n'].join('\r\n')
  }
}

const ESTABLISHED = 'HTTP/1.1 200 Connection Established\r\n\r\n'
const REFUSED = 'HTTP/1.1 407 Proxy Authentication Required\r\nConnection: close\r\nContent-Length: 0\r\n\r\n'

/** Keeps reading, because closing a connection with unread data would discard the answer. */
const refuse = (client: Socket, answer: string): void => {
  client.end(answer)
  client.resume()
}

/** Propagates errors: a stream that was cut off must not look complete. */
const join = (client: Socket, upstream: Socket): void => {
  upstream.once('error', () => client.resetAndDestroy())
  client.once('close', () => upstream.destroy())
  client.pipe(upstream).pipe(client)
}

interface Asked {
  target: Target
  authorization: string
  /** The head to forward, or null for a tunnel. */
  forwarded: Buffer | null
}

/** Null for anything fetch does not send. */
const parseHead = (head: string): Asked | null => {
  const [line = '', ...fields] = head.split('\r\n')
  const [method = '', place = '', version] = line.split(' ')
  const isTunnel = method === 'CONNECT'
  const url = URL.parse(isTunnel ? `https://${place}` : place)
  if (version !== 'HTTP/1.1' || !url || (!isTunnel && url.protocol !== 'http:')) return null
  const authorization = fields.find((field) => getName(field) === 'proxy-authorization') ?? ''
  return {
    target: toEndpoint(url),
    authorization: authorization.slice(authorization.indexOf(':') + 1).trim(),
    forwarded: isTunnel ? null : forwardedHead(`${method} ${url.pathname}${url.search} ${version}`, fields),
  }
}

const forwardedHead = (line: string, fields: readonly string[]): Buffer => {
  const kept = fields.filter((field) => !FOR_THE_PROXY.has(getName(field)))
  return Buffer.from([line, ...kept, '\r\n'].join('\r\n'), 'latin1')
}

const FOR_THE_PROXY: ReadonlySet<string> = new Set(['proxy-authorization', 'proxy-connection', 'connection'])

const getName = (field: string): string => field.slice(0, field.indexOf(':')).trim().toLowerCase()
