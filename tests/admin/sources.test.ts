/** `/api/model-sources/`: model sources over the JSON API. */
import { describe, expect, test } from 'bun:test'
import { onChange } from '../../db/commit.ts'
import { recordHealth } from '../../src/model/sources/source-health.ts'
import { testApp } from '../support/app.ts'
import { people } from '../support/people.ts'
import type { SourceFault } from '../support/source/app.ts'

const KEY = 'sk-source-secret-key'
const URL = 'http://source.test/v1'
const BODY = { name: 'Rack', baseUrl: URL, apiKey: KEY, models: [{ model: 'llama-4' }] }

type App = Awaited<ReturnType<typeof testApp>>
/** Tests check the fields they use. */
type Json = ReturnType<typeof JSON.parse>
type Answer = { status: number; body: Json }

const open = async () => {
  const app = await testApp()
  const send = async (route: string, json?: unknown): Promise<Answer> => {
    const response = await app.ask(route, { json })
    const text = await response.text()
    return { status: response.status, body: text === '' ? null : JSON.parse(text) }
  }
  const add = async (over: object = {}) => (await send('POST /api/model-sources/', { ...BODY, ...over })).body
  const events = async () =>
    (await send('GET /api/audit-logs')).body.items
      .filter(({ action }: Json) => action.startsWith('model_source'))
      .map(({ action, details }: { action: string; details: unknown }) => [action, details])
  return { ...app, app, send, add, events }
}

const problem = ({ status, body }: Answer) => [status, body.error.code, body.error.param]

/** Moves the clock over time limits until the answer is there. */
const settled = async (app: App, asked: Promise<Answer>): Promise<Answer> => {
  let answer: Answer | null = null
  const waiting = asked.then((got) => {
    answer = got
  })
  for (let step = 0; step < 200 && answer === null; step++) await app.clock.advance('1s')
  await waiting
  return answer as unknown as Answer // as: set by then
}

