/** The sign-in port answers any request, and logs no code. */
import { describe, expect, test } from 'bun:test'
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

describe('listening', () => {
  const aListener = (port = freePort()) => {
    const clock = new ManualClock()
    const log = createLog({ level: 'debug', format: 'text', now: () => 0, write: () => {} })
    const answer = async () => ({ status: 200, title: 'Taken', text: '' })
    return { listener: new CallbackListener({ host: '127.0.0.1', port, clock, log, answer }), clock, port }
  }

  test('stays open for a moment after the last sign-in ended, however often it is released', async () => {
    const { listener, clock } = aListener()
    listener.open()
    listener.closeSoon()
    await clock.advance(2000)
    listener.closeSoon()
    expect(listener.isOpen).toBe(true)
    await clock.advance(1000)
    expect([listener.isOpen, clock.pending]).toEqual([false, 0])
  })

  test('another sign-in keeps it open', async () => {
    const { listener, clock } = aListener()
    listener.open()
    listener.closeSoon()
    listener.closeSoon()
    listener.open()
    listener.closeIfUnused()
    await clock.advance('1m')
    expect(listener.isOpen).toBe(true)
    listener.closeSoon()
    await clock.advance('1m')
    expect(listener.isOpen).toBe(false)
  })

  test('it is closed immediately, however many sign-ins were pending', async () => {
    const { listener, port } = aListener()
    listener.open()
    listener.open()
    listener.close()
    await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow()
  })

  test('a second one does not share the port, and can be opened when the first is closed', async () => {
    const { listener, port } = aListener()
    const { listener: second } = aListener(port)
    listener.open()
    second.open()
    expect([listener.isOpen, second.isOpen]).toEqual([true, false])
    listener.close()
    second.open()
    expect(second.isOpen).toBe(true)
    second.close()
  })

  test('it is reached only at its own address', async () => {
    const { listener, port } = aListener()
    listener.open()
    await expect(fetch(`http://127.0.0.1:${port}/`)).resolves.toMatchObject({ status: 404 })
    await expect(Bun.connect({ hostname: '127.0.0.2', port, socket: { data: () => {} } })).rejects.toThrow()
    listener.close()
  })
})
