/** Source models in the lists for clients. */
import { describe, expect, test } from 'bun:test'
import { fetchCatalogs, nativeModels, publicModels } from '../../spec/catalog.ts'
import { testApp } from '../../support/app.ts'
import { addSource, disableSource } from '../../support/source/add.ts'

const POOLED = 'gpt-5.5'
const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

test('`/v1/models` has them after those of the pool, owned by their source', async () => {
  const app = await testApp()
  await fetchCatalogs(app)
  await addSource(app, {
    models: [POOLED, { model: 'llama-4', displayName: 'Llama 4', contextWindow: 32_000, supportsVision: true }],
  })
  const models = await publicModels(app)
  expect(models.at(-1)).toMatchObject({
    id: 'llama-4',
    owned_by: 'Local',
    context_length: 32_000,
    supports_vision: true,
    api_types: ['chat_completions', 'responses', 'audio_transcriptions', 'embeddings'],
    metadata: { display_name: 'Llama 4' },
  })
  expect(models.filter(({ id }) => id === POOLED)).toMatchObject([{ owned_by: 'sluice' }])
  const one = await app.ask('GET /v1/models/llama-4')
  expect(await one.json()).toEqual(models.at(-1))
})

test('a disabled source is not listed', async () => {
  const app = await testApp()
  await fetchCatalogs(app)
  const { id } = await addSource(app)
  expect((await publicModels(app)).map((model) => model.id)).toContain('llama-4')
  await disableSource(app, id)
  expect((await publicModels(app)).map((model) => model.id)).not.toContain('llama-4')
  expect((await app.ask('GET /v1/models/llama-4')).status).toBe(404)
})

describe('the native catalog', () => {
  test('has those that stream Responses with tools, with fields every client needs', async () => {
    const app = await testApp()
    await fetchCatalogs(app)
    await addSource(app, {
      name: 'Chat only',
      supportsResponses: false,
      models: ['chat-model'],
    })
    await addSource(app, {
      models: [
        { model: 'llama-4', contextWindow: 32_000, rawMetadataJson: '{"base_instructions":"Be kind.","slug":"x"}' },
        { model: 'no-tools', supportsTools: false },
        { model: 'no-stream', supportsStreaming: false },
      ],
    })
    const models = await nativeModels(app)
    expect(
      models.map(({ slug }) => slug).filter((slug) => !slug.startsWith('gpt') && !slug.startsWith('codex')),
    ).toEqual(['llama-4'])
    expect(models.at(-1)).toMatchObject({
      slug: 'llama-4',
      context_window: 32_000,
      max_context_window: 32_000,
      base_instructions: 'Be kind.',
      visibility: 'list',
      supported_reasoning_levels: [],
      shell_type: 'unified_exec',
      truncation_policy: { mode: 'tokens', limit: 10_000 },
    })
  })

  test('is available without any account', async () => {
    const app = await testApp({ accounts: 0 })
    await addSource(app)
    expect((await nativeModels(app)).map(({ slug }) => slug)).toEqual(['llama-4'])
  })
})

test('a key sees the models it can use', async () => {
  const app = await testApp()
  await fetchCatalogs(app)
  const { id } = await addSource(app, { name: 'Alpha', models: ['llama-4', POOLED] })
  await addSource(app, { name: 'Beta', models: ['mistral'] })
  const names = async (input: Parameters<typeof app.key>[0]) =>
    (await publicModels(app, bearer((await app.key(input)).key))).map((model) => `${model.id} of ${model.owned_by}`)
  expect(await names({ allowedModels: ['llama-4'] })).toEqual(['llama-4 of Alpha'])
  expect(await names({ allowedModels: [POOLED] })).toEqual([`${POOLED} of sluice`])
  const scoped = await names({ assignedSourceIds: [id] })
  expect(scoped).toContain(`${POOLED} of Alpha`)
  expect(scoped).not.toContain(`${POOLED} of sluice`)
  expect(scoped).not.toContain('mistral of Beta')
  expect(await names({ enforcedModel: 'mistral' })).toEqual(['mistral of Beta'])
})