describe('a model source', () => {
  test('is created with defaults, listed by name, and its key is never shown', async () => {
    const { send, add } = await open()
    const made = await add()
    expect(made).toMatchObject({
      name: 'Rack',
      kind: 'openai_compatible',
      baseUrl: URL,
      hasApiKey: true,
      isEnabled: true,
      healthStatus: 'unknown',
      lastTest: null,
      supportsChatCompletions: true,
      supportsResponses: false,
      supportsAudioTranscriptions: false,
      supportsEmbeddings: false,
      timeoutSeconds: 600,
      maxConcurrency: null,
      createdAt: '2026-01-01T00:00:00.000Z',
    })
    expect(made.id).toMatch(/^src_\w{22}$/)
    expect(made.models).toEqual([
      expect.objectContaining({
        sourceId: made.id,
        model: 'llama-4',
        displayName: null,
        supportsStreaming: true,
        supportsTools: false,
        inputPer1m: null,
        isEnabled: true,
      }),
    ])
    await add({ name: 'Attic', apiKey: null })
    const listed = (await send('GET /api/model-sources/')).body.sources
    expect(listed.map(({ name, hasApiKey }: { name: string; hasApiKey: boolean }) => [name, hasApiKey])).toEqual([
      ['Attic', false],
      ['Rack', true],
    ])
    expect(JSON.stringify(listed)).not.toContain(KEY)
    expect((await send('GET /api/model-sources')).body.sources).toEqual(listed)
  })

  test('keeps its key encrypted in the database, bound to its own id', async () => {
    const { add, sqlite, bindings } = await open()
    const { id } = await add()
    const rows = JSON.stringify(sqlite.query('SELECT * FROM model_sources').all())
    expect(rows).not.toContain(KEY)
    expect(bindings.sources.byId(id)?.key()).toBe(KEY)
    await add({ name: 'Other', apiKey: 'another-key' })
    sqlite.run(
      "UPDATE model_sources SET api_key_sealed = (SELECT api_key_sealed FROM model_sources WHERE name = 'Rack') WHERE name = 'Other'",
    )
    await bindings.sources.reload()
    const other = bindings.sources.enabled.find(({ name }) => name === 'Other')
    expect(() => other?.key()).toThrow()
  })

  test('is changed field by field; the list of models is replaced as a whole, and models that stay keep their id', async () => {
    const { send, add, clock } = await open()
    const { id, models } = await add()
    await clock.advance('1m')
    const more = [{ model: 'llama-4', inputPer1m: 0.5, rawMetadataJson: '{"a":1}' }, { model: 'qwen-5' }]
    const { body } = await send(`PATCH /api/model-sources/${id}`, { supportsResponses: true, models: more })
    expect(body).toMatchObject({ name: 'Rack', supportsResponses: true, updatedAt: '2026-01-01T00:01:00.000Z' })
    expect(body.models).toMatchObject([
      { id: models[0].id, model: 'llama-4', inputPer1m: 0.5, rawMetadataJson: '{"a":1}' },
      { model: 'qwen-5' },
    ])
    const added = { addModels: [{ model: 'qwen-5', displayName: 'no' }, { model: 'new' }] }
    const { body: later } = await send(`PATCH /api/model-sources/${id}`, added)
    expect(
      later.models.map(({ model, displayName }: { model: string; displayName: null }) => [model, displayName]),
    ).toEqual([
      ['llama-4', null],
      ['new', null],
      ['qwen-5', null],
    ])
  })

  test('is announced as failing once, however many requests end with an error at the same time', async () => {
    const { app, add } = await open()
    const { id } = await add()
    const source = app.bindings.sources.byId(id)!
    let announced = 0
    onChange(app.db, (topics) => {
      if (topics.has('sources')) announced++
    })
    const failure = { code: 'model_source_error', at: app.clock.now() }
    await Promise.all(Array.from({ length: 100 }, () => recordHealth(app.db, source, failure)))
    expect([announced, app.bindings.sources.byId(id)?.health]).toEqual([1, 'failing'])
  })

  test('another key or address makes its health unknown again; null removes the key', async () => {
    const { send, add } = await open()
    const { id } = await add()
    await send(`POST /api/model-sources/${id}/test`)
    const health = async () => (await send('GET /api/model-sources/')).body.sources[0]
    expect(await health()).toMatchObject({ healthStatus: 'ok', lastTest: { ok: true } })
    await send(`PATCH /api/model-sources/${id}`, { name: 'Renamed' })
    expect((await health()).healthStatus).toBe('ok')
    await send(`PATCH /api/model-sources/${id}`, { apiKey: null })
    expect(await health()).toMatchObject({ healthStatus: 'unknown', lastTest: null, hasApiKey: false })
    await send(`PATCH /api/model-sources/${id}`, { baseUrl: 'http://10.0.0.7/other/' })
    expect(await health()).toMatchObject({ healthStatus: 'unknown', baseUrl: 'http://10.0.0.7/other' })
  })

  test('does not send its key to another server', async () => {
    const { send, add, app } = await open()
    const { id } = await add()
    const patch = (json: object) => send(`PATCH /api/model-sources/${id}`, json)
    const key = () => app.bindings.sources.byId(id)?.key()
    const port = URL.replace('/v1', ':8443/v1')
    for (const baseUrl of ['http://evil.test/v1', URL.replace('http:', 'https:'), port]) {
      expect(problem(await patch({ baseUrl }))).toEqual([400, 'invalid_model_source_payload', 'apiKey'])
      expect(problem(await patch({ baseUrl, name: 'Other' }))[0]).toBe(400)
    }
    expect((await patch({ baseUrl: `${URL}/other` })).status).toBe(200)
    expect(key()).toBe(KEY)
    expect((await patch({ baseUrl: 'http://10.0.0.7/v1', apiKey: 'sk-another' })).status).toBe(200)
    expect(key()).toBe('sk-another')
    expect((await patch({ baseUrl: 'http://10.0.0.8/v1', apiKey: null })).status).toBe(200)
    expect(key()).toBeNull()
    expect((await patch({ baseUrl: 'http://10.0.0.9/v1' })).status).toBe(200)
  })

  test('in memory follows every change; a disabled source or model is not offered', async () => {
    const { send, add, bindings } = await open()
    const { id } = await add({ models: [{ model: 'llama-4' }, { model: 'off', isEnabled: false }] })
    const offered = (model: string) => bindings.sources.offering(model, 'chat').map(({ name }) => name)
    await add({ name: 'Attic' })
    expect([offered('llama-4'), offered('off'), offered('LLAMA-4')]).toEqual([['Attic', 'Rack'], [], []])
    await send(`PATCH /api/model-sources/${id}`, { isEnabled: false })
    expect([offered('llama-4'), bindings.sources.byId(id)]).toEqual([['Attic'], null])
    expect((await send(`DELETE /api/model-sources/${id}`)).status).toBe(204)
    expect(bindings.sources.enabled.map(({ name }) => name)).toEqual(['Attic'])
    expect(bindings.db.$count).toBeDefined()
  })

  test('deletion removes its models, and a key limited to it allows nothing', async () => {
    const { send, add, sqlite } = await open()
    const { id } = await add()
    const { body: key } = await send('POST /api/api-keys/', { name: 'k', assignedSourceIds: [id] })
    expect(key).toMatchObject({ assignedSourceIds: [id], sourceAssignmentScopeEnabled: true })
    await send(`DELETE /api/model-sources/${id}`)
    expect(sqlite.query('SELECT count(*) AS n FROM source_models').get()).toEqual({ n: 0 })
    const [after] = (await send('GET /api/api-keys/')).body
    expect(after).toMatchObject({ assignedSourceIds: [], sourceAssignmentScopeEnabled: true })
    expect((await send(`DELETE /api/model-sources/${id}`)).status).toBe(404)
  })

  test('each change is in the audit log without secrets; an edit that changes nothing is not', async () => {
    const { send, add, events } = await open()
    const { id } = await add()
    await send(`PATCH /api/model-sources/${id}`, { name: 'Rack', models: BODY.models })
    await send(`PATCH /api/model-sources/${id}`, { timeoutSeconds: 30, apiKey: 'sk-second-secret' })
    await send(`PATCH /api/model-sources/${id}`, { baseUrl: `${URL}/b` })
    await send(`DELETE /api/model-sources/${id}`)
    const written = await events()
    expect(written.toReversed()).toEqual([
      ['model_source_created', { name: 'Rack', baseUrl: URL }],
      ['model_source_updated', { changed: ['apiKey', 'timeoutSeconds'] }],
      ['model_source_updated', { changed: ['baseUrl'], baseUrl: { from: URL, to: `${URL}/b` } }],
      ['model_source_deleted', { name: 'Rack' }],
    ])
    expect(JSON.stringify(written)).not.toContain('sk-')
  })
})

