/** The port of sign-ins answers whatever a browser, or anything else, sends to it, and prints no code. */
import { expect, test } from 'bun:test'
import { createLog } from '../../src/lib/log.ts'
import { CallbackListener } from '../../src/upstream/callback-listener.ts'
import { ManualClock } from '../support/clock.ts'
import { freePort } from '../support/free-port.ts'

test.each(['[', 'a b', 'x"><script>', ''])('a Host header %p is a bad request, not an error', async (host) => {
  const port = freePort()
  const lines: string[] = []
  const log = createLog({ level: 'debug', format: 'text', now: () => 0, write: (line) => lines.push(line) })
  const answer = async () => ({ status: 200, title: 'Taken', text: '' })
  const listener = new CallbackListener({ host: '127.0.0.1', port, clock: new ManualClock(), log, answer })
  listener.open()
  const { promise, resolve } = Promise.withResolvers<string>()
  let text = ''
  await Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: {
      open: (socket) => void socket.write(`GET /auth/callback?code=SECRET&state=S HTTP/1.1\r\nHost: ${host}\r\n\r\n`),
      data: (_, chunk) => {
        text += chunk.toString()
      },
      close: () => resolve(text),
    },
  })
  expect(await promise).toMatch(/^HTTP\/1\.1 (400|200) /)
  expect(lines).toEqual([])
  listener.close()
})
