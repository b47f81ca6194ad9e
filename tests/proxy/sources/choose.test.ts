/** Which source serves a request, and when the pool does. */
import { describe, expect, test } from 'bun:test'
import { fetchCatalogs } from '../../spec/catalog.ts'
import { codexBody, expectNothingLeft, getAnswer, type TestApp, testApp } from '../../support/app.ts'
import { addSource, disableSource, dropSource } from '../../support/source/add.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const CHAT = 'POST /v1/chat/completions'
const COMPACT = 'POST /backend-api/codex/responses/compact'
const POOLED = 'gpt-5.5'

const chat = (model: string, more: Record<string, unknown> = {}) => ({
  model,
  messages: [{ role: 'user', content: 'hello' }],
  ...more,
})
const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

/** The name of the source that served it; `pool`: an account. */
const servedBy = async (app: TestApp, json: Record<string, unknown>, headers: Record<string, string> = {}) => {
  const answer = await getAnswer(app, CHAT, { json, headers })
  return answer.status === 200 ? (answer.headers.get('x-sluice-source') ?? 'pool') : answer.status
}

test('a model that an account offers is served by the pool, another one by a source', async () => {
  const app = await testApp()
  await fetchCatalogs(app)
  await addSource(app, { models: [POOLED, 'llama-4'] })
  expect(await servedBy(app, chat(POOLED))).toBe('pool')
  expect(await servedBy(app, chat('llama-4'))).toBe('Local')
  expect(await servedBy(app, chat('LLAMA-4'))).not.toBe('Local')
})

test('without any account, a source serves its models', async () => {
  const app = await testApp({ accounts: 0 })
  await addSource(app)
  expect(await servedBy(app, chat('llama-4'))).toBe('Local')
  expect(await servedBy(app, chat('other'))).toBe(503)
})

test('several sources are used in the order of their names', async () => {
  const app = await testApp()
  await addSource(app, { name: 'Beta' })
  const first = await addSource(app, { name: 'Alpha' })
  expect(await servedBy(app, chat('llama-4'))).toBe('Alpha')
  await disableSource(app, first.id)
  expect(await servedBy(app, chat('llama-4'))).toBe('Beta')
  await dropSource(app, first.id)
  expect(await servedBy(app, chat('llama-4'))).toBe('Beta')
})

test.each([
  ['the source has no chat', { supportsChatCompletions: false }, {}],
  ['the model is disabled', { models: [{ model: 'llama-4', isEnabled: false }] }, {}],
  [
    'the model cannot stream and a stream is wanted',
    { models: [{ model: 'llama-4', supportsStreaming: false }] },
    { stream: true },
  ],
])('a source is skipped when %s', async (_why, fields, more) => {
  const app = await testApp()
  await addSource(app, fields)
  await servedBy(app, chat('llama-4', more))
  expect(app.source.received).toHaveLength(0)
})

test('a busy source is skipped; when all are busy, the client gets 503', async () => {
  const app = await testApp()
  await addSource(app, { name: 'Alpha', maxConcurrency: 1 })
  await addSource(app, { name: 'Beta', maxConcurrency: 1 })
  app.source.fail('hang', { times: 2 })
  const gone = new AbortController()
  const hanging = [1, 2].map(() => app.ask(CHAT, { json: chat('llama-4'), signal: gone.signal }))
  await app.clock.advance(100)
  expect(app.source.received).toHaveLength(2)
  const answer = await getAnswer(app, CHAT, { json: chat('llama-4') })
  expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([503, 'model_source_busy'])
  expect(answer.headers.get('retry-after')).toBe('5')
  expect(await app.rows()).toMatchObject([{ errorCode: 'model_source_busy', sourceId: null }])
  gone.abort()
  await Promise.all(hanging)
  expect(await servedBy(app, chat('llama-4'))).toBe('Alpha')
  await expectNothingLeft(app)
})

describe('a key limited to sources', () => {
  test('is served by them even if an account offers the model, and by no other', async () => {
    const app = await testApp()
    await fetchCatalogs(app)
    await addSource(app, { name: 'Alpha', models: [POOLED, 'llama-4'] })
    const { id } = await addSource(app, { name: 'Beta', models: [POOLED] })
    app.source.state.models.push(POOLED)
    const headers = bearer((await app.key({ assignedSourceIds: [id] })).key)
    expect(await servedBy(app, chat(POOLED), headers)).toBe('Beta')
    expect(await servedBy(app, chat('llama-4'), headers)).not.toBe('Alpha')
    const none = bearer((await app.key({ assignedSourceIds: [] })).key)
    expect(await servedBy(app, chat(POOLED), none)).toBe('pool')
  })

  test('uses the pool for requests a source cannot serve', async () => {
    const app = await testApp()
    await fetchCatalogs(app)
    const { id } = await addSource(app, { models: [POOLED] })
    const headers = bearer((await app.key({ assignedSourceIds: [id] })).key)
    const input = [{ type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'abc' }, ...codexBody().input]
    const answer = await getAnswer(app, NATIVE, { json: codexBody('hello', { input }), headers })
    expect(answer.headers.get('x-sluice-source')).toBeNull()
    expect(app.source.received).toHaveLength(0)
  })
})

test('an allowlist is compared exactly', async () => {
  const app = await testApp()
  await addSource(app, { models: ['llama-4', 'llama-4:70b'] })
  app.source.state.models.push('llama-4:70b')
  const { key } = await app.key({ allowedModels: ['llama-4'] })
  expect(await servedBy(app, chat('llama-4'), bearer(key))).toBe('Local')
  expect(await servedBy(app, chat('llama-4:70b'), bearer(key))).toBe(403)
})

test('compaction of a conversation with a source model is rejected immediately', async () => {
  const app = await testApp()
  await addSource(app)
  const answer = await getAnswer(app, COMPACT, { json: codexBody('hello', { model: 'llama-4' }) })
  expect([answer.status, JSON.parse(answer.text).error.message]).toEqual([
    400,
    expect.stringContaining('cannot compact conversations'),
  ])
  expect(app.upstream.requests).toHaveLength(0)
  await expectNothingLeft(app)
})

test('the restricted pool is never a source', async () => {
  const app = await testApp()
  await addSource(app)
  const headers = { ...bearer((await app.key()).key), 'x-codex-lb-required-capability': 'trusted_cyber' }
  const answer = await getAnswer(app, NATIVE, { json: codexBody('hello', { model: 'llama-4' }), headers })
  expect(answer.status).toBe(400)
  expect(app.source.received).toHaveLength(0)
})