describe('invalid input', () => {
  test.each([
    [{ name: '' }, 'name'],
    [{ name: 'x'.repeat(129) }, 'name'],
    [{ baseUrl: 'localhost:11434' }, 'baseUrl'],
    [{ baseUrl: 'ftp://source.test' }, 'baseUrl'],
    [{ baseUrl: 'http://u:p@source.test/v1' }, 'baseUrl'],
    [{ baseUrl: 'http://169.254.169.254/v1' }, 'baseUrl'],
    [{ baseUrl: 'http://metadata.google.internal/v1' }, 'baseUrl'],
    [{ baseUrl: 'http://127.0.0.1:2455/v1' }, 'baseUrl'],
    [{ baseUrl: 7 }, 'baseUrl'],
    [{ timeoutSeconds: 0 }, 'timeoutSeconds'],
    [{ timeoutSeconds: 3601 }, 'timeoutSeconds'],
    [{ maxConcurrency: -1 }, 'maxConcurrency'],
    [{ supportsChatCompletions: 'yes' }, 'supportsChatCompletions'],
    [{ models: [{ model: '' }] }, 'models.0.model'],
    [{ models: [{ model: 'a' }, { model: 'a' }] }, 'models'],
    [{ models: [{ model: 'a', inputPer1m: -1 }] }, 'models.0.inputPer1m'],
    [{ models: [{ model: 'a', rawMetadataJson: '[1]' }] }, 'models.0.rawMetadataJson'],
    [{ models: [{ model: 'a', rawMetadataJson: '{' }] }, 'models.0.rawMetadataJson'],
    [{ healthStatus: 'ok' }, 'healthStatus'],
  ])('%p', async (over, param) => {
    const { send, sqlite } = await open()
    expect(problem(await send('POST /api/model-sources/', { ...BODY, ...over }))).toEqual([
      400,
      'invalid_model_source_payload',
      param,
    ])
    expect(sqlite.query('SELECT count(*) AS n FROM model_sources').get()).toEqual({ n: 0 })
  })

  test('a taken name, an unknown id, an outdated version', async () => {
    const { send, add } = await open()
    const { id, version } = await add()
    expect(problem(await send('POST /api/model-sources/', BODY))).toEqual([409, 'name_taken', 'name'])
    const other = await add({ name: 'Other' })
    expect(problem(await send(`PATCH /api/model-sources/${other.id}`, { name: 'Rack' }))).toEqual([
      409,
      'name_taken',
      'name',
    ])
    for (const route of [
      'PATCH /api/model-sources/src_x',
      'POST /api/model-sources/src_x/test',
      'POST /api/model-sources/src_x/discover',
    ])
      expect((await send(route, {})).status).toBe(404)
    await send(`PATCH /api/model-sources/${id}`, { timeoutSeconds: 5 })
    const outdated = await send(`PATCH /api/model-sources/${id}`, { timeoutSeconds: 6, expectedVersion: version })
    expect(problem(outdated)).toEqual([409, 'edit_conflict', undefined])
  })

  test('a name that resolves to a metadata address is rejected when it is saved, and when it changes later', async () => {
    const { send, add, names, source } = await open()
    names.set('rebind.test', ['169.254.169.254'])
    expect(problem(await send('POST /api/model-sources/', { ...BODY, baseUrl: 'http://rebind.test/v1' }))).toEqual([
      400,
      'invalid_model_source_payload',
      'baseUrl',
    ])
    const { id } = await add()
    names.set('source.test', ['169.254.169.254'])
    const { body } = await send(`POST /api/model-sources/${id}/test`)
    expect([body.ok, body.models.error.code, source.received.length]).toEqual([false, 'model_source_unreachable', 0])
    names.set('source.test', ['10.0.0.7'])
    expect((await send(`POST /api/model-sources/${id}/test`)).body.ok).toBe(true)
  })
})

