/** Sends the handshake of a WebSocket through a proxy. */
import { Agent, type ClientRequestArgs } from 'node:http'
import { Agent as SecureAgent } from 'node:https'
import { isIP, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { getWhy, type Opener } from './tunnel.ts'

type Done = (err: Error | null, stream?: Duplex) => void

/**
 * An agent for one handshake to a `wss:` (`isSecure`) or `ws:` URL; fails with the opener's error. npm's proxy agents
 * expose their proxy, and the runtime then connects by itself, directly for targets in the process's `NO_PROXY` (Bun
 * 1.4.5).
 */
export const tunnelAgent = ({ open, failed }: Opener, { isSecure }: { isSecure: boolean }): Agent => {
  const agent = isSecure ? new SecureAgent() : new Agent()
  const createConnection = (options: ClientRequestArgs, done: Done): void => {
    const target = { host: String(options.host), port: Number(options.port) }
    open(target).then(
      (socket) => {
        done(null, isSecure ? secured(socket, options) : socket)
        socket.resume()
      },
      (err: unknown) => done(failed(getWhy(err))),
    )
  }
  // as: Node allows returning nothing and calling back later; other typings call back with both arguments
  return Object.assign(agent, { createConnection: createConnection as Agent['createConnection'] })
}

/** TLS inside the tunnel, with the handshake's options (`ca`, …). */
const secured = (socket: Socket, options: ClientRequestArgs): Duplex => {
  // as: options of a `wss:` handshake
  const { host: named, port: _, path: __, ...rest } = options as ClientRequestArgs & ConnectionOptions
  const host = String(named)
  return connectTls({ ...rest, socket, servername: rest.servername || (isIP(host) ? '' : host) })
}
