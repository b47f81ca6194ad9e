/** The stand-in upstream rejects what ChatGPT rejects, fails on command, and records odd requests. */
import { describe, expect, test } from 'bun:test'
import type { Account } from './upstream/accounts.ts'
import { createUpstream, type Upstream } from './upstream/app.ts'
import { type Ask, aBody, ask, get, getEvents, getText, getTypes, refresh, says } from './upstream/client.ts'
import { faults } from './upstream/faults.ts'
import { answers, type Json } from './upstream/script.ts'
import { AUTH_CLAIM, decodeJwt } from './upstream/tokens.ts'

const NOW = Date.UTC(2026, 10, 20)

function anUpstream(): { upstream: Upstream; account: Account } {
  const upstream = createUpstream({ now: () => NOW })
  return { upstream, account: upstream.addAccount({ email: 'ada@example.test' }) }
}

describe('an accepted turn', () => {
  test('is streamed as the full event sequence, numbered, and ends with output and usage', async () => {
    const { upstream, account } = anUpstream()
    const events = await getEvents(await ask(upstream, account))
    expect(getTypes(events)).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ])
    expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, index) => index))
    expect(getText(events)).toBe('Hello from ada@example.test')
    const response = events.at(-1)?.response
    expect(response?.output).toEqual([events.at(-2)?.item])
    expect(response?.usage).toMatchObject({ input_tokens: Math.ceil(JSON.stringify(aBody()).length / 4) })
    expect(upstream.requests).toMatchObject([
      { account: account.chatgptAccountId, status: 200, finished: true, aborted: false, body: aBody() },
    ])
    expect(upstream.openStreams).toBe(0)
    expect(upstream.oddities).toEqual([])
  })

  test('has request id, turn state, and rate headers once the account has usage', async () => {
    const { upstream, account } = anUpstream()
    account.setUsage({ primary: { usedPercent: 12.5, windowMinutes: 300, resetAt: NOW + 9_000_000 } })
    const { headers } = await ask(upstream, account)
    expect(headers.get('x-request-id')).toStartWith('req_')
    expect(headers.get('x-codex-turn-state')).toStartWith(`ts.${account.chatgptAccountId}.`)
    expect(headers.get('x-codex-primary-used-percent')).toBe('12.5')
    expect(headers.get('x-codex-primary-reset-at')).toBe(String((NOW + 9_000_000) / 1000))
    expect(headers.get('x-codex-secondary-used-percent')).toBeNull()
  })

  test('runs a command in the tool of the offered kind and quotes its output afterwards', async () => {
    const { upstream, account } = anUpstream()
    const lite: Json = {
      type: 'additional_tools',
      role: 'developer',
      tools: [{ type: 'namespace', name: 'functions', tools: [{ type: 'custom', name: 'exec' }] }],
    }
    const headers = { 'x-openai-internal-codex-responses-lite': 'true' }
    const input = [lite, says('run: echo "hi"')]
    const first = await getEvents(
      await ask(upstream, account, { headers, body: aBody({ model: 'gpt-6.1-sol', input }) }),
    )
    const call = first.at(-2)?.item as Json
    expect(call).toMatchObject({ type: 'custom_tool_call', name: 'exec', namespace: 'functions' })
    expect(call.input).toContain('tools.exec_command({cmd: "echo \\"hi\\""})')
    const output = {
      type: 'custom_tool_call_output',
      call_id: call.call_id,
      output: [{ type: 'input_text', text: 'hi' }],
    }
    const body = aBody({ model: 'gpt-6.1-sol', input: [...input, call, output] })
    expect(getText(await getEvents(await ask(upstream, account, { headers, body })))).toBe('The tool said: hi')

    const classic = aBody({
      input: [says('run: ls')],
      tools: [{ type: 'function', name: 'exec_command', parameters: {} }],
    })
    const second = await getEvents(await ask(upstream, account, { body: classic }))
    expect(second.at(-2)?.item).toMatchObject({ type: 'function_call', arguments: '{"cmd":"ls"}' })
    expect(upstream.oddities).toEqual([])
  })

  test('can be scripted', async () => {
    const { upstream, account } = anUpstream()
    upstream.script((turn) =>
      turn.model === 'gpt-5.5' ? answers.bulk(3, 5, { usage: { inputTokens: 7, cachedTokens: 2 } }) : null,
    )
    const events = await getEvents(await ask(upstream, account))
    expect(getText(events)).toBe('x'.repeat(15))
    expect(events.at(-1)?.response.usage).toMatchObject({
      input_tokens: 7,
      input_tokens_details: { cached_tokens: 2 },
      total_tokens: 11,
    })
    upstream.script(null)
    expect(getText(await getEvents(await ask(upstream, account)))).toStartWith('Hello')
  })
})

