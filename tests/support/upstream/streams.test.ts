/** The streams of the stand-in upstream: how they fail, wait for their reader, and what is recorded. */
import { describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { until, untilUnchanged } from '../until.ts'
import type { Account } from './accounts.ts'
import { createUpstream, type Upstream } from './app.ts'
import { aBody, ask, get, getEvents, getHeaders, getText, getTypes, says } from './client.ts'
import type { Fault } from './faults.ts'
import { answers } from './script.ts'

function anUpstream(): { upstream: Upstream; account: Account } {
  const upstream = createUpstream({ sleep: async () => {} })
  return { upstream, account: upstream.addAccount() }
}

async function typesWith(fault: Fault): Promise<string[]> {
  const { upstream, account } = anUpstream()
  account.next(fault)
  return getTypes(await getEvents(await ask(upstream, account)))
}

const CREATED = ['response.created', 'response.in_progress']

/** Reads until the body fails; gives what arrived and the error. */
async function readUntilError(response: Response): Promise<{ text: string; error: unknown }> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  try {
    for (let done = false; !done; ) {
      const chunk = await reader?.read()
      done = chunk?.done ?? true
      text += chunk?.value ?? ''
    }
  } catch (error) {
    return { text, error }
  }
  throw new Error('The stream ended without an error.')
}

describe('faults inside the stream', () => {
  test('failure after created', async () => {
    const { upstream, account } = anUpstream()
    account.next({ failAfterCreated: { code: 'server_error', message: 'broken' } })
    const events = await getEvents(await ask(upstream, account))
    expect(getTypes(events)).toEqual(['response.created', 'response.failed'])
    expect(events[1]).toMatchObject({
      sequence_number: 1,
      response: { id: events[0]?.response.id, status: 'failed', error: { code: 'server_error', message: 'broken' } },
    })
  })

  test('failure after output, error event, early end and a missing terminal event', async () => {
    const failAfterCreated = { code: 'server_error', message: 'broken', afterEvents: 4 }
    expect((await typesWith({ failAfterCreated })).at(-2)).toBe('response.content_part.added')
    const errorEvent = { code: 'server_error', message: 'broken', afterEvents: 2 }
    expect(await typesWith({ errorEvent })).toEqual([...CREATED, 'error'])
    expect(await typesWith({ dropAfter: { events: 2, how: 'fin' } })).toEqual(CREATED)
    expect((await typesWith({ omitTerminal: true })).at(-1)).toBe('response.output_item.done')
  })

  test('incomplete keeps the output and names the reason', async () => {
    const { upstream, account } = anUpstream()
    account.next({ incomplete: { reason: 'max_output_tokens' } })
    const last = (await getEvents(await ask(upstream, account))).at(-1)
    expect(last).toMatchObject({
      type: 'response.incomplete',
      response: { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } },
    })
    expect(last?.response.output).toHaveLength(1)
  })

  test('rate limits come first and do not take a sequence number', async () => {
    const { upstream, account } = anUpstream()
    account.setUsage({ secondary: { usedPercent: 7, windowMinutes: 10_080, resetAt: 1_000_000 } })
    account.next({ rateLimitsEvent: true })
    const [first, second] = await getEvents(await ask(upstream, account))
    expect(first).toMatchObject({
      type: 'codex.rate_limits',
      rate_limits: { primary: null, secondary: { used_percent: 7, window_minutes: 10_080, reset_at: 1000 } },
    })
    expect(second).toMatchObject({ type: 'response.created', sequence_number: 0 })
  })

  test('garbage is between whole events', async () => {
    const { upstream, account } = anUpstream()
    account.next({ malformedChunk: { afterEvents: 1, text: 'data: {oops\n\n' } })
    const blocks = (await (await ask(upstream, account)).text()).split('\n\n')
    expect(blocks[1]).toBe('data: {oops')
    expect(blocks[0]).toContain('response.created')
    expect(blocks[2]).toContain('response.in_progress')
  })

  test('delays use the given sleep', async () => {
    const slept: number[] = []
    const upstream = createUpstream({ sleep: async (ms) => void slept.push(ms) })
    const account = upstream.addAccount()
    account.next({ delayFirstEventMs: 500, dripMs: 20 })
    const events = await getEvents(await ask(upstream, account))
    expect(slept).toEqual([500, ...Array(events.length - 1).fill(20)])
  })

  test('a reset breaks the body for the reader after the events before it', async () => {
    const { upstream, account } = anUpstream()
    account.next({ dropAfter: { events: 2, how: 'reset' } })
    const { text, error } = await readUntilError(await ask(upstream, account))
    expect(Array.from(text.matchAll(/^event: (.*)$/gm), ([, type]) => type)).toEqual(CREATED)
    expect(error).toMatchObject({ name: 'TypeError', code: 'ECONNRESET' })
    expect(upstream.requests).toMatchObject([{ eventsSent: 2, finished: false, aborted: false }])
    expect(upstream.openStreams).toBe(0)
  })

  test('a reset before the headers rejects, in process and over a socket', async () => {
    const { upstream, account } = anUpstream()
    account.always({ reset: true })
    const { url, stop } = upstream.listen()
    for (const at of [undefined, url])
      expect(await ask(upstream, account, at ? { at } : {}).catch((error: unknown) => error)).toMatchObject({
        name: 'TypeError',
        code: 'ECONNRESET',
      })
    await stop()
  })
})

