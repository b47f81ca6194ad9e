/** The headers of a streamed answer leave whole and at once: the runtime writes the last of them with the first bytes of the body. */
import { expect, test } from 'bun:test'
import { codexBody } from '../support/app.ts'
import { answers } from '../support/upstream/script.ts'
import { startWorld } from './world.ts'

const TURNS = 20
const NATIVE = { path: '/backend-api/codex/responses', json: codexBody() }
const CHAT = {
  path: '/v1/chat/completions',
  json: { model: 'gpt-5.5', stream: true, messages: [{ role: 'user', content: 'hello' }] },
}

test('with what has come by then in the same write, or else with a keepalive', async () => {
  await using world = await startWorld({ settings: ['upstreamStreamTransport=http'] })
  const { sim, key, server } = world
  await sim.answer(answers.bulk(3, 20, { dripMs: 20 })) // so that nothing else can be what came with the headers
  const begin = (route: typeof NATIVE | typeof CHAT) => readToBody(new URL(route.path, server.url), key, route.json)
  for (let n = 0; n < TURNS; n++) {
    const { reads, body } = await begin(NATIVE)
    expect([reads, body.includes('"type":"response.created"')]).toEqual([1, true])
  }
  // The first events mean nothing to a client of chat.
  expect((await begin(CHAT)).body).toMatch(/^d\r\n: keepalive\n\n\r\n/)
})

/** Asks over a connection of its own and reads until the headers are whole and something follows them. */
const readToBody = async (
  { hostname, port, pathname }: URL,
  key: string,
  json: object,
): Promise<{ reads: number; body: string }> => {
  const { promise, resolve, reject } = Promise.withResolvers<{ reads: number; body: string }>()
  let text = ''
  let reads = 0
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      data: (_, bytes) => {
        text += bytes.toString('latin1')
        reads++
        const [, body] = /\r\n\r\n([\s\S]+)/.exec(text) ?? []
        if (body !== undefined) resolve({ reads, body })
      },
      close: () => reject(new Error('it hung up')),
    },
  })
  const asked = JSON.stringify(json)
  const lines = [`POST ${pathname} HTTP/1.1`, 'host: 127.0.0.1', `authorization: Bearer ${key}`]
  socket.write([...lines, 'content-type: application/json', `content-length: ${asked.length}`, '', asked].join('\r\n'))
  try {
    return await promise
  } finally {
    socket.terminate()
  }
}