describe('permissions for sources', () => {
  const ask = (who: { ask: App['ask'] }, route: string, json: unknown = {}) =>
    who.ask(route, { json }).then(async (response) => [response.status, (await response.json()).error?.code])

  test('an Operator manages sources, after a confirmation when an address or a key is set', async () => {
    const app = await testApp()
    const crowd = people(app)
    const fresh = await crowd.as('operator', { isConfirmed: false })
    expect(await ask(fresh, 'POST /api/model-sources/', BODY)).toEqual([403, 'step_up_required'])
    const operator = await crowd.as('operator', { username: 'op' })
    expect(await ask(operator, 'POST /api/model-sources/', BODY)).toEqual([200, undefined])
    const id = app.bindings.sources.enabled[0]?.id
    const patch = (json: object) => ask(fresh, `PATCH /api/model-sources/${id}`, json)
    expect(await patch({ name: 'Renamed', baseUrl: URL, timeoutSeconds: 5 })).toEqual([200, undefined])
    expect(await patch({ baseUrl: 'http://10.0.0.9/v1' })).toEqual([403, 'step_up_required'])
    expect(await patch({ apiKey: 'sk-new' })).toEqual([403, 'step_up_required'])
    expect(await patch({ apiKey: null })).toEqual([403, 'step_up_required'])
    expect(await ask(fresh, `POST /api/model-sources/${id}/test`)).toEqual([200, undefined])
    expect(await ask(fresh, `POST /api/model-sources/${id}/discover`)).toEqual([200, undefined])
    expect((await fresh.ask(`DELETE /api/model-sources/${id}`)).status).toBe(204)
  })

  test('a Viewer sees sources without addresses, metadata and error texts, and changes nothing', async () => {
    const app = await testApp()
    const crowd = people(app)
    const admin = await crowd.as('admin')
    await admin.ask('POST /api/model-sources/', {
      json: { ...BODY, models: [{ model: 'llama-4', rawMetadataJson: '{"secret-hint":1}' }] },
    })
    const id = app.bindings.sources.enabled[0]?.id
    app.source.fail('server_error')
    await admin.ask(`POST /api/model-sources/${id}/test`, { json: {} })
    const viewer = await crowd.as('viewer', { username: 'v' })
    const text = await (await viewer.ask('GET /api/model-sources/')).text()
    expect(JSON.parse(text).sources).toMatchObject([
      { name: 'Rack', baseUrl: null, healthStatus: 'failing', healthCode: 'model_source_error' },
    ])
    for (const hidden of ['source.test', 'secret-hint', 'crashed']) expect(text).not.toContain(hidden)
    for (const route of [
      'POST /api/model-sources/',
      `PATCH /api/model-sources/${id}`,
      `POST /api/model-sources/${id}/test`,
      `POST /api/model-sources/${id}/discover`,
      `DELETE /api/model-sources/${id}`,
    ])
      expect(await ask(viewer, route, {})).toEqual([403, 'read_only_access'])
  })
})