describe('a rejected turn', () => {
  const refusals: [name: string, status: number, message: string, Ask][] = [
    ['no stream', 400, 'Stream must be set to true', { body: aBody({ stream: false }) }],
    ['stored', 400, 'Store must be set to false', { body: aBody({ store: true }) }],
    ['input as a string', 400, 'Input must be a list', { body: aBody({ input: 'hello' }) }],
    ['unknown model', 400, "The 'gpt-x' model is not supported", { body: aBody({ model: 'gpt-x' }) }],
    ['a model of a higher plan', 400, "The 'gpt-6-astra' model is not", { body: aBody({ model: 'gpt-6-astra' }) }],
    ['previous response', 400, 'previous_response_id', { body: aBody({ previous_response_id: 'resp_1' }) }],
    ['no instructions', 400, 'Instructions are required', { body: aBody({ instructions: '' }) }],
    ['system role', 400, 'System messages', { body: aBody({ input: [{ role: 'system', content: 'x' }] }) }],
    ['accepts JSON only', 400, 'text/event-stream', { headers: { accept: 'application/json' } }],
    ['not JSON by type', 415, 'content type', { headers: { 'content-type': 'text/plain' } }],
    ['no token', 401, 'Unauthorized', { headers: { authorization: '' } }],
    ['a foreign token', 401, 'Unauthorized', { headers: { authorization: 'Bearer sk-1' } }],
    [
      'an output without its call',
      400,
      'No tool call found',
      { body: aBody({ input: [{ type: 'function_call_output', call_id: 'call_1', output: '' }] }) },
    ],
    [
      'a compaction trigger that is not last',
      400,
      'compaction_trigger',
      { body: aBody({ input: [{ type: 'compaction_trigger' }, says('more')] }) },
    ],
    ...[
      { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: null },
      { type: 'web_search_call', id: 'ws_1', status: 'completed' },
      { type: 'image_generation_call', id: 'ig_1', result: null },
      { type: 'item_reference', id: 'msg_1' },
      { type: undefined, id: 'msg_1' },
    ].map((item): [string, number, string, Ask] => [
      `the id of a ${item.type} and nothing else`,
      404,
      `Item with id '${item.id}' not found`,
      { body: aBody({ input: [item, says('more')] }) },
    ]),
    ...[
      { type: 'message', id: 'chatcmpl-1', role: 'assistant', content: 'x' },
      { type: 'function_call', id: 'toolu_1', call_id: 'call_1', name: 'f', arguments: '' },
    ].map((item): [string, number, string, Ask] => [
      `a foreign id of a ${item.type}`,
      400,
      'Expected an ID that begins with',
      { body: aBody({ input: [item] }) },
    ]),
    ['an empty message', 400, 'content', { body: aBody({ input: [{ role: 'user', content: [] }] }) }],
    ...[{}, { parameters: null }].map((parameters): [string, number, string, Ask] => [
      `a function of ${JSON.stringify(parameters)}`,
      400,
      'tools[0].parameters',
      { body: aBody({ tools: [{ type: 'function', name: 'f', ...parameters }] }) },
    ]),
    [
      'a format without its schema',
      400,
      'text.format.schema',
      { body: aBody({ text: { format: { type: 'json_schema', name: 'x' } } }) },
    ],
  ]
  test.each(refusals)('%s', async (_name, status, message, options) => {
    const { upstream, account } = anUpstream()
    const response = await ask(upstream, account, options)
    expect(response.status).toBe(status)
    expect(await response.text()).toContain(message)
    expect(upstream.requests).toMatchObject([{ status, finished: true }])
  })

  const unsupported =
    'max_output_tokens max_completion_tokens temperature top_p metadata user truncation safety_identifier prompt_cache_retention context_management'
  test.each(unsupported.split(' '))('the parameter %s', async (name) => {
    const { upstream, account } = anUpstream()
    const response = await ask(upstream, account, { body: aBody({ [name]: 1 }) })
    expect([response.status, await response.json()]).toEqual([400, { detail: `Unsupported parameter: ${name}` }])
  })

  test('a developer message counts as instructions', async () => {
    const { upstream, account } = anUpstream()
    const input = [{ type: 'message', role: 'developer', content: 'Be brief.' }, says('hello')]
    const response = await ask(upstream, account, { body: aBody({ instructions: undefined, input }) })
    expect(response.status).toBe(200)
  })
})

