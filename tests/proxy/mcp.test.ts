/** The MCP server at `/mcp`, through the SDK's own client. */
import { describe, expect, test } from 'bun:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { NewKey } from '../../src/model/keys/key-input.ts'
import { fetchCatalogs } from '../spec/catalog.ts'
import { codexBody, getAnswer, type TestApp, testApp } from '../support/app.ts'
import { faults } from '../support/upstream/faults.ts'

const URL_OF_APP = 'http://localhost:2455/mcp'

/** The client's requests reach the app without a network. */
const connect = async (app: TestApp, key: string) => {
  const send = (url: string | URL, init: RequestInit = {}) =>
    app.ask(`${init.method ?? 'GET'} ${new URL(url).pathname}`, {
      headers: Object.fromEntries(new Headers(init.headers)),
      ...(init.body && { body: init.body }),
    })
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(
    new StreamableHTTPClientTransport(new URL(URL_OF_APP), {
      fetch: send,
      requestInit: { headers: { authorization: `Bearer ${key}` } },
    }),
  )
  const call = async (name: string, args: Record<string, unknown> = {}) => {
    const result = await client.callTool({ name, arguments: args })
    const [part] = result.content as { type: string; text: string }[] // as: tools answer with text
    const value: Record<string, unknown> = result.isError ? { error: part?.text } : JSON.parse(part?.text ?? '')
    if (!result.isError) expect(result.structuredContent).toEqual(value)
    return value
  }
  return { client, call }
}

const open = async (input: Partial<NewKey> = {}) => {
  const app = await testApp({ accounts: [{ models: ['gpt-5.5', 'gpt-6-sol'] }] })
  await fetchCatalogs(app)
  const { key } = await app.key(input)
  const turn = (text = 'hello') =>
    getAnswer(app, 'POST /backend-api/codex/responses', {
      json: codexBody(text),
      headers: { authorization: `Bearer ${key}` },
    })
  return { app, key, turn, ...(await connect(app, key)) }
}

describe('the tools', () => {
  test('are four, all read-only', async () => {
    const { client } = await open()
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(['capacity', 'usage', 'models', 'why_last_request_failed'])
    expect(tools.every(({ annotations }) => annotations?.readOnlyHint === true)).toBe(true)
    expect(tools[0]?.inputSchema.properties).toMatchObject({ model: {}, tokens: {}, within: {} })
    expect(client.getServerCapabilities()).toMatchObject({ tools: {} })
  })

  test('capacity and usage say the same as their routes', async () => {
    const { app, key, call, turn } = await open()
    await turn()
    await app.bindings.ledger.flush()
    const headers = { authorization: `Bearer ${key}` }
    const get = async (path: string) => (await app.ask(`GET ${path}`, { headers })).json()
    expect(await call('capacity', { model: 'gpt-5.5', tokens: 500 })).toEqual(
      await get('/v1/capacity?model=gpt-5.5&tokens=500'),
    )
    expect(await call('usage')).toEqual(await get('/v1/usage'))
    expect(await call('usage')).toMatchObject({ request_count: 1 })
  })

  test('models are those the key may use', async () => {
    const { call } = await open({ allowedModels: ['gpt-6-sol'] })
    expect(await call('models')).toMatchObject({ object: 'list', data: [{ id: 'gpt-6-sol' }] })
  })

  test('the last failed request of this key, and none of another one', async () => {
    const { app, call, turn } = await open()
    expect(await call('why_last_request_failed')).toEqual({ request: null, succeeded_since: 0 })
    app.members[0]?.sim.next(faults.usageLimit({ resetsAt: app.clock.now() + 60_000 }))
    const failed = await turn('first')
    expect(failed.status).toBe(429)
    const seen = await call('why_last_request_failed')
    expect(seen).toMatchObject({
      request: { model: 'gpt-5.5', http_status: 429, error_code: 'usage_limit_reached', accounts_tried: 1 },
      succeeded_since: 0,
    })
    expect(JSON.parse(failed.text).error.message).toBe((seen.request as { error_message: string }).error_message)
    const other = await connect(app, (await app.key()).key)
    expect(await other.call('why_last_request_failed')).toMatchObject({ request: null })
    await app.clock.advance('2m')
    app.bindings.pool.tick()
    expect((await turn('second')).status).toBe(200)
    expect(await call('why_last_request_failed')).toMatchObject({
      request: { http_status: 429 },
      succeeded_since: 1,
    })
  })

  test('a wrong argument is an error that the client can read', async () => {
    const { call } = await open()
    expect((await call('capacity', { tokens: -5 })).error).toContain('tokens')
  })
})

describe('the transport', () => {
  test('a key is required', async () => {
    const app = await testApp()
    for (const headers of [{}, { authorization: 'Bearer sk-clb-wrong' }] as Record<string, string>[]) {
      const response = await app.ask('POST /mcp', { json: { jsonrpc: '2.0', id: 1, method: 'ping' }, headers })
      expect([response.status, ((await response.json()) as { error: { code: string } }).error.code]).toEqual([
        401,
        'invalid_api_key',
      ])
    }
  })

  test('a key that was disabled stops working with the next call', async () => {
    const { app, key, call } = await open()
    await call('usage')
    app.sqlite.run('UPDATE api_keys SET is_active = 0')
    await app.restart()
    expect(
      await call('usage').then(
        () => null,
        (error) => error.code,
      ),
    ).toBe(401)
    expect(key).toStartWith('sk-')
  })

  test.each(['GET', 'DELETE'])('%s is 405, as there are no sessions', async (method) => {
    const { app, key } = await open()
    const response = await app.ask(`${method} /mcp`, {
      headers: { authorization: `Bearer ${key}`, accept: 'text/event-stream' },
    })
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST'])
  })

  test.each([
    ['not JSON', 'hello', 400],
    ['not JSON-RPC', '{"a":1}', 400],
    ['a method that does not exist', '{"jsonrpc":"2.0","id":1,"method":"tools/delete"}', 200],
  ])('%s is answered as JSON-RPC error', async (_what, body, status) => {
    const { app, key } = await open()
    const accept = 'application/json, text/event-stream'
    const response = await app.ask('POST /mcp', { body, headers: { authorization: `Bearer ${key}`, accept } })
    expect(response.status).toBe(status)
    expect(await response.json()).toMatchObject({ jsonrpc: '2.0', error: { code: expect.any(Number) } })
  })
})
