/** A SOCKS 4, 4a and 5 proxy that connects every target to one local port, and records the requested targets. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, isIPv6, type Socket } from 'node:net'
import { PASSWORD, terminateTls, USER } from './egress-proxy.ts'

export interface SocksProxy extends AsyncDisposable {
  /** With the right credentials in it. */
  url(scheme: 'socks4' | 'socks4a' | 'socks5' | 'socks5h'): string
  /** `host:port` as the client put it: a name when it left resolving to the proxy, else an address. */
  passed: string[]
  /** Connections that came without the right credentials. */
  refused: number
}

interface SocksProxyOptions {
  /** Tunnels end behind TLS. */
  tls?: { key: string; cert: string }
  /** Requires no credentials. */
  isOpen?: boolean
  /** Has no route to any target. */
  isCutOff?: boolean
}

/** `targetPort` is where all connections end, whatever their target. */
export const startSocksProxy = async (targetPort: number, options: SocksProxyOptions = {}): Promise<SocksProxy> => {
  const sockets = new Set<Socket>()
  const seen = { passed: [] as string[], refused: 0 }
  const terminator = options.tls && (await terminateTls(options.tls, targetPort, sockets))
  const hold = (socket: Socket) => {
    sockets.add(socket)
    return socket.on('error', () => {}).on('close', () => sockets.delete(socket))
  }
  const server = createServer((client) => {
    hold(client)
    greet(client, options)
      .then((asked) => {
        if (asked === null) {
          seen.refused++
          return void client.end()
        }
        if (options.isCutOff) return void client.end(asked.no)
        seen.passed.push(asked.target)
        const target = hold(connect(terminator?.port ?? targetPort, '127.0.0.1'))
        target.once('connect', () => {
          client.write(asked.yes)
          client.pipe(target).pipe(client)
        })
        target.once('error', () => client.resetAndDestroy())
        target.once('close', () => client.destroySoon())
        client.once('close', () => target.destroy())
      })
      .catch(() => client.destroy()) // it left in the middle of the greeting
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // as: it listens on a port
  const login = options.isOpen ? '' : `${USER}:${encodeURIComponent(PASSWORD)}@`
  return {
    url: (scheme) => `${scheme}://${login}127.0.0.1:${port}`,
    passed: seen.passed,
    get refused() {
      return seen.refused
    },
    async [Symbol.asyncDispose]() {
      server.close()
      terminator?.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

interface Asked {
  target: string
  yes: Buffer
  no: Buffer
}

type Take = (bytes: number) => Promise<Buffer>

const take =
  (socket: Socket): Take =>
  async (bytes) => {
    for (;;) {
      const chunk: Buffer | null = socket.read(bytes)
      if (chunk) return chunk
      if (socket.readableEnded || socket.destroyed) throw new Error('It left.')
      await Promise.race([once(socket, 'readable'), once(socket, 'end')])
    }
  }

/** Null: not with these credentials. */
const greet = async (client: Socket, { isOpen = false }: SocksProxyOptions): Promise<Asked | null> => {
  const read = take(client)
  const [version] = await read(1)
  return version === 4 ? askedBySocks4(read, isOpen) : askedBySocks5(read, client, isOpen)
}

/** SOCKS 4 has a user name and no password. */
const askedBySocks4 = async (read: Take, isOpen: boolean): Promise<Asked | null> => {
  const head = await read(7)
  const user = await untilZero(read)
  const port = head.readUInt16BE(1)
  const address = [...head.subarray(3, 7)].join('.')
  const host = address.startsWith('0.0.0.') ? await untilZero(read) : address
  if (!isOpen && user !== USER) return null
  const answer = (code: number) => Buffer.from([0, code, 0, 0, 0, 0, 0, 0])
  return { target: `${host}:${port}`, yes: answer(0x5a), no: answer(0x5b) }
}

const untilZero = async (read: Take): Promise<string> => {
  let text = ''
  for (let byte = (await read(1)).readUInt8(); byte !== 0; byte = (await read(1)).readUInt8())
    text += String.fromCharCode(byte)
  return text
}

/** RFC 1928 and RFC 1929. */
const askedBySocks5 = async (read: Take, client: Socket, isOpen: boolean): Promise<Asked | null> => {
  const methods = await read((await read(1)).readUInt8())
  const wanted = isOpen ? 0 : 2
  if (!methods.includes(wanted)) {
    client.write(Buffer.from([5, 0xff]))
    return null
  }
  client.write(Buffer.from([5, wanted]))
  if (!isOpen) {
    await read(1)
    const user = (await counted(read)).toString()
    const password = (await counted(read)).toString()
    const isRight = user === USER && password === PASSWORD
    client.write(Buffer.from([1, isRight ? 0 : 1]))
    if (!isRight) return null
  }
  const kind = (await read(4)).readUInt8(3)
  const host = await HOSTS[kind as keyof typeof HOSTS](read) // as: there are three kinds
  const port = (await read(2)).readUInt16BE()
  const answer = (code: number) => Buffer.from([5, code, 0, 1, 127, 0, 0, 1, 0, 0])
  return { target: `${isIPv6(host) ? `[${host}]` : host}:${port}`, yes: answer(0), no: answer(4) }
}

const counted = async (read: Take): Promise<Buffer> => {
  const length = (await read(1)).readUInt8()
  return length === 0 ? Buffer.alloc(0) : read(length)
}

const HOSTS = {
  1: async (read: Take) => (await read(4)).join('.'),
  3: async (read: Take) => (await counted(read)).toString(),
  4: async (read: Take) =>
    new URL(`http://[${(await read(16)).toString('hex').match(/..../g)?.join(':')}]`).hostname.slice(1, -1),
}
