/** The headers of a streamed answer and its first events are one write: two cost the client a wake-up more, and the first byte its time. */
import { expect, test } from 'bun:test'
import { codexBody } from '../support/app.ts'
import { answers } from '../support/upstream/script.ts'
import { startWorld } from './world.ts'

const TURNS = 20

test('what arrives first holds the headers and an event', async () => {
  await using world = await startWorld({ settings: ['upstreamStreamTransport=http'] })
  const { sim, key, server } = world
  await sim.answer(answers.bulk(3, 20, { dripMs: 20 })) // so that nothing else can be what came with the headers
  const firsts: string[] = []
  for (let n = 0; n < TURNS; n++) firsts.push(await firstRead(server.url, key))
  for (const first of firsts) expect(first).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\n[\s\S]*"type":"response\.created"/)
})

/** What the socket gives the first time. */
const firstRead = async (url: string, key: string): Promise<string> => {
  const { hostname, port } = new URL(url)
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    socket: { data: (_, bytes) => resolve(bytes.toString('latin1')), close: () => reject(new Error('it hung up')) },
  })
  const body = JSON.stringify(codexBody())
  const lines = ['POST /backend-api/codex/responses HTTP/1.1', 'host: 127.0.0.1', `authorization: Bearer ${key}`]
  socket.write([...lines, 'content-type: application/json', `content-length: ${body.length}`, '', body].join('\r\n'))
  try {
    return await promise
  } finally {
    socket.terminate()
  }
}