describe('the reader', () => {
  test('sets the pace in process: only requested events are created', async () => {
    const { upstream, account } = anUpstream()
    account.next({ manyEvents: { count: 100_000, bytes: 50 } })
    const reader = (await ask(upstream, account)).body?.getReader()
    for (let index = 0; index < 5; index += 1) await reader?.read()
    expect(upstream.requests[0]?.eventsSent).toBe(5)
    expect(upstream.openStreams).toBe(1)
    await reader?.cancel()
    expect(upstream.requests).toMatchObject([{ aborted: true, finished: false }])
    expect(upstream.openStreams).toBe(0)
  })

  test('sets the pace over a socket: a stalled one is not buffered endlessly', async () => {
    const { upstream, account } = anUpstream()
    const count = 100_000
    account.next({ manyEvents: { count, bytes: 400 } })
    const { url, stop } = upstream.listen()
    const body = JSON.stringify(aBody())
    const head = Object.entries(getHeaders(account, { 'content-length': String(body.length) }))
    const lines = ['POST /backend-api/codex/responses HTTP/1.1', 'host: upstream.test']
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.pause()
    socket.write([...lines, ...head.map((field) => field.join(': ')), '', body].join('\r\n'))
    const sent = () => upstream.requests[0]?.eventsSent ?? 0
    await until(() => sent() > 0)
    await untilUnchanged(sent)
    expect(sent()).toBeLessThan(count / 2)
    socket.destroy()
    await until(() => upstream.openStreams === 0)
    expect(upstream.requests).toMatchObject([{ aborted: true }])
    await stop()
  })

  test('gets every event of a large stream', async () => {
    const { upstream, account } = anUpstream()
    account.next({ manyEvents: { count: 5000, bytes: 10, perChunk: 64 } })
    const events = await getEvents(await ask(upstream, account))
    expect(getText(events)).toHaveLength(50_000)
    expect(events.at(-1)).toMatchObject({ type: 'response.completed', sequence_number: events.length - 1 })
  })

  test('that disconnects after the terminal event has finished', async () => {
    const { upstream, account } = anUpstream()
    const reader = (await ask(upstream, account)).body?.getReader()
    for (let text = ''; !text.includes('event: response.completed'); )
      text = new TextDecoder().decode((await reader?.read())?.value)
    await reader?.cancel()
    expect(upstream.requests).toMatchObject([{ aborted: false, finished: true }])
  })

  test('that aborts a silent stream gets its own reason', async () => {
    const { upstream, account } = anUpstream()
    account.next({ silence: { afterEvents: 1 } })
    const caller = new AbortController()
    const response = await ask(upstream, account, { signal: caller.signal })
    const outcome = readUntilError(response)
    await until(() => upstream.requests[0]?.eventsSent === 1)
    const reason = new Error('enough')
    caller.abort(reason)
    const { text, error } = await outcome
    expect(text).toContain('response.created')
    expect(error).toBe(reason)
    expect(upstream.requests).toMatchObject([{ aborted: true, finished: false }])
  })

  test('gets the same bytes from a precomputed response', async () => {
    const { upstream, account } = anUpstream()
    const answer = answers.bulk(20, 10, { precomputed: true, perChunk: 8 })
    upstream.script(() => answer)
    const texts = [await (await ask(upstream, account)).text(), await (await ask(upstream, account)).text()]
    expect(texts[0]).toBe(texts[1])
    expect(texts[0]?.match(/^event: /gm)).toHaveLength(28)
    expect(upstream.requests).toMatchObject([{ finished: true, eventsSent: 28 }, { finished: true }])
  })
})

