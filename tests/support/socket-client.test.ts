/** The socket client of the tests reports errors instead of hanging. */
import { afterAll, beforeEach, expect, test } from 'bun:test'
import { connectSocket, SocketRefused } from './socket-client.ts'
import { until } from './until.ts'

type Peer = Bun.ServerWebSocket<undefined>

/** The behavior of the server at the other end, which every test defines. */
let onOpen: (peer: Peer) => void
let onMessage: (peer: Peer, message: string | Buffer) => void
let seen: Headers

const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch(request, self) {
    seen = request.headers
    const { pathname } = new URL(request.url)
    if (pathname === '/hang') return new Promise<Response>(() => {})
    if (pathname === '/no') return Response.json({ error: 'busy' }, { status: 429, headers: { 'retry-after': '3' } })
    return self.upgrade(request, { headers: { 'x-answer': '42' } }) ? undefined : new Response('plain', { status: 400 })
  },
  websocket: { open: (peer) => onOpen(peer), message: (peer, message) => onMessage(peer, message) },
})

const at = (path: string) => `${server.url.origin}${path}`
const getMessage = (promise: Promise<unknown>) => promise.catch((error: Error) => error.message)

beforeEach(() => {
  onOpen = () => {}
  onMessage = (peer, message) => peer.send(message)
})
afterAll(() => server.stop(true))

test('headers go both ways and a frame that comes with the 101 is not lost', async () => {
  onOpen = (peer) => peer.send('{"type":"hello"}')
  const socket = await connectSocket(at('/'), { headers: { 'user-agent': 'codex/1', authorization: 'Bearer x' } })
  expect(socket.opened.headers['x-answer']).toBe('42')
  expect([seen.get('user-agent'), seen.get('authorization')]).toEqual(['codex/1', 'Bearer x'])
  expect([seen.get('sec-websocket-protocol'), seen.get('sec-websocket-extensions')]).toEqual([null, null])
  expect(await socket.next()).toEqual({ type: 'hello' })
  socket.terminate()
})

test('a rejection has status, headers and body', async () => {
  const refusal = await connectSocket(at('/no')).catch((error: unknown) => error)
  expect(refusal).toBeInstanceOf(SocketRefused)
  expect(refusal).toMatchObject({ status: 429, headers: { 'retry-after': '3' }, body: '{"error":"busy"}' })
})

test('a handshake without an answer, or without a server, fails', async () => {
  expect(await getMessage(connectSocket(at('/hang'), { timeoutMs: 20 }))).toContain('was not answered within 20 ms')
  expect(await connectSocket('http://127.0.0.1:1/').catch((error: unknown) => error)).toMatchObject({
    code: 'ECONNREFUSED',
  })
})

test('a turn ends with its terminal event or an error, and the next one starts after it', async () => {
  const answers = [['response.created', 'response.completed'], ['error'], ['response.created', 'response.failed']]
  onMessage = (peer) => {
    for (const type of answers.shift() ?? []) peer.send(JSON.stringify({ type }))
  }
  const socket = await connectSocket(at('/'))
  const turns = [await socket.turn({ type: 'a' }), await socket.turn('{}'), await socket.turn({ type: 'c' })]
  expect(turns.map((events) => events.at(-1)?.type)).toEqual(['response.completed', 'error', 'response.failed'])
  expect(socket.events).toHaveLength(5)
  socket.terminate()
})

test('waiting for an event also returns earlier ones, and on failure lists what arrived', async () => {
  const socket = await connectSocket(at('/'), { timeoutMs: 500 })
  socket.send({ type: 'one' })
  socket.send('not json')
  socket.send(new Uint8Array([1]))
  socket.send({ type: 'two', size: 2 })
  expect(await socket.next(({ type }) => type === 'two')).toEqual({ type: 'two', size: 2 })
  expect(socket.events.map(({ type }) => type)).toEqual(['one', '(not JSON)', '(binary)', 'two'])
  expect(await getMessage(socket.next())).toBe(
    'No such event came; 4 had arrived, the last {"type":"two","size":2} within 500 ms.',
  )
  expect(await getMessage(socket.closed)).toStartWith('The connection was not closed')
  socket.terminate()
})

test('a close is reported with code and reason, also to waiting calls', async () => {
  onMessage = (peer) => peer.close(1012, 'restart')
  const socket = await connectSocket(at('/'))
  await socket.ping()
  expect(socket.isOpen).toBe(true)
  expect(await getMessage(socket.turn({ type: 'x' }))).toBe('The connection closed with 1012; nothing had arrived')
  expect(await socket.closed).toEqual({ code: 1012, reason: 'restart' })
  expect(socket.isOpen).toBe(false)
})

test('a paused socket reads nothing until it resumes, and can be closed', async () => {
  const socket = await connectSocket(at('/'), { timeoutMs: 500 })
  socket.pause()
  socket.send({ type: 'late' })
  expect(await getMessage(socket.next())).toStartWith('No such event came; nothing had arrived')
  socket.resume()
  await until(() => socket.events.length > 0)
  expect(socket.events).toEqual([{ type: 'late' }])
  socket.pause()
  socket.close(1000, 'done')
  expect(await socket.closed).toEqual({ code: 1000, reason: 'done' })
})