describe('a source test', () => {
  test('lists the models and sends one small request of each kind', async () => {
    const { send, add, source, events } = await open()
    source.state.models = ['llama-4', 'nomic-embed']
    const { id } = await add({
      supportsResponses: true,
      supportsEmbeddings: true,
      models: [{ model: 'llama-4' }, { model: 'nomic-embed' }, { model: 'gone' }],
    })
    const { status, body } = await send(`POST /api/model-sources/${id}/test`)
    expect([status, body.ok]).toEqual([200, true])
    expect(body.models).toMatchObject({ count: 2, missing: ['gone'], error: null })
    expect(body.calls.map(({ capability, model, ok }: Json) => [capability, model, ok])).toEqual([
      ['chat', 'llama-4', true],
      ['responses', 'llama-4', true],
      ['embeddings', 'nomic-embed', true],
    ])
    expect(source.received.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'GET /v1/models',
      'POST /v1/chat/completions',
      'POST /v1/responses',
      'POST /v1/embeddings',
    ])
    expect(source.received.map(({ host, headers }) => [host, headers.get('authorization')])).toEqual(
      Array(4).fill(['source.test', `Bearer ${KEY}`]),
    )
    expect((await events())[0]).toEqual(['model_source_tested', { ok: true }])
    const [stored] = (await send('GET /api/model-sources/')).body.sources
    expect([stored.lastTest, stored.healthStatus]).toEqual([body, 'ok'])
  })

  test('a source without a model list works if it answers', async () => {
    const { send, add, source } = await open()
    source.state.routes = ['/chat/completions']
    const { id } = await add()
    const { body } = await send(`POST /api/model-sources/${id}/test`)
    expect([body.ok, body.models.error.code, body.calls[0].ok]).toEqual([true, 'model_source_error', true])
  })

  test.each<[SourceFault, string]>([
    ['html', 'invalid_upstream_response'],
    ['html_error', 'model_source_error'],
    ['not_json', 'invalid_upstream_response'],
    ['empty', 'invalid_upstream_response'],
    ['endless', 'invalid_upstream_response'],
    ['hang', 'model_source_unreachable'],
    ['redirect', 'model_source_error'],
    ['echo_key', 'model_source_credentials_error'],
    ['forbidden', 'model_source_credentials_error'],
    ['rate_limited', 'model_source_error'],
    ['server_error', 'model_source_error'],
    ['unreachable', 'model_source_unreachable'],
  ])('of a source with the fault %s says %s and never contains the key', async (fault, code) => {
    const { app, send, add, source, sqlite, lines } = await open()
    const { id } = await add()
    source.fail(fault)
    const { status, body } = await settled(app, send(`POST /api/model-sources/${id}/test`))
    expect([status, body.ok, body.models.error.code]).toEqual([200, false, code])
    const discovered = await settled(app, send(`POST /api/model-sources/${id}/discover`))
    expect([discovered.status, discovered.body.error.code]).toEqual([502, code])
    const [stored] = (await send('GET /api/model-sources/')).body.sources
    expect([stored.healthStatus, stored.healthCode]).toEqual(['failing', code])
    const everything = [body, discovered, stored, sqlite.query('SELECT * FROM model_sources').all(), lines]
    for (const secret of [KEY, encodeURIComponent(KEY), 'meta-data', '<title>'])
      expect(JSON.stringify(everything)).not.toContain(secret)
    source.heal()
    expect((await send(`POST /api/model-sources/${id}/test`)).body.ok).toBe(true)
    expect((await send('GET /api/model-sources/')).body.sources[0]).toMatchObject({
      healthStatus: 'ok',
      healthCode: null,
    })
  })
})

