/** The headers of a streamed response are sent immediately, with the first bytes of the body in the last write. */
import { expect, test } from 'bun:test'
import { codexBody } from '../support/app.ts'
import { answers } from '../support/upstream/script.ts'
import { sendRaw } from './raw.ts'
import { startWorld } from './world.ts'

const TURNS = 20
const CHAT = { model: 'gpt-5.5', stream: true, messages: [{ role: 'user', content: 'hello' }] }

test('the first chunk of a chat stream is written with the rest that has arrived, or else with the role', async () => {
  await using world = await startWorld({ settings: ['upstreamStreamTransport=http'] })
  const { sim, key, server } = world
  await sim.answer(answers.bulk(3, 20, { dripMs: 20 })) // so that nothing else can be what came with the headers
  const ask = (path: string, json: object, until: (answer: string) => boolean) => {
    const body = JSON.stringify(json)
    const head = [`POST ${path} HTTP/1.1`, 'host: 127.0.0.1', `authorization: Bearer ${key}`]
    head.push('content-type: application/json', `content-length: ${body.length}`, '', body)
    return sendRaw(Number(new URL(server.url).port), [head.join('\r\n')], { until, waitMs: 10_000 })
  }
  for (let n = 0; n < TURNS; n++) {
    const firstRead = await ask('/backend-api/codex/responses', codexBody(), () => true)
    expect(firstRead).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\n[\s\S]*"type":"response\.created"/)
  }
  // For a chat client the first events only mean that a response has begun.
  const chat = await ask('/v1/chat/completions', CHAT, (answer) => /\r\n\r\n[\s\S]/.test(answer))
  expect(chat).toMatch(
    /^HTTP\/1\.1 200 [\s\S]*\r\n\r\n\w+\r\ndata: .*"delta":\{"role":"assistant","content":""\}.*\n\n\r\n/,
  )
})
