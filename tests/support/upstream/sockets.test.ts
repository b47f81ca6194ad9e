/** The sockets of the stand-in upstream: handshakes, turns, and the state of a connection. */
import { afterEach, describe, expect, test } from 'bun:test'
import { connectSocket, SocketRefused } from '../socket-client.ts'
import { until, untilUnchanged } from '../until.ts'
import { createUpstream } from './app.ts'
import { aCreate, ask, getEvents, getHandshake, getText, getTypes, idOf, says } from './client.ts'
import { faults } from './faults.ts'
import { answers, type Json } from './script.ts'
import { createSocketLab, SOCKET_PATH, turnOn } from './socket-lab.ts'

const NOW = Date.UTC(2026, 10, 20)

const lab = createSocketLab({ now: () => NOW })
const { upstream, url, anAccount, open } = lab
afterEach(lab.tidy)

async function refused(headers: Record<string, string>): Promise<SocketRefused> {
  const outcome = await connectSocket(`${url}${SOCKET_PATH}`, { headers }).catch((error: unknown) => error)
  if (outcome instanceof SocketRefused) return outcome
  throw outcome
}

const prewarm = (more: Json = {}) => aCreate({ input: [], instructions: undefined, generate: false, ...more })

describe('a handshake', () => {
  test('of a valid client opens a socket with the headers of a response', async () => {
    const account = anAccount()
    account.setUsage({ primary: { usedPercent: 12.5, windowMinutes: 300, resetAt: NOW + 9_000_000 } })
    const { headers } = (await open(account)).opened
    const response = await ask(upstream, account)
    await getEvents(response)
    expect(headers['x-codex-turn-state']).toStartWith(`ts.${account.chatgptAccountId}.`)
    expect(headers['x-request-id']).toStartWith('req_')
    for (const name of ['x-models-etag', 'x-reasoning-included', 'x-codex-primary-used-percent'])
      expect(headers[name]).toBe(response.headers.get(name) ?? 'missing')
    expect(headers['openai-model']).toBeUndefined()
    expect(upstream.handshakes).toMatchObject([{ status: 101, account: account.chatgptAccountId, closed: null }])
    expect(upstream.requests).toHaveLength(1)
    expect([upstream.openSockets, upstream.stats.openSockets, upstream.stats.handshakes]).toEqual([1, 1, 1])
    expect(upstream.oddities).toEqual([])
  })

  test('without a valid token or the protocol version is rejected', async () => {
    const account = anAccount()
    const good = getHandshake(account)
    const token = await refused({ ...good, authorization: 'Bearer nobody' })
    expect([token.status, JSON.parse(token.body)]).toEqual([401, { detail: 'Unauthorized' }])
    const beta = await refused({ ...good, 'openai-beta': 'responses=experimental' })
    expect([beta.status, beta.body]).toEqual([400, expect.stringContaining('responses_websockets=2026-02-06')])
    expect((await refused({ ...good, 'openai-beta': '' })).status).toBe(400)
    expect(upstream.oddities).toEqual([])
    const stranger = await refused({ ...good, 'chatgpt-account-id': anAccount().chatgptAccountId })
    expect(stranger.status).toBe(401)
    expect(upstream.oddities).toEqual([expect.stringContaining('the chatgpt-account-id of another account')])
    account.expireAccessToken()
    const expired = await refused(good)
    expect([expired.status, JSON.parse(expired.body)]).toMatchObject([401, { error: { code: 'token_expired' } }])
    expect(upstream.handshakes.map(({ status }) => status)).toEqual([401, 400, 400, 401, 401])
    expect(upstream.requests).toEqual([])
  })

  const mistakes: [name: string, headers: Record<string, string>, sentence: string][] = [
    ['a cookie', { cookie: 'a=b' }, 'the header cookie must not reach the service'],
    ['a content type', { 'content-type': 'application/json' }, 'the header content-type must not'],
    ['an internal header', { 'x-codex-lb-required-capability': 'x' }, 'x-codex-lb-required-capability must not'],
    ['a forwarding header', { 'x-forwarded-for': '10.0.0.1' }, 'x-forwarded-for must not'],
    ['a hop-by-hop header', { te: 'trailers' }, 'the header te must not'],
    ['the lite marker', { 'x-openai-internal-codex-responses-lite': 'true' }, 'responses-lite must not'],
    ['a client key', { 'x-something': 'sk-clb-abc' }, 'a client API key is in the header x-something'],
    ['a foreign turn state', { 'x-codex-turn-state': 'ts.other.1' }, 'an x-codex-turn-state that it did not issue'],
    ['no user agent', { 'user-agent': '' }, 'there is no user-agent'],
  ]
  test.each(mistakes)('with %s is recorded as odd', async (_name, headers, sentence) => {
    await open(anAccount(), { headers })
    expect(upstream.oddities).toEqual([expect.stringContaining(sentence)])
  })

  test('that offers a sub-protocol is recorded as odd', async () => {
    await open(anAccount(), { protocols: ['v1'] })
    expect(upstream.oddities).toEqual([expect.stringContaining('sec-websocket-protocol must not')])
  })

  test('is rejected, broken or delayed by its own faults', async () => {
    const account = anAccount()
    account.setUsage({ primary: { usedPercent: 99, windowMinutes: 300, resetAt: NOW } })
    account.next({ ...faults.rateLimited(7), on: 'handshake' }, { ...faults.badGatewayHtml(), on: 'handshake' })
    const limited = await refused(getHandshake(account))
    expect([limited.status, JSON.parse(limited.body)]).toMatchObject([429, { error: { code: 'rate_limit_exceeded' } }])
    expect(limited.headers).toMatchObject({ 'retry-after': '7', 'x-codex-primary-used-percent': '99' })
    expect(await refused(getHandshake(account))).toMatchObject({ status: 502, body: expect.stringContaining('<html>') })

    account.next({ on: 'handshake', reset: true })
    const reset = await open(account).catch((error: unknown) => error)
    expect(reset).toMatchObject({ code: 'ECONNRESET' })

    account.next({ on: 'handshake', delayHeadersMs: 5 }, { on: 'handshake', delayHeadersMs: 3_600_000 })
    expect((await turnOn(await open(account), aCreate())).at(-1)?.type).toBe('response.completed')
    const late = await open(account, { timeoutMs: 50 }).catch((error: unknown) => error)
    expect(String(late)).toContain('was not answered within 50 ms')
    await until(() => upstream.handshakes.at(-1)?.aborted === true)
    expect(upstream.handshakes.map(({ status }) => status)).toEqual([429, 502, null, 101, null])
  })

  test('exists for sockets only: a plain GET is not found, in process too', async () => {
    const headers = getHandshake(anAccount())
    expect((await fetch(`${url}${SOCKET_PATH}`, { headers })).status).toBe(404)
    expect(
      (await upstream.fetch(`${url}${SOCKET_PATH}`, { headers: { ...headers, upgrade: 'websocket' } })).status,
    ).toBe(404)
  })
})