describe('model discovery', () => {
  test('proposes models without storing them', async () => {
    const { send, add, source, events } = await open()
    source.state.models = ['llama-4', 'qwen-5']
    const { id } = await add()
    const { status, body } = await send(`POST /api/model-sources/${id}/discover`)
    expect([status, body.sourceId]).toEqual([200, id])
    expect(body.models.map(({ model, isListed }: { model: string; isListed: boolean }) => [model, isListed])).toEqual([
      ['llama-4', true],
      ['qwen-5', false],
    ])
    expect((await send('GET /api/model-sources/')).body.sources[0]).toMatchObject({
      models: [{ model: 'llama-4' }],
      healthStatus: 'unknown',
    })
    expect(await events()).toHaveLength(1)
    const [, { isListed, ...proposed }] = body.models
    const { body: after } = await send(`PATCH /api/model-sources/${id}`, { addModels: [proposed] })
    expect(after.models.map(({ model }: { model: string }) => model)).toEqual(['llama-4', 'qwen-5'])
  })
})

describe('pages without scripts', () => {
  const browser = async () => {
    const app = await testApp()
    const admin = await people(app).as('admin')
    const page = async (path: string) => {
      const response = await admin.ask(`GET ${path}`, { headers: { accept: 'text/html' } })
      return [response.status, await response.text()] as const
    }
    const submit = async (path: string, fields: Record<string, string>, headers = {}) => {
      const response = await admin.ask(`POST ${path}`, {
        body: new URLSearchParams(fields).toString(),
        headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'text/html', ...headers },
      })
      return response.headers.get('location') ?? response.text()
    }
    return { app, page, submit }
  }
  const FORM = { name: 'Rack', baseUrl: URL, apiKey: KEY, timeoutSeconds: '', maxConcurrency: '4', isEnabled: 'true' }

  test('add a source, discover its models, edit and delete it', async () => {
    const { app, page, submit } = await browser()
    expect((await page('/settings/sources'))[1]).toContain('No model sources yet')
    const at = await submit('/api/model-sources/', { ...FORM, supportsChatCompletions: 'true' })
    const [source] = app.bindings.sources.enabled
    expect(at).toBe(`/settings/sources/${source?.id}?done=model_source_created`)
    expect([source?.timeoutMs, source?.maxConcurrency, source?.key()]).toEqual([600_000, 4, KEY])
    const api = `/api/model-sources/${source?.id}`
    const found = await submit(`${api}/discover`, {})
    const proposed = /value="(\{[^"]*)"/.exec(found)?.[1]?.replaceAll('&quot;', '"') ?? ''
    expect(JSON.parse(proposed)).toMatchObject({ model: 'llama-4' })
    await submit(api, { add: proposed })
    expect([...(app.bindings.sources.enabled[0]?.models.keys() ?? [])]).toEqual(['llama-4'])
    const row = { 'models.0.model': 'llama-4', 'models.0.inputPer1m': '0.25', 'models.0.supportsTools': 'true' }
    await submit(api, { name: 'Attic', apiKey: '', ...row, 'models.1.model': '', 'models.2.model': 'by-name' })
    const [edited] = app.bindings.sources.enabled
    expect([edited?.name, edited?.key()]).toEqual(['Attic', KEY])
    expect(edited?.models.get('llama-4')).toMatchObject({ inputPer1m: 0.25, supportsTools: true })
    expect([...(edited?.models.keys() ?? [])]).toEqual(['by-name', 'llama-4'])
    await submit(`${api}/test`, {})
    const [status, text] = await page(`/settings/sources/${source?.id}`)
    expect(status).toBe(200)
    for (const part of ['Working', 'answered in', '$0.25 in per 1M tokens', 'llama-4']) expect(text).toContain(part)
    expect(text).not.toContain(KEY)
    await submit(api, { removeApiKey: 'true', 'models.0.model': 'llama-4', 'models.0.remove': 'true' })
    expect([app.bindings.sources.enabled[0]?.key(), app.bindings.sources.enabled[0]?.models.size]).toEqual([null, 0])
    expect(await submit(`${api}/delete`, {})).toBe('/settings/sources?done=model_source_deleted')
  })

  test('a rejected form shows the reason beside it, and keeps its values except the key', async () => {
    const { page, submit } = await browser()
    const from = { referer: 'http://localhost:2455/settings/sources/new' }
    const at = await submit('/api/model-sources/', { ...FORM, baseUrl: 'http://169.254.169.254/v1' }, from)
    expect(at).toStartWith('/settings/sources/new?problem=invalid_model_source_payload')
    const [, text] = await page(at)
    for (const part of ['is not allowed.', 'value="http://169.254.169.254/v1"']) expect(text).toContain(part)
    expect(text).not.toContain(KEY)
  })

  test('a form limits a key to sources', async () => {
    const { app, submit } = await browser()
    await submit('/api/model-sources/', { ...FORM, supportsChatCompletions: 'true' })
    const id = app.bindings.sources.enabled[0]?.id ?? ''
    await submit('/api/api-keys/', { name: 'k', sourceScope: 'chosen', assignedSourceIds: id, allowOverflow: 'true' })
    const stored = () =>
      app.sqlite.query('SELECT assigned_source_ids AS ids, allow_overflow AS marked FROM api_keys').get()
    expect(stored()).toEqual({ ids: JSON.stringify([id]), marked: 1 })
  })
})

