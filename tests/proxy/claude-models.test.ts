/** Which models serve the Claude names: the setting `claudeModels`, and the choice of a key. */
import { describe, expect, test } from 'bun:test'
import type { ClaudeModels } from '../../db/schema/keys.ts'
import { getAnswer, type TestApp, type TestOptions, testApp } from '../support/app.ts'
import { getFields } from '../support/form.ts'
import { people, problem } from '../support/people.ts'
import { addSource } from '../support/source/add.ts'

const NONE: ClaudeModels = { opus: null, sonnet: null, haiku: null }
const MODELS = ['gpt-5.5', 'gpt-5.4-mini', 'gpt-5.4']
const chosen = (model: string, effort: string | null = null) => ({ model, effort })

const open = (options: TestOptions = {}) => testApp({ accounts: [{ models: MODELS }], ...options })

/** The model and effort the upstream gets. */
const serving = async (
  app: TestApp,
  model: string,
  { key, ...more }: { key?: string; thinking?: object; output_config?: object } = {},
) => {
  const json = { model, max_tokens: 32_000, messages: [{ role: 'user', content: 'hello' }], ...more }
  const headers = key === undefined ? undefined : { 'x-api-key': key }
  const answer = await getAnswer(app, 'POST /v1/messages', { json, headers })
  expect(answer.status).toBe(200)
  const body = JSON.parse(app.upstream.requests.at(-1)!.bodyText)
  return [body.model, body.reasoning?.effort ?? null]
}

const form = (fields: [string, string][]) => ({
  body: new URLSearchParams(fields).toString(),
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
})

type Effort = 'low' | 'medium' | 'high'

const ADAPTIVE = { thinking: { type: 'adaptive' } }

describe('the setting', () => {
  const claudeModels = { ...NONE, opus: chosen('gpt-5.4', 'high'), haiku: chosen('gpt-5.5') }

  test('chooses model and effort; other sizes stay automatic', async () => {
    const app = await open({ settings: { claudeModels } })
    expect(await serving(app, 'claude-opus-5-5', ADAPTIVE)).toEqual(['gpt-5.4', 'high'])
    expect(await serving(app, 'claude-fable-5-2[1m]', ADAPTIVE)).toEqual(['gpt-5.4', 'high'])
    expect(await serving(app, 'claude-haiku-5-5', ADAPTIVE)).toEqual(['gpt-5.5', null])
    expect(await serving(app, 'claude-sonnet-4-5-20250929', ADAPTIVE)).toEqual(['gpt-5.4', null])
    expect(await serving(app, 'claude-gpt-5.4-mini', ADAPTIVE)).toEqual(['gpt-5.4-mini', null])
  })

  test('applies to the next request, to count_tokens and to the listed model', async () => {
    const app = await open()
    const json = { model: 'claude-haiku-5-5', messages: [{ role: 'user', content: 'hello' }] }
    const headers = { 'anthropic-version': '2023-06-01' }
    const nameOf = async () =>
      (await (await app.ask('GET /v1/models/claude-haiku-5-5', { headers })).json()) as { display_name: string }
    const before = await nameOf()
    await app.change({ claudeModels })
    expect(await serving(app, 'claude-haiku-5-5')).toEqual(['gpt-5.5', expect.any(String)])
    expect((await nameOf()).display_name).not.toBe(before.display_name)
    app.bindings.tokenRatios.learn('gpt-5.5', { estimate: 100, actual: 400 })
    app.bindings.tokenRatios.learn('gpt-5.4-mini', { estimate: 100, actual: 100 })
    const count = async () => (await (await app.ask('POST /v1/messages/count_tokens', { json })).json()).input_tokens
    const asOpusModel = await count()
    await app.change({ claudeModels: NONE })
    expect(await count()).toBeLessThan(asOpusModel)
  })

  test('is ignored for a model that no longer exists', async () => {
    const app = await open({ settings: { claudeModels: { ...NONE, opus: chosen('gpt-4.1', 'high') } } })
    expect(await serving(app, 'claude-opus-5-5', ADAPTIVE)).toEqual(['gpt-5.5', null])
  })
})