describe('a turn', () => {
  test('gets the events of an HTTP response, one per frame, and is recorded like a request', async () => {
    const account = anAccount()
    const socket = await open(account)
    const events = await turnOn(socket, aCreate())
    const overHttp = await getEvents(await ask(upstream, account))
    expect(getTypes(events)).toEqual(getTypes(overHttp))
    expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, index) => index))
    expect(getText(events)).toBe(`Hello from ${account.email}`)
    expect(upstream.requests[0]).toMatchObject({
      method: 'WS',
      path: SOCKET_PATH,
      account: account.chatgptAccountId,
      body: aCreate(),
      status: 200,
      eventsSent: events.length,
      finished: true,
      aborted: false,
      connection: upstream.handshakes[0]?.connection,
    })
    expect(upstream.requests[1]).toMatchObject({ method: 'POST', connection: null })
    expect(upstream.oddities).toEqual([])
  })

  test('can follow another, on any number of connections', async () => {
    const account = anAccount()
    const [one, two] = [await open(account), await open(account)]
    expect(upstream.openSockets).toBe(2)
    for (const socket of [one, two, one]) await turnOn(socket, aCreate())
    const [first, second] = upstream.handshakes.map(({ connection }) => connection)
    expect(upstream.requests.map(({ connection }) => connection)).toEqual([first!, second!, first!])
    two.terminate()
    await until(() => upstream.openSockets === 1)
    expect(upstream.handshakes[1]?.closed).toEqual({ code: 1006, reason: '' })
    one.close(1000, 'done')
    await until(() => upstream.openSockets === 0)
    expect(upstream.handshakes[0]?.closed).toEqual({ code: 1000, reason: 'done' })
  })

  test('builds on the previous response: prewarm, tool call, its output, compaction', async () => {
    const account = anAccount()
    const socket = await open(account)
    const lite = { client_metadata: { ws_request_header_x_openai_internal_codex_responses_lite: 'true' } }
    const model = { model: 'gpt-6.1-sol', instructions: undefined, include: ['reasoning.encrypted_content'], ...lite }
    const warm = await turnOn(socket, prewarm(model))
    expect(getTypes(warm)).toEqual(['response.created', 'response.in_progress', 'response.completed'])
    expect(warm.at(-1)?.response).toMatchObject({ output: [], usage: { input_tokens: 0, total_tokens: 0 } })

    const tools = { type: 'additional_tools', role: 'developer', tools: [{ type: 'custom', name: 'exec' }] }
    const input = [tools, { type: 'message', role: 'developer', content: 'Be brief.' }, says('run: ls')]
    const called = await turnOn(socket, aCreate({ ...model, previous_response_id: idOf(warm), input }))
    const call = called.at(-2)?.item as Json // as: the item of an output_item.done
    expect(call).toMatchObject({ type: 'custom_tool_call', name: 'exec' })

    const output = { type: 'custom_tool_call_output', call_id: call.call_id, output: 'a.txt' }
    const told = await turnOn(socket, aCreate({ ...model, previous_response_id: idOf(called), input: [output] }))
    expect(getText(told)).toBe('The tool said: a.txt')
    expect(told[0]?.response.previous_response_id).toBe(idOf(called) as string) // as: it was completed

    const trigger = { ...model, previous_response_id: idOf(told), input: [{ type: 'compaction_trigger' }] }
    expect((await turnOn(socket, aCreate(trigger))).at(-2)?.item).toMatchObject({ type: 'compaction' })
    const again = await turnOn(socket, aCreate({ ...model, previous_response_id: idOf(called), input: [output] }))
    expect(getText(again)).toBe('The tool said: a.txt')
    expect(upstream.oddities).toEqual([])
  })

  test('without new input is accepted for a prewarm or a previous response', async () => {
    const socket = await open(anAccount())
    const [empty] = await turnOn(socket, aCreate({ input: [] }))
    expect(empty).toMatchObject({ status: 400, error: { message: 'Input must not be empty' } })
    const first = await turnOn(socket, aCreate())
    const more = await turnOn(socket, aCreate({ input: [], previous_response_id: idOf(first) }))
    expect(more.at(-1)?.type).toBe('response.completed')
  })

  test('shows a script the whole conversation', async () => {
    const socket = await open(anAccount())
    const seen: unknown[] = []
    upstream.script(({ input }) => {
      seen.push(input.map(({ role }) => role))
      return answers.text('yes')
    })
    const first = await turnOn(socket, aCreate())
    await turnOn(socket, aCreate({ previous_response_id: idOf(first), input: [says('more')] }))
    expect(seen).toEqual([['user'], ['user', 'assistant', 'user']])
  })

  test('gets the same frames from a precomputed response', async () => {
    const account = anAccount()
    const answer = answers.bulk(20, 10, { precomputed: true, perChunk: 8 })
    upstream.script(() => answer)
    const first = await turnOn(await open(account), aCreate())
    expect(await turnOn(await open(account), aCreate())).toEqual(first)
    expect(upstream.requests).toMatchObject([{ eventsSent: 28 }, { eventsSent: 28, finished: true }])
  })

  test('of 12 MB to a stalled reader waits for it and loses nothing', async () => {
    const socket = await open(anAccount())
    upstream.script(() => answers.bulk(3000, 4000))
    socket.pause()
    socket.send(aCreate())
    const sent = () => upstream.requests[0]?.eventsSent ?? 0
    await until(() => sent() > 0)
    await untilUnchanged(sent)
    expect(sent()).toBeLessThan(3000)
    socket.resume()
    await socket.next(({ type }) => type === 'response.completed')
    expect(socket.events).toHaveLength(3008)
    expect(upstream.requests).toMatchObject([{ eventsSent: 3008, finished: true }])
  })
})

test('stopping a port closes the sockets that came in on it', async () => {
  const other = createUpstream()
  const { url: at, stop } = other.listen()
  const account = other.addAccount()
  const socket = await connectSocket(`${at}${SOCKET_PATH}`, { headers: getHandshake(account) })
  await stop()
  expect((await socket.closed).code).toBe(1001)
  await until(() => other.openSockets === 0)
})
