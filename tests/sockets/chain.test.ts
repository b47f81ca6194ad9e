/** Turns that continue a response: on the connection that has it, after a prewarm, and on one that does not. */
import { describe, expect, test } from 'bun:test'
import { NEUTRAL_INSTRUCTIONS } from '../../src/proxy/formats/instructions.ts'
import type { TestSocket } from '../support/socket-client.ts'
import { until } from '../support/until.ts'
import {
  create,
  createFollowUp,
  expectCompleted,
  expectNothingLeft,
  getRefusal,
  idOf,
  leave,
  NATIVE,
  open,
  PUBLIC,
  prewarm,
  startSocketWorld,
} from './ground.ts'

const ROUTES = [NATIVE, PUBLIC]
const LOST = [400, 'previous_response_not_found'] as const

/** A served turn; gives its response id. */
const serve = async (socket: TestSocket, frame: Record<string, unknown>): Promise<string> => {
  const events = await socket.turn(frame)
  expectCompleted(events)
  return idOf(events)
}

describe('on one connection', () => {
  test.each(ROUTES)('%s: three turns, one upstream socket, each continues the previous one', async (path) => {
    await using service = await startSocketWorld({ accounts: 3, settings: { routingStrategy: 'round_robin' } })
    const socket = await open(service, { path })
    const first = await serve(socket, create('one'))
    const second = await serve(socket, createFollowUp(first, 'two'))
    await serve(socket, createFollowUp(second, 'three'))
    const { requests, handshakes } = service.upstream
    expect(handshakes).toHaveLength(1)
    expect(requests.map(({ connection }) => connection)).toEqual([1, 1, 1])
    expect(requests.map(({ body }) => (body as { previous_response_id?: string }).previous_response_id)).toEqual([
      undefined,
      first,
      second,
    ])
    expect(new Set((await service.rows()).map(({ accountId }) => accountId)).size).toBe(1)
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('system messages of a public client apply to the turns that continue from it', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service, { path: PUBLIC })
    const input = [
      { role: 'system', content: 'You are a pirate.' },
      { role: 'user', content: 'hi' },
    ]
    const first = await serve(socket, create('', { instructions: undefined, input }))
    const second = await serve(socket, createFollowUp(first, 'again', { instructions: undefined }))
    await serve(socket, createFollowUp(second, '', { instructions: undefined, input: 'and again' }))
    const sent = service.upstream.requests.map(({ body }) => body as { instructions?: string; input: unknown[] }) // as: what was sent
    const said = { role: 'developer', content: [{ type: 'input_text', text: 'You are a pirate.' }] }
    expect(sent.map(({ instructions, input }) => [instructions, input.length])).toEqual([
      [undefined, 2],
      [undefined, 1],
      [undefined, 1],
    ])
    expect(sent[0]?.input[0]).toEqual(said)
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test.each([undefined, 'Be brief.'])('instructions, here %j, are those of their own turn', async (instructions) => {
    await using service = await startSocketWorld()
    const socket = await open(service, { path: PUBLIC })
    const first = await serve(socket, create('one', { instructions }))
    await serve(socket, createFollowUp(first, 'two', { instructions: undefined }))
    const sent = service.upstream.requests.map(({ body }) => (body as { instructions?: string }).instructions) // as above
    expect(sent).toEqual([instructions ?? NEUTRAL_INSTRUCTIONS, NEUTRAL_INSTRUCTIONS])
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('a public frame requests what is needed to continue its reasoning on another connection', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service, { path: PUBLIC })
    await serve(socket, create('one', { include: [] }))
    expect(service.upstream.requests[0]?.body).toMatchObject({ include: ['reasoning.encrypted_content'] })
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('a frame is sent as the client wrote it, byte for byte', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service)
    const written = JSON.stringify(create('wörtlich \\u00e9 1e2'), null, 2)
    expectCompleted(await socket.turn(written))
    expect(service.upstream.requests[0]?.bodyText).toBe(written)
    await leave(service, socket)
  })

  test('tools of a public frame are sent as written, where reformatting would change them', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service, { path: PUBLIC })
    const tools = '[{"type": "function", "name": "f", "parameters": {"b": 9223372036854775807, "1": {}}}]'
    expectCompleted(await socket.turn(JSON.stringify(create()).replace('{', `{"tools":${tools},`)))
    expect(service.upstream.requests[0]?.bodyText).toContain(`,"tools":${tools},`)
    await leave(service, socket)
  })

  test('a frame with a null previous response is a turn of its own', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service)
    await serve(socket, create('x', { previous_response_id: null }))
    expect(service.upstream.requests[0]?.body).not.toHaveProperty('previous_response_id')
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('a prewarm is sent upstream, and its id is valid for the next turn', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service)
    const warm = await serve(socket, prewarm())
    await serve(socket, createFollowUp(warm))
    const { requests, handshakes } = service.upstream
    expect([handshakes.length, requests.length]).toEqual([1, 2])
    expect(await service.rows()).toMatchObject([
      { kind: 'prewarm', upstreamTransport: 'websocket', status: 'ok' },
      { kind: 'normal', upstreamTransport: 'websocket', status: 'ok' },
    ])
    await leave(service, socket)
  })

  test('a new conversation on the same socket needs no earlier one', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service)
    await serve(socket, create('one'))
    await serve(socket, create('two'))
    expect(service.upstream.handshakes).toHaveLength(1)
    await leave(service, socket)
  })
})