test('the names of the snippet for Claude Code are served by size', async () => {
  const app = await open()
  expect(await serving(app, 'claude-opus')).toEqual(['gpt-5.5', 'low'])
  expect(await serving(app, 'claude-sonnet')).toEqual(['gpt-5.4', 'low'])
  expect(await serving(app, 'claude-haiku')).toEqual(['gpt-5.4-mini', 'low'])
})

test.each([
  ['claude-gpt-9.9', 404],
  ['claude-gtp-5.5', 404],
  ['claude-llama', 404],
  ['claude', 200],
  ['claude-2.1', 200],
  ['claude-v1', 200],
  ['claude-instant-1.2', 200],
  ['anthropic/claude-opus-9', 200],
  ['claude-3-5-sonnet-latest', 200],
])('the name %s is answered with %d', async (model, status) => {
  const app = await open()
  await serving(app, 'claude-opus') // the catalog is known then
  const json = { model, max_tokens: 1024, messages: [{ role: 'user', content: 'hello' }] }
  expect((await getAnswer(app, 'POST /v1/messages', { json })).status).toBe(status)
})

describe('a key', () => {
  test('overrides the setting for the names it has a choice for', async () => {
    const app = await open({
      settings: { claudeModels: { ...NONE, opus: chosen('gpt-5.4'), haiku: chosen('gpt-5.5') } },
    })
    const { key } = await app.key({ claudeModels: { ...NONE, opus: chosen('gpt-5.4-mini', 'low') } })
    expect(await serving(app, 'claude-opus-5-5', { key, ...ADAPTIVE })).toEqual(['gpt-5.4-mini', 'low'])
    expect(await serving(app, 'claude-haiku-5-5', { key, ...ADAPTIVE })).toEqual(['gpt-5.5', null])
    expect(await serving(app, 'claude-opus-5-5', ADAPTIVE)).toEqual(['gpt-5.4', null])
  })

  test('is served by an allowed model if it may not use the one of the setting', async () => {
    const app = await open({ settings: { claudeModels: { ...NONE, sonnet: chosen('gpt-5.5', 'high') } } })
    const { key } = await app.key({ allowedModels: ['gpt-5.4-mini'] })
    expect(await serving(app, 'claude-sonnet-5-5', { key, ...ADAPTIVE })).toEqual(['gpt-5.4-mini', null])
  })
})

test('an effort of the setting that the key does not allow is left to the client', async () => {
  const app = await open({ settings: { claudeModels: { ...NONE, opus: chosen('gpt-5.4', 'high') } } })
  const { key } = await app.key({ allowedReasoningEfforts: ['low', 'medium'] })
  expect(await serving(app, 'claude-opus-5-5', { key })).toEqual(['gpt-5.4', 'low'])
  const { key: other } = await app.key({ allowedReasoningEfforts: ['high'] })
  expect(await serving(app, 'claude-opus-5-5', { key: other })).toEqual(['gpt-5.4', 'high'])
})

test.each<[Effort[], { thinking?: object; output_config?: object }, Effort | null]>([
  [['medium', 'high'], {}, 'medium'],
  [['high'], { output_config: { effort: 'low' } }, 'high'],
  [['medium', 'high'], { ...ADAPTIVE, output_config: { effort: 'max' } }, 'high'],
  [['medium', 'high'], { ...ADAPTIVE, output_config: { effort: 'low' } }, 'medium'],
  [['medium', 'high'], ADAPTIVE, null],
])('with a key that allows %j, %j gets the effort %j', async (allowedReasoningEfforts, more, effort) => {
  const app = await open()
  await serving(app, 'claude-opus-5-5') // the catalog is known then
  const { key } = await app.key({ allowedReasoningEfforts })
  expect(await serving(app, 'claude-opus-5-5', { key, ...more })).toEqual(['gpt-5.5', effort])
})