describe('manners', () => {
  const mistakes: [name: string, headers: Record<string, string>, sentence: string][] = [
    ['a cookie', { cookie: 'a=b' }, 'the header cookie must not reach the service'],
    ['a client key', { 'x-something': 'sk-clb-abc' }, 'a client API key is in the header x-something'],
    ['a forwarding header', { 'x-forwarded-for': '10.0.0.1' }, 'x-forwarded-for must not reach'],
    ['an edge header', { 'cf-ray': 'x' }, 'cf-ray must not reach'],
    ['an internal header', { 'x-codex-lb-required-capability': 'x' }, 'x-codex-lb-required-capability must not'],
    ['a hop-by-hop header', { connection: 'upgrade' }, 'the hop-by-hop header connection'],
    ['a compressed answer', { 'accept-encoding': 'gzip' }, 'a stream was asked for with accept-encoding gzip'],
    ['a foreign turn state', { 'x-codex-turn-state': 'ts.other.1' }, 'an x-codex-turn-state that it did not issue'],
    ['no user agent', { 'user-agent': '' }, 'there is no user-agent'],
    ["Bun's user agent", { 'user-agent': 'Bun/1.4.5' }, "the user-agent is Bun's own"],
  ]
  test.each(mistakes)('%s is recorded as odd, and only once', async (_name, headers, sentence) => {
    const { upstream, account } = anUpstream()
    await ask(upstream, account, { headers })
    await ask(upstream, account, { headers })
    expect(upstream.oddities).toEqual([expect.stringContaining(sentence)])
  })

  test('headers that Bun adds to a request are recorded in process too', async () => {
    const { upstream, account } = anUpstream()
    const { authorization = '', ...rest } = getHeaders(account)
    const headers = {
      authorization,
      'chatgpt-account-id': rest['chatgpt-account-id'] ?? '',
      accept: 'text/event-stream',
    }
    const init = { method: 'POST', headers, body: JSON.stringify(aBody()) }
    await upstream.fetch('http://upstream.test/backend-api/codex/responses', init)
    expect(upstream.oddities).toEqual([
      expect.stringContaining('accept-encoding gzip, deflate, br, zstd'),
      expect.stringContaining("Bun's own"),
    ])
  })

  test('a token with the id of another account is rejected and recorded as odd', async () => {
    const { upstream, account } = anUpstream()
    const other = upstream.addAccount()
    const response = await ask(upstream, account, { headers: { 'chatgpt-account-id': other.chatgptAccountId } })
    expect(response.status).toBe(401)
    expect(upstream.oddities).toEqual([expect.stringContaining('the chatgpt-account-id of another account')])
  })

  test('its own turn state is echoed and not odd; a lite body without its header is', async () => {
    const { upstream, account } = anUpstream()
    const state = (await ask(upstream, account)).headers.get('x-codex-turn-state') ?? ''
    const again = await ask(upstream, account, { headers: { 'x-codex-turn-state': state } })
    expect(again.headers.get('x-codex-turn-state')).toBe(state)
    expect(upstream.oddities).toEqual([])
    const input = [{ type: 'additional_tools', role: 'developer', tools: [] }, says('hi')]
    await ask(upstream, account, { body: aBody({ input }) })
    expect(upstream.oddities).toEqual([expect.stringContaining('without the responses-lite header')])
  })
})

test('the control routes do over HTTP what the object does in process', async () => {
  const { upstream } = anUpstream()
  const { url, stop } = upstream.listen()
  const send = (path: string, body: unknown) =>
    fetch(`${url}/_sim${path}`, { method: 'POST', body: JSON.stringify(body) })
  const read = async (path: string) => (await fetch(`${url}/_sim${path}`)).json()

  const created = await (await send('/accounts', { id: 'acc-new', email: 'new@example.test', plan: 'pro' })).json()
  expect(JSON.parse(created.authJson).tokens.account_id).toBe('acc-new')
  const account = upstream.accounts[1] as Account
  await send('/accounts/acc-new/faults', { next: [{ status: 500 }], always: { status: 503 } })
  const statuses = [await ask(upstream, account, { at: url }), await ask(upstream, account, { at: url })]
  expect(statuses.map(({ status }) => status)).toEqual([500, 503])
  await send('/accounts/acc-new/faults', { always: null })
  await send('/usage/acc-new', { primary: { usedPercent: 9, windowMinutes: 300, resetAt: 1_000_000 } })
  expect((await get(upstream, account, '/backend-api/wham/usage')).status).toBe(200)
  expect((await ask(upstream, account, { at: url })).headers.get('x-codex-primary-used-percent')).toBe('9')
  await send('/answer', answers.text('from afar'))
  expect(getText(await getEvents(await ask(upstream, account, { at: url })))).toBe('from afar')

  expect(await read('/requests')).toHaveLength(5)
  expect(await read('/oddities')).toEqual([])
  expect(await read('/stats')).toMatchObject({ requests: 5, streams: 2, peakStreams: 1 })
  await send('/reset', null)
  expect(await read('/requests')).toEqual([])
  expect((await send('/accounts/nobody/faults', {})).status).toBe(404)
  await stop()
})
