/** A client that keeps one connection, as a load balancer or an SDK does. */
import { connect } from 'node:net'
import { codexBody } from '../support/app.ts'
import { until } from '../support/until.ts'

export interface KeptConnection extends Disposable {
  /** One request; resolves with the answer in lower case, or with what came of it before the connection was closed. */
  turn(key: string): Promise<string>
}

export const keepAlive = (port: number): KeptConnection => {
  const socket = connect(port, '127.0.0.1')
  let text = ''
  socket.on('error', () => {}) // closed
  socket.on('data', (bytes) => {
    text += bytes
  })
  return {
    async turn(key) {
      text = ''
      const body = JSON.stringify(codexBody())
      const head = `POST /backend-api/codex/responses HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\n`
      socket.write(`${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
      await until(
        () => text.endsWith('\r\n0\r\n\r\n') || socket.closed,
        () => text,
      )
      return text.toLowerCase()
    },
    [Symbol.dispose]: () => void socket.destroy(),
  }
}
