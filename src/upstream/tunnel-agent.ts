/** Sends the handshake of a WebSocket through a proxy. */
import { Agent, type ClientRequestArgs } from 'node:http'
import { Agent as SecureAgent } from 'node:https'
import { isIP, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { openTunnel } from './tunnel.ts'

type Done = (err: Error | null, stream?: Duplex) => void

/**
 * An agent for one handshake to a `wss:` (`isSecure`) or `ws:` URL; its errors are those of `openTunnel`. An agent that
 * shows its proxy, as those of npm do, will not do: the runtime then connects by itself, and goes direct where `NO_PROXY`
 * of the process lists the target, which is not for it to decide (measured).
 */
export const tunnelAgent = (proxy: string, { isSecure }: { isSecure: boolean }): Agent => {
  const agent = isSecure ? new SecureAgent() : new Agent()
  const createConnection = (options: ClientRequestArgs, done: Done): void => {
    const target = { host: String(options.host), port: Number(options.port) }
    openTunnel(proxy, target).then((socket) => {
      done(null, isSecure ? secured(socket, options) : socket)
      socket.resume()
    }, done)
  }
  // as: Node lets it return nothing and call back later, in types from elsewhere it calls back with both arguments
  return Object.assign(agent, { createConnection: createConnection as Agent['createConnection'] })
}

/** TLS inside of the tunnel; the options of the handshake (`ca`, …) hold for it. */
const secured = (socket: Socket, options: ClientRequestArgs): Duplex => {
  const { host: named, port: _, path: __, ...rest } = options as ClientRequestArgs & ConnectionOptions // as: of a `wss:` one
  const host = String(named)
  return connectTls({ ...rest, socket, servername: rest.servername || (isIP(host) ? '' : host) })
}