describe('ciphertext', () => {
  const wanted = { include: ['reasoning.encrypted_content'] }

  test('of an account is accepted by that account only', async () => {
    const { upstream, account } = anUpstream()
    const other = upstream.addAccount()
    const events = await getEvents(await ask(upstream, account, { body: aBody(wanted) }))
    const reasoning = events.find(({ type }) => type === 'response.output_item.done')?.item as Json
    expect(reasoning.type).toBe('reasoning')
    const body = aBody({ ...wanted, input: [reasoning, says('more')] })
    expect((await ask(upstream, account, { body })).status).toBe(200)
    const refused = await ask(upstream, other, { body })
    expect(refused.status).toBe(400)
    expect(await refused.json()).toMatchObject({ error: { code: 'invalid_encrypted_content' } })
  })

  test('of a compaction: exactly one item, by trigger or by the unary route until that is retired', async () => {
    const { upstream, account } = anUpstream()
    const body = aBody({ ...wanted, input: [says('hello'), { type: 'compaction_trigger' }] })
    const events = await getEvents(await ask(upstream, account, { body }))
    const items = events.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item)
    expect(items).toMatchObject([{ type: 'compaction' }])
    expect(items[0]?.encrypted_content).toStartWith(`enc.${account.chatgptAccountId}.`)

    const path = '/backend-api/codex/responses/compact'
    const unary = { model: 'gpt-5.5', instructions: 'x', input: [says('hello')] }
    const answer = await (await ask(upstream, account, { path, body: unary })).json()
    expect(answer).toMatchObject({ object: 'response.compaction', output: [says('hello'), { type: 'compaction' }] })
    upstream.compactRetired = true
    expect((await ask(upstream, account, { path, body: unary })).status).toBe(404)
  })
})

describe('tokens', () => {
  test('look like those of a login', () => {
    const { account } = anUpstream()
    const file = JSON.parse(account.authJson())
    expect(file).toMatchObject({ OPENAI_API_KEY: null, tokens: { account_id: account.chatgptAccountId } })
    const claims = decodeJwt(file.tokens.id_token)
    expect(claims).toMatchObject({
      email: 'ada@example.test',
      [AUTH_CLAIM]: { chatgpt_account_id: account.chatgptAccountId, chatgpt_plan_type: 'plus' },
    })
    expect(Number(claims.exp) * 1000).toBeGreaterThan(NOW)
  })

  test('an expired access token is rejected until it is refreshed', async () => {
    const { upstream, account } = anUpstream()
    account.expireAccessToken()
    const refused = await ask(upstream, account)
    expect([refused.status, await refused.json()]).toMatchObject([401, { error: { code: 'token_expired' } }])
    const before = account.refreshToken
    const tokens = await (await refresh(upstream, before)).json()
    expect(tokens).toMatchObject({ access_token: account.accessToken, refresh_token: account.refreshToken })
    expect(account.refreshToken).not.toBe(before)
    expect((await ask(upstream, account)).status).toBe(200)
  })

  test('a token past its exp claim is rejected', async () => {
    let now = NOW
    const upstream = createUpstream({ now: () => now })
    const account = upstream.addAccount({ accessTokenTtlMs: 1000 })
    expect((await ask(upstream, account)).status).toBe(200)
    now += 1000
    expect((await ask(upstream, account)).status).toBe(401)
  })

  test('reusing a refresh token ends the account', async () => {
    const { upstream, account } = anUpstream()
    const spent = account.refreshToken
    await refresh(upstream, spent)
    const reused = await refresh(upstream, spent)
    expect([reused.status, await reused.json()]).toMatchObject([401, { error: { code: 'refresh_token_reused' } }])
    expect((await refresh(upstream, account.refreshToken)).status).toBe(401)
    expect((await ask(upstream, account)).status).toBe(401)
    account.signInAgain()
    expect((await ask(upstream, account)).status).toBe(200)
  })

  test('a wrong client, an unknown token and another grant are rejected without effect', async () => {
    const { upstream, account } = anUpstream()
    expect((await refresh(upstream, account.refreshToken, { client_id: 'app_other' })).status).toBe(401)
    expect((await refresh(upstream, 'rt_unknown')).status).toBe(401)
    expect((await refresh(upstream, account.refreshToken, { grant_type: 'password' })).status).toBe(400)
    expect((await refresh(upstream, account.refreshToken)).status).toBe(200)
  })

  test('a revoked account is rejected everywhere with its code', async () => {
    const { upstream, account } = anUpstream()
    account.revoke('account_deactivated')
    for (const response of [
      await ask(upstream, account),
      await get(upstream, account, '/backend-api/wham/usage'),
      await refresh(upstream, account.refreshToken),
    ])
      expect([response.status, await response.json()]).toMatchObject([401, { error: { code: 'account_deactivated' } }])
  })
})

