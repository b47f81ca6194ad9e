/** A loopback HTTP proxy in front of a SOCKS proxy, because the runtime's fetch speaks to HTTP proxies only. */
import { timingSafeEqual } from 'node:crypto'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { endpointOf, type Target } from './endpoint.ts'
import { readHead } from './http-head.ts'
import { openTunnel, TunnelError } from './tunnel.ts'

const USER = 'sluice'
/** Marks an answer as the bridge's own; its value is the secret, which no upstream knows. */
const OWN_ANSWER = 'x-sluice-bridge'
const MAX_HEAD_BYTES = 256 * 1024
/** For fetch to say what it wants; it does so in its first packets. */
const HEAD_MS = 10_000

/**
 * Bridges to one SOCKS proxy. Listens on 127.0.0.1 from the first use on and serves only who knows `secret`. Fetch sends
 * `CONNECT` for `https:` and a request in absolute form for `http:` targets; of the latter a connection takes one, so
 * fetch must be told `keepalive: false`.
 */
export class SocksBridge {
  readonly #proxy: string
  readonly #secret: string
  readonly #sockets = new Set<Socket>()
  #server: Server | null = null
  #url: Promise<string> | null = null

  /** `secret` is base64url. */
  constructor(proxy: string, secret: string) {
    this.#proxy = proxy
    this.#secret = secret
  }

  /** What to hand to fetch as its proxy. */
  url(): Promise<string> {
    this.#url ??= this.#listen().catch((err) => {
      this.#url = null
      throw err
    })
    return this.#url
  }

  /** What stands behind an answer that is the bridge's own and not the upstream's; null for all others. */
  async failureIn(response: Response): Promise<TunnelError | null> {
    if (response.headers.get(OWN_ANSWER) !== this.#secret) return null
    return new TunnelError(await response.text())
  }

  /** Ends every connection with it. */
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
      const upstream = this.#hold(await openTunnel(this.#proxy, asked.target))
      if (client.destroyed) return void upstream.destroy()
      if (asked.forwarded === null) client.write(ESTABLISHED)
      else upstream.write(asked.forwarded)
      if (head.rest.length > 0) upstream.write(head.rest)
      join(client, upstream)
    } catch (err) {
      refuse(client, this.#failed(err instanceof Error ? err.message : String(err)))
    }
  }

  #hold(socket: Socket): Socket {
    this.#sockets.add(socket)
    socket.on('error', () => {}).once('close', () => this.#sockets.delete(socket))
    return socket.setNoDelay().unref() // a request under way keeps the process alive by itself
  }

  #isOurs(authorization: string): boolean {
    const wanted = Buffer.from(`Basic ${btoa(`${USER}:${this.#secret}`)}`)
    const given = Buffer.from(authorization)
    return given.length === wanted.length && timingSafeEqual(given, wanted)
  }

  #failed(why: string): string {
    const head = ['HTTP/1.1 502 Bad Gateway', `${OWN_ANSWER}: ${this.#secret}`, 'Connection: close']
    return [...head, `Content-Length: ${Buffer.byteLength(why)}`, '', why].join('\r\n')
  }
}

const ESTABLISHED = 'HTTP/1.1 200 Connection Established\r\n\r\n'
const REFUSED = 'HTTP/1.1 407 Proxy Authentication Required\r\nConnection: close\r\nContent-Length: 0\r\n\r\n'

/** Reads on, since an answer is lost with a connection that is closed on top of what was not read. */
const refuse = (client: Socket, answer: string): void => {
  client.end(answer)
  client.resume()
}

/** One end's fault becomes the other's: a stream that was cut off must not look as if it had ended. */
const join = (client: Socket, upstream: Socket): void => {
  upstream.once('error', () => client.resetAndDestroy())
  client.once('close', () => upstream.destroy())
  client.pipe(upstream).pipe(client)
}

interface Asked {
  target: Target
  authorization: string
  /** The head to send on, or null for a tunnel. */
  forwarded: Buffer | null
}

/** Null for what fetch does not send. */
const parseHead = (head: string): Asked | null => {
  const [line = '', ...fields] = head.split('\r\n')
  const [method = '', place = '', version] = line.split(' ')
  const isTunnel = method === 'CONNECT'
  const url = URL.parse(isTunnel ? `https://${place}` : place)
  if (version !== 'HTTP/1.1' || !url || (!isTunnel && url.protocol !== 'http:')) return null
  const authorization = fields.find((field) => nameOf(field) === 'proxy-authorization') ?? ''
  return {
    target: endpointOf(url),
    authorization: authorization.slice(authorization.indexOf(':') + 1).trim(),
    forwarded: isTunnel ? null : forwardedHead(`${method} ${url.pathname}${url.search} ${version}`, fields),
  }
}

const forwardedHead = (line: string, fields: readonly string[]): Buffer => {
  const kept = fields.filter((field) => !FOR_THE_PROXY.has(nameOf(field)))
  return Buffer.from([line, ...kept, '\r\n'].join('\r\n'), 'latin1')
}

const FOR_THE_PROXY: ReadonlySet<string> = new Set(['proxy-authorization', 'proxy-connection', 'connection'])

const nameOf = (field: string): string => field.slice(0, field.indexOf(':')).trim().toLowerCase()