describe('the previous response is missing: reported in-band, and a full resend is served', () => {
  test.each(ROUTES)('%s: an unknown id, with and without an upstream socket', async (path) => {
    await using service = await startSocketWorld()
    const socket = await open(service, { path })
    expect(getRefusal(await socket.turn(createFollowUp('resp_unknown')))).toEqual([...LOST])
    expect(service.upstream.handshakes).toEqual([])
    await serve(socket, create())
    expect(getRefusal(await socket.turn(createFollowUp('resp_unknown')))).toEqual([...LOST])
    await serve(socket, create())
    expect(service.upstream.handshakes).toHaveLength(1)
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('an id of another socket', async () => {
    await using service = await startSocketWorld()
    const [one, other] = [await open(service), await open(service)]
    const id = await serve(one, create())
    await serve(other, create())
    expect(getRefusal(await other.turn(createFollowUp(id)))).toEqual([...LOST])
    await serve(one, createFollowUp(id))
    await leave(service, one, other)
  })

  test.each(['close', 'drop'] as const)('the upstream socket has ended since (%s)', async (how) => {
    await using service = await startSocketWorld()
    if (how === 'close') service.members[0]?.sim.next({ closeIdle: { code: 1001 } })
    const socket = await open(service)
    const id = await serve(socket, create())
    if (how === 'drop') service.upstream.closeSockets(1011)
    await until(() => service.upstream.openSockets === 0, 'the upstream socket gone')
    expect(getRefusal(await socket.turn(createFollowUp(id)))).toEqual([...LOST])
    await serve(socket, create())
    expect(service.upstream.handshakes).toHaveLength(2)
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('the upstream socket breaks under the continuing turn', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service)
    const id = await serve(socket, create())
    service.members[0]?.sim.next({ close: { code: 1011, afterEvents: 1 } })
    expect(getRefusal(await socket.turn(createFollowUp(id)))).toEqual([...LOST])
    await serve(socket, create())
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('the previous turn used HTTP', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service)
    await service.change({ upstreamStreamTransport: 'http' })
    const id = await serve(socket, create())
    expect(getRefusal(await socket.turn(createFollowUp(id)))).toEqual([...LOST])
    await service.change({ upstreamStreamTransport: 'auto' })
    expect(getRefusal(await socket.turn(createFollowUp(id)))).toEqual([...LOST])
    await serve(socket, createFollowUp(await serve(socket, create())))
    expect((await service.rows()).map(({ upstreamTransport, status }) => `${upstreamTransport} ${status}`)).toContain(
      'http ok',
    )
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('the previous turn used a socket, and the transport is http now', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service)
    const id = await serve(socket, create())
    await service.change({ upstreamStreamTransport: 'http' })
    expect(getRefusal(await socket.turn(createFollowUp(id)))).toEqual([...LOST])
    await until(() => service.upstream.openSockets === 0, 'the connection closed, which is of no use now')
    await serve(socket, create())
    expect(service.upstream.requests.map(({ method }) => method)).toEqual(['WS', 'POST'])
    expect(await service.rows()).toMatchObject([{ status: 'ok' }, { status: 'ok' }]) // no account was used for the other
    await leave(service, socket)
    await expectNothingLeft(service)
  })
})

describe('a prewarm without an upstream socket is answered by Sluice, and put before the next turn', () => {
  const texts = (body: unknown) =>
    (body as { input: { content: { text: string }[] }[] }).input.map(({ content }) => content[0]?.text)

  for (const path of ROUTES)
    test(`${path}: the transport is http`, async () => {
      await using service = await startSocketWorld()
      const socket = await open(service, { path })
      await service.change({ upstreamStreamTransport: 'http' })
      const warm = await serve(socket, prewarm())
      expect(service.upstream.requests).toEqual([])
      await serve(socket, createFollowUp(warm, 'go'))
      expect(texts(service.upstream.requests[0]?.body)).toEqual(['warm', 'go'])
      expect(await service.rows()).toMatchObject([
        { kind: 'prewarm', upstreamTransport: null, status: 'ok', inputTokens: 0, outputTokens: 0 },
        { kind: 'normal', upstreamTransport: 'http', status: 'ok' },
      ])
      await leave(service, socket)
      await expectNothingLeft(service)
    })

  test('the account is on HTTP after a 426', async () => {
    await using service = await startSocketWorld()
    service.members[0]?.sim.always({ on: 'handshake', status: 426, body: { detail: 'Upgrade Required' } })
    const socket = await open(service)
    const warm = await serve(socket, prewarm())
    await serve(socket, createFollowUp(warm, 'go'))
    await serve(socket, create())
    expect(service.upstream.handshakes).toHaveLength(1)
    expect(texts(service.upstream.requests[0]?.body)).toEqual(['warm', 'go'])
    expect(service.upstream.requests.map(({ method }) => method)).toEqual(['POST', 'POST'])
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('the next turn can use a socket again', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service)
    await service.change({ upstreamStreamTransport: 'http' })
    const warm = await serve(socket, prewarm())
    await service.change({ upstreamStreamTransport: 'websocket' })
    const id = await serve(socket, createFollowUp(warm, 'go'))
    expect(service.upstream.requests).toMatchObject([{ method: 'WS' }])
    expect(texts(service.upstream.requests[0]?.body)).toEqual(['warm', 'go'])
    expect(service.upstream.requests[0]?.body).not.toHaveProperty('previous_response_id')
    await serve(socket, createFollowUp(id))
    await leave(service, socket)
  })

  test('it is valid for one turn, on its own socket, and only with a list to join', async () => {
    await using service = await startSocketWorld()
    const [socket, other] = [await open(service), await open(service)]
    await service.change({ upstreamStreamTransport: 'http' })
    const warm = await serve(socket, prewarm())
    expect(getRefusal(await other.turn(createFollowUp(warm)))).toEqual([...LOST])
    expect(getRefusal(await socket.turn(createFollowUp(warm, '', { input: 'text' })))).toEqual([
      400,
      'invalid_request_error',
    ])
    await serve(socket, createFollowUp(warm))
    expect(getRefusal(await socket.turn(createFollowUp(warm)))).toEqual([...LOST])
    await leave(service, socket, other)
    await expectNothingLeft(service)
  })

  test('one over 1 MiB is not kept', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service)
    await service.change({ upstreamStreamTransport: 'http' })
    const warm = await serve(socket, create('w'.repeat(1024 * 1024 + 1), { generate: false }))
    expect(getRefusal(await socket.turn(createFollowUp(warm)))).toEqual([...LOST])
    await leave(service, socket)
    await expectNothingLeft(service)
  })
})

