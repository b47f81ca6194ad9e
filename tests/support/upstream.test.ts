/** The stand-in upstream rejects what ChatGPT rejects. Without this, tests of what Sluice sends would prove nothing. */
import { describe, expect, test } from 'bun:test'
import type { Account } from './upstream/accounts.ts'
import { createUpstream, type Upstream } from './upstream/app.ts'
import { type Ask, aBody, ask, getEvents, refresh, says } from './upstream/client.ts'
import type { Json } from './upstream/script.ts'

const NOW = Date.UTC(2026, 10, 20)

function anUpstream(): { upstream: Upstream; account: Account } {
  const upstream = createUpstream({ now: () => NOW })
  return { upstream, account: upstream.addAccount({ email: 'ada@example.test' }) }
}

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
})

describe('tokens', () => {
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
})
