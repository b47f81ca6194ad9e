/** A TCP relay that can stop forwarding without closing anything, as a lost network does. */
import { connect, createServer, type Socket } from 'node:net'
import { freePort } from './free-port.ts'

export interface SilentRelay extends AsyncDisposable {
  port: number
  /** Connections that are open, or are opened while it is silent, stay silent for good. */
  silence(): void
  /** New connections are forwarded again. */
  resume(): void
}

export const startSilentRelay = async (targetPort: number): Promise<SilentRelay> => {
  const port = freePort()
  const sockets = new Set<Socket>()
  let isSilent = false
  const server = createServer((client) => {
    sockets.add(client.on('error', () => {}))
    if (isSilent) return
    const target = connect(targetPort, '127.0.0.1').on('error', () => {})
    sockets.add(target)
    client.pipe(target).pipe(client)
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    port,
    silence: () => {
      isSilent = true
      for (const socket of sockets) socket.unpipe().pause()
    },
    resume: () => {
      isSilent = false
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