describe('a client is asked for a full resend with the code it knows', () => {
  const OLDER = [400, 'websocket_connection_limit_reached'] as const
  test.each([
    [NATIVE, { 'user-agent': 'codex_vscode/0.140.0 (Debian 12.0.0; x86_64) unknown' }, OLDER],
    [NATIVE, { 'user-agent': 'codex_cli_rs/0.137.0-alpha.2 (Debian 12.0.0; x86_64) unknown' }, OLDER],
    [NATIVE, { originator: 'codex_vscode' }, OLDER],
    [NATIVE, { 'user-agent': 'codex_vscode/0.150.1 (Debian 12.0.0; x86_64) unknown' }, LOST],
    [NATIVE, { 'user-agent': 'codex_cli_rs/1.2.0 (Debian 12.0.0; x86_64) unknown' }, LOST],
    [NATIVE, { 'user-agent': 'somebody' }, LOST],
    [PUBLIC, { 'user-agent': 'codex_vscode/0.140.0 (Debian 12.0.0; x86_64) unknown' }, LOST],
  ] as const)('%s, %j', async (path, headers, told) => {
    await using service = await startSocketWorld()
    const socket = await open(service, { path, headers })
    expect(getRefusal(await socket.turn(createFollowUp('resp_of_nobody')))).toEqual([...told])
    expectCompleted(await socket.turn(create('everything')))
    await leave(service, socket)
    await expectNothingLeft(service)
  })
})