test('reports show the share of sources, if there is one', async () => {
  const { send, add, sqlite, clock } = await open()
  const { id } = await add()
  const hour = clock.now() - (clock.now() % 3_600_000)
  const put = (account: string, source: string, n: number) =>
    sqlite.run(
      `INSERT INTO request_hours VALUES (${hour}, '${account}', '', 'm', '', '${source}', ${n}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)`,
    )
  const shares = async (query = '') =>
    (await send(`GET /api/reports${query}`)).body.bySource.map((share: Json) => [share.name, share.percentage])
  put('acc_a', '', 3)
  expect(await shares()).toEqual([])
  put('', id, 1)
  expect(await shares()).toEqual([
    [null, 75],
    ['Rack', 25],
  ])
  expect(await shares(`?source_id=${id}`)).toEqual([['Rack', 100]])
})

test('over a real connection, a body shorter than its Content-Length is an interrupted response', async () => {
  const liar = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data: (socket) => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{"data":')
        socket.end()
      },
    },
  })
  const { GuardedFetch } = await import('../../src/upstream/guarded-fetch.ts')
  const { SourceFetch } = await import('../../src/upstream/source-fetch.ts')
  const { createDial } = await import('../../src/upstream/dial.ts')
  const { readModels } = await import('../../src/upstream/source-models.ts')
  const { systemClock } = await import('../../src/lib/clock.ts')
  const { systemRandom } = await import('../../src/lib/random.ts')
  const guarded = new GuardedFetch({
    dial: createDial({}, fetch, { trustsSocketEnvironment: true, random: systemRandom }),
    lookup: async () => [],
    own: () => ({ port: 1, publicUrl: undefined }),
  })
  const sourceFetch = new SourceFetch(guarded)
  const baseUrl = `http://127.0.0.1:${liar.port}`
  const failed = readModels({ sourceFetch, clock: systemClock }, { baseUrl, key: () => null })
  expect(await failed.catch((err) => err.code)).toBe('model_source_unreachable')
  liar.stop(true)
})