describe('without accounts, model sources', () => {
  const MODELS = [
    { model: 'small', inputPer1m: 1, outputPer1m: 2 },
    { model: 'large', inputPer1m: 5, outputPer1m: 20 },
    { model: 'free' },
  ]
  const openWithSource = async (options: TestOptions = {}) => {
    const app = await testApp({ accounts: 0, ...options })
    const vectors = { supportsResponses: false, supportsChatCompletions: false, supportsEmbeddings: true }
    await addSource(app, { name: 'A', models: [{ model: 'vectors', inputPer1m: 90, outputPer1m: 90 }], ...vectors })
    await addSource(app, { name: 'B', models: MODELS, supportsResponses: false })
    app.source.state.models.push(...MODELS.map(({ model }) => model))
    return app
  }
  const servingSource = async (app: TestApp, model: string, key?: string) => {
    const json = { model, max_tokens: 1024, messages: [{ role: 'user', content: 'hello' }] }
    const headers = key === undefined ? undefined : { 'x-api-key': key }
    const { status } = await getAnswer(app, 'POST /v1/messages', { json, headers })
    return [status, app.source.last('/chat/completions')?.body?.model]
  }

  test('serve the Claude names by price', async () => {
    const app = await openWithSource()
    expect(await servingSource(app, 'claude-opus-5-5')).toEqual([200, 'large'])
    expect(await servingSource(app, 'claude-sonnet-5-5')).toEqual([200, 'small'])
    expect(await servingSource(app, 'claude-haiku-5-5')).toEqual([200, 'free'])
    const { key } = await app.key({ allowedModels: ['small'] })
    expect(await servingSource(app, 'claude-opus-5-5', key)).toEqual([200, 'small'])
  })

  test('serve the chosen model', async () => {
    const app = await openWithSource({ settings: { claudeModels: { ...NONE, opus: chosen('free') } } })
    expect(await servingSource(app, 'claude-opus-5-5')).toEqual([200, 'free'])
    const { key } = await app.key({ claudeModels: { ...NONE, opus: chosen('small') } })
    expect(await servingSource(app, 'claude-opus-5-5', key)).toEqual([200, 'small'])
  })

  test('do not serve a name for which a model of accounts is chosen', async () => {
    const app = await openWithSource({ settings: { claudeModels: { ...NONE, opus: chosen('gpt-5.5') } } })
    expect(await servingSource(app, 'claude-opus-5-5')).toEqual([529, undefined])
    const { key } = await app.key({ allowedModels: ['small'] })
    expect(await servingSource(app, 'claude-opus-5-5', key)).toEqual([200, 'small'])
  })

  test('do not serve the names while accounts have models', async () => {
    const app = await open()
    await addSource(app, { models: MODELS })
    expect(await serving(app, 'claude-opus-5-5')).toEqual(['gpt-5.5', 'low'])
    expect(app.source.received).toEqual([])
  })
})

describe('a choice is rejected', () => {
  const CASES = [
    [chosen('gpt-9'), 'There is no model “gpt-9”. Choose from '],
    [chosen('claude-opus-5-5'), 'There is no model “claude-opus-5-5”.'],
    [chosen('gpt-5.5', 'ultra'), 'The model “gpt-5.5” has no effort “ultra”. Choose from low,'],
  ] as const

  test.each(CASES)('%j, in the settings and for a key', async (choice, says) => {
    const app = await open()
    await serving(app, 'claude-opus-5-5') // the catalog is known then
    const admin = await people(app).as('admin')
    const { row } = await app.key()
    const claudeModels = { ...NONE, sonnet: choice }
    for (const [ask, json] of [
      ['PATCH /api/settings', { claudeModels }],
      [`PATCH /api/api-keys/${row.id}`, { claudeModels }],
      ['POST /api/api-keys', { name: 'x', claudeModels }],
    ] as const) {
      const answer = await admin.ask(ask, { json })
      const { error } = await answer.json()
      expect([answer.status, error.param]).toEqual([422, 'claudeModels'])
      expect(error.details.fields.claudeModels).toEqual([expect.stringContaining(says)])
    }
    expect(app.bindings.settings.current().claudeModels).toEqual(NONE)
  })

  test('that the key may not use', async () => {
    const app = await open()
    const admin = await people(app).as('admin')
    const json = { name: 'x', allowedModels: ['gpt-5.4'], claudeModels: { ...NONE, opus: chosen('gpt-5.5') } }
    expect(await problem(await admin.ask('POST /api/api-keys', { json }))).toEqual([422, 'validation_error'])
  })

  test('only when it changes: other fields can be changed after the model is gone', async () => {
    const app = await open({ settings: { claudeModels: { ...NONE, opus: chosen('gpt-4.1') } } })
    await serving(app, 'claude-opus-5-5')
    const admin = await people(app).as('admin')
    const settings = await (await admin.ask('GET /api/settings')).json()
    expect((await admin.ask('PUT /api/settings', { json: { ...settings, resetPercent: 90 } })).status).toBe(200)
  })
})

