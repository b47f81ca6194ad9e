/** A port of 127.0.0.1 that nobody listens on: asked from the system, and given back. */

export const freePort = (): number => {
  const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  listener.stop(true)
  return listener.port
}
