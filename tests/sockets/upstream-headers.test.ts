/** Upstream headers that travel inside events, which a native client would take for those of Sluice. */
import { expect, test } from 'bun:test'
import { codexBody, parseEvents, type StreamEvent } from '../support/app.ts'
import { create, leave, NATIVE, open, PUBLIC, type SocketWorld, startSocketWorld } from './ground.ts'

const overHttp = async ({ url }: SocketWorld, path: string): Promise<StreamEvent[]> =>
  parseEvents(await (await fetch(url + path, { method: 'POST', body: JSON.stringify(codexBody('hi', STREAM)) })).text())

const STREAM = { stream: true }

const overSocket = async (service: SocketWorld, path: string): Promise<StreamEvent[]> => {
  const socket = await open(service, { path })
  return turnOn(service, socket)
}

/** The handshake needs sockets to be enabled; the turn itself uses HTTP. */
const overSocketToHttp = async (service: SocketWorld, path: string): Promise<StreamEvent[]> => {
  await service.change({ upstreamStreamTransport: 'websocket' })
  const socket = await open(service, { path })
  await service.change({ upstreamStreamTransport: 'http' })
  return turnOn(service, socket)
}

const turnOn = async (service: SocketWorld, socket: Awaited<ReturnType<typeof open>>): Promise<StreamEvent[]> => {
  const events = await socket.turn(create())
  await leave(service, socket)
  return events
}

/** What the upstream sends in between, and what remains of it. */
const SAID: [said: StreamEvent, told: StreamEvent][] = [
  [
    { type: 'response.metadata', mark: 1, headers: { 'openai-model': 'm', 'x-openai-model': ['m'] } },
    { type: 'response.metadata', mark: 1, headers: {} },
  ],
  [
    { type: 'response.in_progress', mark: 2, response: { headers: { 'OpenAI-Model': 'm', 'x-kept': '1' } } },
    { type: 'response.in_progress', mark: 2, response: { headers: { 'x-kept': '1' } } },
  ],
  [
    { type: 'response.metadata', mark: 3, headers: { 'x-models-etag': '"theirs"', 'x-kept': 'ö' } },
    { type: 'response.metadata', mark: 3, headers: { 'x-kept': 'ö' } },
  ],
]

test.each([
  ['a native client over HTTP', 'http', overHttp, NATIVE],
  ['a native client over HTTP whose turns go over a socket', 'websocket', overHttp, NATIVE],
  ['a native client on a socket', 'websocket', overSocket, NATIVE],
  ['a client of /v1 over HTTP', 'http', overHttp, PUBLIC],
  ['a client of /v1 on a socket', 'websocket', overSocket, PUBLIC],
] as const)('%s does not get the model and the catalog headers of the upstream', async (_who, transport, ask, path) => {
  await using service = await startSocketWorld({ settings: { upstreamStreamTransport: transport } })
  for (const [said, told] of SAID) {
    const text = JSON.stringify(said)
    const isFrame = transport === 'websocket'
    service.members[0]?.sim.next({ malformedChunk: { afterEvents: 3, text: isFrame ? text : `data: ${text}\n\n` } })
    const events = await ask(service, path)
    expect(events.filter(({ mark }) => mark !== undefined)).toEqual([told])
    expect(events.at(-1)?.type).toBe('response.completed')
  }
})

test.each([
  ['over HTTP', overHttp],
  ['on a socket', overSocketToHttp],
] as const)(
  'a native client %s gets the same headers when an error comes in one chunk with them',
  async (_how, ask) => {
    await using service = await startSocketWorld({
      settings: { upstreamStreamTransport: 'http', clientRateLimits: 'account' },
    })
    const limits = { type: 'codex.rate_limits', mark: 4 }
    const error = { type: 'error', error: { code: 'server_error', message: 'It broke.' } }
    const piece = [...SAID.map(([said]) => said), limits, error].map((event) => `data: ${JSON.stringify(event)}\n\n`)
    service.members[0]?.sim.next({ malformedChunk: { afterEvents: 3, text: piece.join('') } })
    const events = await ask(service, NATIVE)
    expect(events.filter(({ mark }) => mark !== undefined)).toEqual([...SAID.map(([, told]) => told), limits])
    expect(events.at(-1)?.type).toBe('response.failed')
  },
)
