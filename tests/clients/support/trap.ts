/** A server and proxy that records every request a client sends to anything but its provider. */

interface Trap {
  url: string
  /** `CONNECT host:443` for an attempt to leave this machine, `GET /path` for a call to the hosted service. */
  calls: readonly string[]
  stop(): void
}

export function startTrap(): Trap {
  const calls: string[] = []
  const listener = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(socket, bytes) {
        const [start] = /^[A-Z]+ \S+/.exec(bytes.toString('latin1')) ?? []
        if (start) calls.push(start)
        socket.end('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n')
      },
    },
  })
  return { url: `http://127.0.0.1:${listener.port}`, calls, stop: () => listener.stop(true) }
}
