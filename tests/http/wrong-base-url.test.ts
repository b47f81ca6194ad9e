/** A model client without the base path gets the right base URL in its error format; browsers still get their page. */
import { describe, expect, test } from 'bun:test'
import { isForGateway } from '../../src/routes/app.ts'
import { testApp } from '../support/app.ts'

const V1 = 'http://localhost:2455/v1'
const NATIVE = 'http://localhost:2455/backend-api/codex'

const asked = async (route: string, headers: Record<string, string> = {}) => {
  const { ask } = await testApp()
  const json = route.startsWith('POST') ? { model: 'gpt-5.5', input: 'hello' } : undefined
  const response = await ask(route, { json, headers: { accept: 'application/json', ...headers } })
  const text = await response.text()
  return { status: response.status, type: response.headers.get('content-type') ?? '', text }
}

const getError = (text: string) => (JSON.parse(text) as { error: Record<string, unknown> }).error

describe('names the base URL and the intended address', () => {
  test.each([
    ['POST /responses', V1, '/v1/responses'],
    ['POST /responses/', V1, '/v1/responses'],
    ['POST /chat/completions', V1, '/v1/chat/completions'],
    ['GET /models', V1, '/v1/models'],
    ['GET /models/gpt-5.5', V1, '/v1/models/gpt-5.5'],
    ['GET /v1/v1/models', V1, '/v1/models'],
    ['POST /v1/v1/chat/completions', V1, '/v1/chat/completions'],
    ['POST /v1/chat/completions/', V1, '/v1/chat/completions'],
    ['POST /v1/responses/compact/', V1, '/v1/responses/compact'],
    ['POST /api/v1/chat/completions', V1, '/v1/chat/completions'],
    ['POST //v1/chat/completions', V1, '/v1/chat/completions'],
    ['POST /v1/chat/completions/chat/completions', V1, '/v1/chat/completions'],
    ['POST /codex/responses', NATIVE, '/backend-api/codex/responses'],
    ['GET /backend-api/models', NATIVE, '/backend-api/codex/models'],
    ['POST /backend-api/codex/responses/responses', NATIVE, '/backend-api/codex/responses'],
  ])('%s', async (route, base, meant) => {
    const { status, text } = await asked(route)
    expect(status).toBe(404)
    const error = getError(text)
    expect(error).toMatchObject({ type: 'invalid_request_error', code: 'not_found', param: null })
    expect(error.message).toEndWith(`Set the base URL of the client to ${base}.`)
    expect(error.message).toContain(`${new URL(base).origin}${meant} `)
  })

  test.each([
    ['POST /messages', '/v1/messages'],
    ['POST /v1/v1/messages', '/v1/messages'],
    ['POST /v1/messages/v1/messages', '/v1/messages'],
    ['POST /backend-api/codex/v1/messages', '/v1/messages'],
    ['POST /v1/v1/messages/count_tokens', '/v1/messages/count_tokens'],
  ])('%s, with a status for which Claude Code shows the message', async (route, meant) => {
    const { status, text } = await asked(route, { 'anthropic-version': '2023-06-01' })
    expect(status).toBe(405)
    const end = `Use http://localhost:2455${meant} instead. Set the base URL of the client to http://localhost:2455.`
    expect(getError(text).message).toBe(`${route} does not exist. ${end}`)
  })

  test('of the native client, recognized by its body', async () => {
    const { text } = await asked('POST /responses', { originator: 'codex_cli_rs' })
    expect(getError(text).message).toEndWith(`Set the base URL of the client to ${NATIVE}.`)
  })

  test('under the host name the client used', async () => {
    const { ask } = await testApp({ environment: { CODEX_LB_PUBLIC_URL: 'https://sluice.example' } })
    const text = await (await ask('POST /chat/completions', { json: {} })).text()
    expect(getError(text).message).toContain('https://sluice.example/v1')
  })

  test.each([
    ['POST /openai/v1/embeddings', V1],
    ['POST /backend-api/nothing', NATIVE],
    ['POST /api/v1/audio/speech', V1],
  ])('%s: only the base URL if the intended route is unknown', async (route, base) => {
    const { status, text } = await asked(route)
    expect(status).toBe(404)
    expect(getError(text).message).toEndWith(` does not exist. Check the path. The base URL is ${base}.`)
  })

  test.each([
    'POST /v1/threads',
    'GET /v1/nothing',
    'PUT /v1/models',
    'GET /v1',
    'GET /v1/messages',
    'PUT /v1/messages/count_tokens',
    'POST /v1/files',
    'POST /backend-api/codex/nothing',
    'DELETE /backend-api/codex/models',
  ])('%s: not the base URL it already has', async (route) => {
    const { status, text } = await asked(route)
    expect([status, getError(text).message]).toEqual([404, `${route} does not exist. Check the method and the path.`])
  })

  test('a long path is not repeated', async () => {
    const { text } = await asked(`GET /v1/${'x'.repeat(5000)}`)
    expect(text.length).toBeLessThan(500)
  })
})

describe('does not affect the dashboard', () => {
  test.each(['GET /models', 'GET /responses', 'GET /nothing', 'GET /chat/completions'])(
    '%s of a browser',
    async (route) => {
      const { status, type } = await asked(route, { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' })
      expect(status).toBe(404)
      expect(type).toContain('text/html')
    },
  )

  test.each([
    'GET /nothing',
    'POST /api/nothing',
    'GET /settings/models',
    'GET /my-responses',
    'GET /api/responses/x/y',
  ])('%s of a script', async (route) => {
    const error = getError((await asked(route)).text)
    expect(error).toEqual({ code: 'not_found', message: expect.any(String) })
  })

  test('of existing routes', async () => {
    for (const path of ['/logs', '/accounts', '/api/settings']) expect((await asked(`GET ${path}`)).status).toBe(200)
    expect(isForGateway('http://localhost:2455/responses')).toBe(false)
  })
})