describe('pages', () => {
  const html = { headers: { accept: 'text/html' } }

  test('the settings show what serves each name now, and save a choice', async () => {
    const app = await open()
    await serving(app, 'claude-opus-5-5')
    const admin = await people(app).as('admin')
    const page = await (await admin.ask('GET /settings/routing', html)).text()
    expect(page).toContain('Claude model names')
    expect(page).toContain('Default: Opus → gpt-5.5 · Sonnet → gpt-5.4 · Haiku → gpt-5.4-mini')
    const fields = getFields(page, 'form-claude').map(([name, value]): [string, string] =>
      name === 'claudeModels.haiku.model'
        ? [name, 'gpt-5.4']
        : name === 'claudeModels.haiku.effort'
          ? [name, 'low']
          : [name, value],
    )
    expect(fields.filter(([name]) => name.startsWith('claudeModels.'))).toHaveLength(6)
    expect((await admin.ask('PATCH /api/settings?section=claude', form(fields))).status).toBe(200)
    expect(app.bindings.settings.current().claudeModels).toEqual({ ...NONE, haiku: chosen('gpt-5.4', 'low') })
    const audit = await (await admin.ask('GET /api/audit-logs?action=settings_updated')).text()
    expect(audit).toContain('claudeModels')
  })

  test.each(['opus', 'haiku'])('an effort without a model for %s is rejected, not dropped', async (size) => {
    const app = await open()
    await serving(app, 'claude-opus-5-5')
    const admin = await people(app).as('admin')
    const { row } = await app.key()
    for (const [ask, page, id] of [
      ['PATCH /api/settings?section=claude', 'GET /settings/routing', 'form-claude'],
      [`PATCH /api/api-keys/${row.id}`, `GET /keys/${row.id}/edit`, 'form-key'],
    ] as const) {
      const fields = getFields(await (await admin.ask(page, html)).text(), id)
      const chosen = fields.map(([name, value]): [string, string] => [
        name,
        name === `claudeModels.${size}.effort` ? 'high' : value,
      ])
      const answer = await admin.ask(ask, form(chosen))
      expect(answer.status).toBe(422)
      const { error } = await answer.json()
      expect(JSON.stringify(error.details.fields)).toContain('Choose a model for')
    }
  })

  test('the form of a key sets the choice, keeps it and clears it', async () => {
    const app = await open()
    await serving(app, 'claude-opus-5-5')
    const admin = await people(app).as('admin')
    const { row } = await app.key()
    const save = async (more: [string, string][]) => {
      const page = await (await admin.ask(`GET /keys/${row.id}/edit`, html)).text()
      const names = new Set(more.map(([name]) => name))
      const kept = getFields(page, 'form-key').filter(([name]) => !names.has(name))
      expect((await admin.ask(`PATCH /api/api-keys/${row.id}`, form([...kept, ...more]))).status).toBe(200)
      return app.bindings.keys.byHash(row.keyHash)?.claudeModels
    }
    const set = { ...NONE, opus: chosen('gpt-5.4', 'medium') }
    expect(
      await save([
        ['claudeModels.opus.model', 'gpt-5.4'],
        ['claudeModels.opus.effort', 'medium'],
      ]),
    ).toEqual(set)
    expect(await save([])).toEqual(set)
    expect(await (await admin.ask(`GET /keys/${row.id}`, html)).text()).toContain('Opus → gpt-5.4 (medium)')
    const automatic: [string, string] = ['claudeModels.opus.model', '']
    expect(await save([automatic, ['claudeModels.opus.effort', '']])).toBeNull()
  })
})
