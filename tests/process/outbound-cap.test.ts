/** The runtime lets 256 fetches run at once and silently queues the rest; a served pool must not notice. */
import { expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { codexBody } from '../support/app.ts'
import { answers } from '../support/upstream/script.ts'
import { startWorld } from './world.ts'

const MORE_THAN_THE_CAP = 300

test('more turns than the runtime would run at once all reach the upstream', async () => {
  await using world = await startWorld({ settings: ['proxyAccountStreamLimit=0'] })
  const { sim, key, server } = world
  await sim.answer(answers.bulk(1000, 20, { dripMs: 100 }))
  const body = JSON.stringify(codexBody())
  const request = [
    'POST /backend-api/codex/responses HTTP/1.1',
    `host: 127.0.0.1:${server.port}`,
    `authorization: Bearer ${key}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    '',
    body,
  ].join('\r\n')
  // Plain sockets: this process has the same cap on its own fetch.
  const sockets = await Promise.all(Array.from({ length: MORE_THAN_THE_CAP }, () => answeredBy(server.port, request)))
  const { openStreams } = await sim.look<{ openStreams: number }>('stats')
  for (const socket of sockets) socket.destroy()
  expect(openStreams).toBe(MORE_THAN_THE_CAP)
}, 30_000)

/** Resolves at the first byte of the answer. */
const answeredBy = (port: number, request: string): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(request))
    socket.once('data', () => resolve(socket))
    socket.once('error', reject)
  })
