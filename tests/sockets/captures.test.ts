/** Captures of requests on sockets: the frame as the client sent it, and every event of ChatGPT, over either transport. */
import { expect, test } from 'bun:test'
import { readRequest } from '../../src/model/captures/archive.ts'
import { getEvents } from '../../src/model/captures/captured-events.ts'
import { connectSocket } from '../support/socket-client.ts'
import { create, getTypes, NATIVE, open, PUBLIC, type SocketWorld, startSocketWorld } from './ground.ts'

const APP = 'https://app.example'
const TRANSPORTS = ['http', 'websocket'] as const

const startCapture = (service: SocketWorld, keyId: string): void => {
  const startedBy = { id: 'test', name: null }
  service.bindings.captures.start({ keyId, accountId: null, minutes: 15, maxBytes: 2 ** 26, startedBy })
}

const captured = async ({ bindings, rows }: SocketWorld) => {
  await bindings.captures.flush()
  const contents = await Promise.all(
    (await rows()).map(({ id }) => {
      const [capture] = bindings.captures.holding(id)
      const deps = { dir: bindings.captures.dir, sealer: bindings.sealer }
      return capture ? readRequest(deps, capture.id, { id, maxBytes: 2 ** 26 }) : null
    }),
  )
  return contents.filter((content) => content !== null)
}

test.each([NATIVE, PUBLIC])('%s: two frames on one socket are two captured requests', async (path) => {
  await using service = await startSocketWorld()
  const { key, row } = await service.key()
  startCapture(service, row.id)
  const client = await open(service, { path, headers: { authorization: `Bearer ${key}` } })
  const frames = [create('first'), create('second  one')]
  const seen: string[][] = []
  for (const frame of frames) {
    seen.push(getTypes(await client.turn(frame)))
  }
  client.close()
  const found = await captured(service)
  expect(found.map(({ body }) => Buffer.concat(body).toString())).toEqual(frames.map((frame) => JSON.stringify(frame)))
  expect(found.map(({ request }) => request?.method)).toEqual(['WebSocket', 'WebSocket'])
  for (const { attempts, end } of found) {
    expect(end).toMatchObject({ status: 'ok', droppedBytes: 0 })
    expect(attempts.map(({ status, error }) => [status, error])).toEqual([[200, null]])
    expect(getEvents(attempts[0]?.parts ?? [])?.at(-1)?.type).toBe('response.completed')
  }
  expect(JSON.stringify(found.map(({ request }) => request))).not.toContain(key)
  expect(seen.map((types) => types.at(-1))).toEqual(['response.completed', 'response.completed'])
})

test.each(TRANSPORTS)('an HTTP client over %s to ChatGPT: the stored response is the one it got', async (transport) => {
  await using service = await startSocketWorld({ settings: { upstreamStreamTransport: transport } })
  const { key, row } = await service.key()
  startCapture(service, row.id)
  const { type: _, ...body } = create('over both')
  const response = await fetch(service.url + NATIVE, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const data = (await response.text())
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => line.slice(6))
  const [found] = await captured(service)
  expect(getEvents(found?.attempts[0]?.parts ?? [])?.map((event) => event.data)).toEqual(data)
})

test('a key in a WebSocket subprotocol is not stored', async () => {
  await using service = await startSocketWorld({ settings: { apiKeyAuthEnabled: true, corsOrigins: APP } })
  const { key, row } = await service.key()
  startCapture(service, row.id)
  const protocols = ['realtime', `openai-insecure-api-key.${key}`]
  const client = await connectSocket(service.socketUrl + PUBLIC, { protocols, headers: { origin: APP } })
  await client.turn(create('from a browser'))
  client.close()
  const [found] = await captured(service)
  expect(found?.request?.headers).toContainEqual(['sec-websocket-protocol', '[removed]'])
  expect(JSON.stringify(found?.request)).not.toContain(key)
})

test('a live call is not captured', async () => {
  await using service = await startSocketWorld()
  const { key, row } = await service.key()
  startCapture(service, row.id)
  const response = await fetch(`${service.url}/v1/realtime/calls`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/sdp' },
    body: 'v=0',
  })
  await response.text()
  expect((await service.rows()).map(({ kind }) => kind)).toEqual(['live'])
  expect(await captured(service)).toEqual([])
})
