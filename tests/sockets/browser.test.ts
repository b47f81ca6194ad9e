/** Sockets of browsers, which can't set headers: the key comes in a subprotocol, from listed origins only. */
import { describe, expect, test } from 'bun:test'
import { connectSocket, SocketRefused } from '../support/socket-client.ts'
import {
  create,
  expectCompleted,
  getRefusal,
  leave,
  NATIVE,
  PUBLIC,
  type SocketWorld,
  startSocketWorld,
} from './ground.ts'

const APP = 'https://app.example'
const CORS = { settings: { corsOrigins: APP } }

const openAs = (service: SocketWorld, protocols: string[], { origin = APP, path = PUBLIC, headers = {} } = {}) =>
  connectSocket(service.socketUrl + path, { protocols, headers: { origin, ...headers } })

const keyProtocol = (key: string) => `openai-insecure-api-key.${key}`

const refusedWith = async (socket: Promise<unknown>) => {
  const refusal = await socket.then(
    () => null,
    (err: unknown) => err,
  )
  if (!(refusal instanceof SocketRefused)) throw new Error(`It was not refused: ${String(refusal)}`)
  return refusal.status
}

describe('a listed origin', () => {
  test.each([
    [['realtime', 'KEY', 'openai-beta.realtime-v1'], 'realtime'],
    [['KEY', 'openai-beta.realtime-v1', 'responses'], 'responses'],
    [['KEY', 'realtime'], 'realtime'],
    [['KEY'], 'KEY'],
  ])('sends its key among %p and is answered %p', async (offered, chosen) => {
    await using service = await startSocketWorld(CORS)
    const { key, row } = await service.key()
    const filled = (name: string) => (name === 'KEY' ? keyProtocol(key) : name)
    const socket = await openAs(service, offered.map(filled))
    expect(socket.opened.headers['sec-websocket-protocol']).toBe(filled(chosen))
    expectCompleted(await socket.turn(create()))
    expect(await service.rows()).toMatchObject([{ keyId: row.id }])
    expect(JSON.stringify(service.upstream.requests)).not.toContain(key)
    await leave(service, socket)
  })

  test('needs a valid key, whether or not keys are required, and on each turn', async () => {
    await using service = await startSocketWorld(CORS)
    expect(await refusedWith(openAs(service, ['realtime']))).toBe(401)
    expect(await refusedWith(openAs(service, ['realtime', keyProtocol('sk-clb-of-nobody')]))).toBe(401)
    const { key } = await service.key({ allowedModels: ['gpt-5.4'] })
    const socket = await openAs(service, ['realtime', keyProtocol(key)])
    expect(getRefusal(await socket.turn(create()))).toEqual([403, 'model_not_allowed'])
    await leave(service, socket)
    expect(service.lines.join('\n')).not.toContain(key)
  })

  test('can still send a header, which takes precedence', async () => {
    await using service = await startSocketWorld(CORS)
    const { key, row } = await service.key()
    const headers = { authorization: `Bearer ${key}` }
    const socket = await openAs(service, ['realtime', keyProtocol('sk-clb-of-nobody')], { headers })
    expectCompleted(await socket.turn(create()))
    expect(await service.rows()).toMatchObject([{ keyId: row.id }])
    await leave(service, socket)
  })
})

describe('a key in a subprotocol is ignored', () => {
  test.each([
    ['from another origin', { origin: 'https://evil.example' }, 403],
    ['on the native route', { path: NATIVE }, 403],
  ])('%s', async (_name, from, status) => {
    await using service = await startSocketWorld(CORS)
    const { key } = await service.key()
    expect(await refusedWith(openAs(service, ['realtime', keyProtocol(key)], from))).toBe(status)
  })

  test('while no origin is listed', async () => {
    await using service = await startSocketWorld({ settings: { apiKeyAuthEnabled: true } })
    const { key } = await service.key()
    expect(await refusedWith(openAs(service, ['realtime', keyProtocol(key)]))).toBe(401)
  })
})
