/** What the sockets of the stand-in upstream reject in band, and what they record as odd. */
import { afterEach, describe, expect, test } from 'bun:test'
import { aCreate, idOf, says } from './client.ts'
import type { Json } from './script.ts'
import { createSocketLab, turnOn } from './socket-lab.ts'

const NOW = Date.UTC(2026, 10, 20)

const lab = createSocketLab({ now: () => NOW })
const { upstream, anAccount, open } = lab
afterEach(lab.tidy)

describe('a frame is rejected in band', () => {
  const bodies: [name: string, frame: Json, message: string][] = [
    ['no stream', aCreate({ stream: undefined }), 'Stream must be set to true'],
    ['stored', aCreate({ store: true }), 'Store must be set to false'],
    ['an unsupported parameter', aCreate({ temperature: 1 }), 'Unsupported parameter: temperature'],
    ['an unknown model', aCreate({ model: 'gpt-x' }), "The 'gpt-x' model is not supported"],
    ['no instructions', aCreate({ instructions: undefined }), 'Instructions are required'],
    ['generate that is no boolean', aCreate({ generate: 'no' }), 'Generate must be a boolean'],
  ]
  test.each(bodies)('%s', async (_name, frame, message) => {
    const socket = await open(anAccount())
    const [error] = await turnOn(socket, frame)
    const said = { message: expect.stringContaining(message) }
    expect(error).toMatchObject({ type: 'error', status: 400, error: said, headers: {} })
    expect(upstream.requests).toMatchObject([{ method: 'WS', status: 400, finished: true, eventsSent: 0 }])
    expect((await turnOn(socket, aCreate())).at(-1)?.type).toBe('response.completed')
    expect(upstream.oddities).toEqual([])
  })

  test('a previous response that this connection did not produce', async () => {
    const account = anAccount()
    const first = await turnOn(await open(account), aCreate())
    const [error] = await turnOn(await open(account), aCreate({ previous_response_id: idOf(first) }))
    expect(error).toMatchObject({ status: 400, error: { code: 'previous_response_not_found' } })
  })

  test('a previous response that failed', async () => {
    const account = anAccount()
    const socket = await open(account)
    account.next({ failAfterCreated: { code: 'server_error', message: 'broken' } })
    const failed = await turnOn(socket, aCreate())
    const [error] = await turnOn(socket, aCreate({ previous_response_id: idOf(failed) }))
    expect(error).toMatchObject({ status: 400, error: { code: 'previous_response_not_found' } })
  })

  test('ciphertext of another account, with the rate headers', async () => {
    const [account, other] = [anAccount(), anAccount()]
    other.setUsage({ primary: { usedPercent: 3, windowMinutes: 300, resetAt: NOW } })
    const include = ['reasoning.encrypted_content']
    const events = await turnOn(await open(account), aCreate({ include }))
    const reasoning = events.find(({ type }) => type === 'response.output_item.done')?.item
    const [error] = await turnOn(await open(other), aCreate({ include, input: [reasoning, says('more')] }))
    expect(error).toMatchObject({
      type: 'error',
      status: 400,
      error: { code: 'invalid_encrypted_content' },
      headers: { 'x-codex-primary-used-percent': '3' },
    })
  })

  const junk: [name: string, frame: string | Uint8Array, what: string][] = [
    ['not JSON', '{"type":', 'no JSON object'],
    ['a list', '[]', 'no JSON object'],
    ['an unknown type', '{"type":"session.update"}', 'the type session.update'],
    ['binary', new Uint8Array([123, 125]), 'a binary frame'],
  ]
  test.each(junk)('%s, and is recorded as odd', async (_name, frame, what) => {
    const socket = await open(anAccount())
    expect(await turnOn(socket, frame)).toMatchObject([{ type: 'error', status: 400 }])
    expect(upstream.oddities).toEqual([expect.stringContaining(`${what} came on the socket`)])
    expect(upstream.requests).toEqual([])
  })

  test('a second create while the first streams; the first continues', async () => {
    const account = anAccount()
    const socket = await open(account)
    account.next({ silence: { afterEvents: 1 } })
    socket.send(aCreate())
    await socket.next()
    expect(await turnOn(socket, aCreate())).toMatchObject([{ status: 400, error: { code: 'response_in_progress' } }])
    expect(upstream.oddities).toEqual([expect.stringContaining('while another one was under way')])
    expect(upstream.openStreams).toBe(1)
  })

  test('a lite body without its marker is recorded as odd', async () => {
    const input = [{ type: 'additional_tools', role: 'developer', tools: [] }, says('hi')]
    await turnOn(await open(anAccount()), aCreate({ input }))
    expect(upstream.oddities).toEqual([expect.stringContaining('in its client_metadata')])
  })

  test('more than 16 MiB closes with 1009', async () => {
    const socket = await open(anAccount())
    socket.send('x'.repeat(16 * 1024 * 1024 + 1))
    expect((await socket.closed).code).toBe(1009)
  })
})