describe('models and usage', () => {
  test('the catalog varies by plan and by client version, and its tag with it', async () => {
    const { upstream, account } = anUpstream()
    const pro = upstream.addAccount({ plan: 'pro' })
    const read = async (who: Account, version: string) => {
      const response = await get(upstream, who, `/backend-api/codex/models?client_version=${version}`)
      const { models } = await response.json()
      return { slugs: models.map(({ slug }: Json) => slug), etag: response.headers.get('etag'), models }
    }
    const current = await read(account, '0.169.0')
    expect(current.slugs).toEqual(['gpt-6.1-sol', 'gpt-6.1-terra', 'gpt-6-luna', 'gpt-5.5', 'codex-auto-review'])
    expect(current.models[0]).toMatchObject({ context_window: 272_000, max_context_window: 872_000 })
    expect((await read(pro, '0.169.0')).slugs).toContain('gpt-6-astra')
    const old = await read(account, '0.118.0')
    expect(old.slugs).toEqual(['gpt-5.5', 'codex-auto-review'])
    expect(old.etag).not.toBe(current.etag)
    const { headers } = await ask(upstream, account)
    expect(headers.get('x-models-etag')).toBe(current.etag)
    expect((await get(upstream, account, '/backend-api/codex/models')).status).toBe(400)
  })

  test('usage is the document the client parses', async () => {
    const { upstream, account } = anUpstream()
    const resetAt = NOW + 60_000
    account.setUsage({
      primary: { usedPercent: 100, windowMinutes: 300, resetAt },
      secondary: { usedPercent: 40, windowMinutes: 10_080, resetAt },
    })
    expect(await (await get(upstream, account, '/backend-api/wham/usage')).json()).toMatchObject({
      plan_type: 'plus',
      rate_limit: {
        allowed: false,
        limit_reached: true,
        primary_window: {
          used_percent: 100,
          limit_window_seconds: 18_000,
          reset_after_seconds: 60,
          reset_at: resetAt / 1000,
        },
        secondary_window: { used_percent: 40, limit_window_seconds: 604_800 },
      },
    })
    const unknown = await get(upstream, account, '/backend-api/other')
    expect([unknown.status, await unknown.json()]).toEqual([404, { detail: 'Not Found' }])
  })
})

describe('faults before the stream', () => {
  test('are served for one request each, in order, before a permanent one', async () => {
    const { upstream, account } = anUpstream()
    account.next(faults.serverError(), faults.rateLimited(3))
    account.always(faults.overloaded())
    const first = await ask(upstream, account)
    const second = await ask(upstream, account)
    expect([first.status, second.status, second.headers.get('retry-after')]).toEqual([500, 429, '3'])
    expect((await ask(upstream, account)).status).toBe(503)
    expect((await ask(upstream, account)).status).toBe(503)
    account.always(null)
    expect((await ask(upstream, account)).status).toBe(200)
  })

  test('hit only the route they name', async () => {
    const { upstream, account } = anUpstream()
    account.always({ on: 'usage', status: 200, body: 'not json' })
    account.next({ on: 'token', status: 500, body: {} })
    expect(await (await get(upstream, account, '/backend-api/wham/usage')).text()).toBe('not json')
    expect((await refresh(upstream, account.refreshToken)).status).toBe(500)
    expect((await refresh(upstream, account.refreshToken)).status).toBe(200)
    expect((await ask(upstream, account)).status).toBe(200)
  })

  test('a usage limit names its reset and carries the rate headers', async () => {
    const { upstream, account } = anUpstream()
    account.setUsage({ primary: { usedPercent: 100, windowMinutes: 300, resetAt: NOW + 1000 } })
    account.next(faults.usageLimit({ resetsAt: NOW + 1000 }))
    const response = await ask(upstream, account)
    expect(response.headers.get('x-codex-primary-used-percent')).toBe('100')
    expect([response.status, await response.json()]).toMatchObject([
      429,
      { error: { type: 'usage_limit_reached', plan_type: 'plus', resets_at: NOW / 1000 + 1 } },
    ])
  })

  test('a delay uses the given sleep and composes with a status', async () => {
    const slept: number[] = []
    const upstream = createUpstream({ now: () => NOW, sleep: async (ms) => void slept.push(ms) })
    const account = upstream.addAccount()
    account.next({ delayHeadersMs: 50, ...faults.badGatewayHtml() })
    const response = await ask(upstream, account)
    expect([response.status, response.headers.get('content-type')]).toEqual([502, 'text/html; charset=UTF-8'])
    expect(slept).toEqual([50])
  })

  test('a client that disconnects before the headers gets its own reason and is recorded as disconnected', async () => {
    const waiting = Promise.withResolvers<void>()
    const sleep = () => {
      waiting.resolve()
      return new Promise<void>(() => {})
    }
    const upstream = createUpstream({ sleep })
    const account = upstream.addAccount()
    const caller = new AbortController()
    account.next({ delayHeadersMs: 1000 })
    const outcome = ask(upstream, account, { signal: caller.signal }).catch((error: unknown) => error)
    await waiting.promise
    const reason = new Error('enough')
    caller.abort(reason)
    expect(await outcome).toBe(reason)
    expect(upstream.requests).toMatchObject([{ aborted: true, finished: false, status: null }])
  })
})
