/** Spec §1, what the service does: the rules for HTTP. */
import { describe, expect, test } from 'bun:test'
import { readConfig } from '../../src/boot/env.ts'
import { codexBody, getEvents, testApp } from '../support/app.ts'
import { answers } from '../support/upstream/script.ts'
import { fetchCatalogs, nativeModels, publicModels, store } from './catalog.ts'
import { modelProblem } from './problems.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const CHAT = { model: 'gpt-5.5', messages: [{ role: 'user', content: 'hello' }] }
const V1 = { model: 'gpt-5.5', input: 'hello' }

describe('§1.1 the accounts are one pool behind one API', () => {
  test('requests use different accounts, and the client cannot tell which', async () => {
    const { ask, upstream, members } = await testApp({ accounts: 3, settings: { routingStrategy: 'round_robin' } })
    for (let turn = 0; turn < 3; turn++) {
      const response = await ask(NATIVE, { json: codexBody(), headers: { authorization: 'Bearer anything' } })
      response.headers.delete('x-codex-turn-state') // opaque, and the upstream's own
      const shown = JSON.stringify([...response.headers])
      for (const { id, sim } of members) {
        expect(shown).not.toContain(sim.chatgptAccountId)
        expect(shown).not.toContain(id)
      }
      await response.text()
    }
    expect(new Set(upstream.requests.map(({ account }) => account)).size).toBe(3)
    expect(upstream.oddities).toEqual([])
  })
})

describe('§1.2 two route families', () => {
  test('both answer from the same pool', async () => {
    const { ask, upstream } = await testApp()
    const asked = [
      ask(NATIVE, { json: codexBody() }),
      ask('POST /v1/responses', { json: V1 }),
      ask('POST /v1/chat/completions', { json: CHAT }),
    ]
    for (const response of await Promise.all(asked)) {
      expect(response.status).toBe(200)
      await response.text()
    }
    expect(upstream.requests).toHaveLength(3)
  })

  test.each(['/v1', '/v1/', '/v1/completions', '/backend-api/codex', '/backend-api/conversation', '/v1/files'])(
    'nothing else exists under them: %s',
    async (path) => {
      const { ask } = await testApp({ accounts: 0 })
      const response = await ask(`POST ${path}`, { json: {} })
      expect(response.status).toBe(404)
      expect((await modelProblem(response)).code).toBe('not_found')
    },
  )
})

describe('§1.3 the default local port', () => {
  test('is 2455, on this machine only', () => {
    expect(readConfig({})).toMatchObject({ PORT: 2455, HOST: '127.0.0.1' })
  })
})

describe('§1.5 models come from the live catalog of the upstream', () => {
  test('and differ by plan', async () => {
    const plus = await testApp({ accounts: [{ plan: 'plus' }] })
    const pro = await testApp({ accounts: [{ plan: 'pro' }] })
    for (const app of [plus, pro]) await fetchCatalogs(app)
    expect((await publicModels(plus)).map(({ id }) => id)).not.toContain('gpt-6-astra')
    expect((await publicModels(pro)).map(({ id }) => id)).toContain('gpt-6-astra')
  })

  test('a pool offers what any of its accounts offers, in both listings', async () => {
    const app = await testApp({ accounts: [{ models: ['one', 'both'] }, { models: ['two', 'both'] }] })
    await fetchCatalogs(app)
    expect((await publicModels(app)).map(({ id }) => id).toSorted()).toEqual(['both', 'one', 'two'])
    expect((await nativeModels(app)).map(({ slug }) => slug).toSorted()).toEqual(['both', 'one', 'two'])
  })

  test('a rollout or a retirement shows at the next fetch', async () => {
    const app = await testApp({ accounts: [{ models: ['old'] }] })
    await fetchCatalogs(app)
    app.members[0]!.sim.models = ['new']
    await fetchCatalogs(app)
    expect((await publicModels(app)).map(({ id }) => id)).toEqual(['new'])
  })

  test('there is no static table: an install without a fetch lists nothing', async () => {
    const app = await testApp({ accounts: 0 })
    expect(await publicModels(app)).toEqual([])
    expect(await nativeModels(app)).toEqual([])
  })

  test('the allowlist of a key names models of that catalog, and the listings show only those', async () => {
    const app = await testApp({ accounts: [{ models: ['one', 'two'] }], settings: { apiKeyAuthEnabled: true } })
    await fetchCatalogs(app)
    const { key } = await app.key({ allowedModels: ['two', 'not-in-the-catalog'] })
    const listed = await publicModels(app, { authorization: `Bearer ${key}` })
    expect(listed.map(({ id }) => id)).toEqual(['two'])
  })
})

describe('§1.6 tiers and budgets', () => {
  test('an entry without budgets has the default of the lineup: 272000, at most 872000', async () => {
    const app = await testApp()
    await store(app, app.members[0]!.id, [{ slug: 'strongest' }])
    const [entry] = await nativeModels(app)
    expect(entry).toMatchObject({ slug: 'strongest', context_window: 272_000, max_context_window: 872_000 })
  })

  test('an older pinned model is still served', async () => {
    const app = await testApp({ accounts: [{ models: ['gpt-6.1-sol', 'gpt-5.5'] }] })
    await fetchCatalogs(app)
    const response = await app.ask(NATIVE, { json: codexBody('hi', { model: 'gpt-5.5' }) })
    expect(response.status).toBe(200)
    expect((await getEvents(response)).at(-1)?.type).toBe('response.completed')
  })

  test('a retired model is rejected in the words of the upstream, not replaced by another one', async () => {
    const app = await testApp({ accounts: [{ models: ['gpt-5.5'] }] })
    await fetchCatalogs(app)
    const response = await app.ask(NATIVE, { json: codexBody('hi', { model: 'gpt-retired' }) })
    expect(response.status).toBe(400)
    expect((await modelProblem(response)).message).toContain('gpt-retired')
  })
})

describe('§1.7 context windows', () => {
  test('the native listing advertises the default and the maximum', async () => {
    const app = await testApp({ accounts: [{ models: ['gpt-5.5'] }] })
    await fetchCatalogs(app)
    const [entry] = await nativeModels(app)
    expect(entry).toMatchObject({ context_window: 272_000, max_context_window: 872_000 })
  })

  test('/v1/models reports the default, nowhere the ceiling', async () => {
    const app = await testApp({ accounts: [{ models: ['gpt-5.5'] }] })
    await fetchCatalogs(app)
    const [entry] = await publicModels(app)
    expect(entry).toMatchObject({ context_length: 272_000 })
    expect(JSON.stringify(entry)).not.toContain('872000')
  })

  test('nothing in the listing lowers the threshold at which the native client compacts: 90% of its window', async () => {
    const app = await testApp({ accounts: [{ models: ['gpt-5.5'] }] })
    await fetchCatalogs(app)
    const [entry] = await nativeModels(app)
    expect(entry).not.toHaveProperty('auto_compact_token_limit')
    expect(Math.floor((entry?.max_context_window ?? 0) * 0.9)).toBe(784_800)
  })

  test.each([
    [272_000, 272_000 * 5 + 10 * 30],
    [272_001, 272_001 * 10 + 10 * 45],
  ])(
    '%d input tokens cost %d micro-dollars: beyond the default budget at the long-context rate',
    async (inputTokens, cost) => {
      const app = await testApp({ accounts: [{ models: ['gpt-5.6-sol'] }] })
      app.upstream.script(() => answers.text('ok', { usage: { inputTokens, outputTokens: 10 } }))
      await (await app.ask(NATIVE, { json: codexBody('hi', { model: 'gpt-5.6-sol' }) })).text()
      expect((await app.rows())[0]).toMatchObject({ inputTokens, outputTokens: 10, costMicros: cost })
    },
  )
})

describe('§1.8 remote compaction', () => {
  test('works on the native family', async () => {
    const { ask, upstream } = await testApp()
    const { stream: _stream, store: _store, include: _include, ...json } = codexBody()
    const response = await ask('POST /backend-api/codex/responses/compact', { json })
    expect(response.status).toBe(200)
    const compacted = (await response.json()) as {
      object: string
      output: { type: string; encrypted_content?: string }[]
    }
    expect(compacted.object).toBe('response.compaction')
    expect(compacted.output.at(-1)).toMatchObject({ type: 'compaction', encrypted_content: expect.any(String) })
    expect(upstream.oddities).toEqual([])
  })

  test('also when the upstream has retired its own route for it', async () => {
    const { ask, upstream } = await testApp()
    upstream.compactRetired = true
    const { stream: _stream, store: _store, include: _include, ...json } = codexBody()
    const response = await ask('POST /backend-api/codex/responses/compact', { json })
    expect(response.status).toBe(200)
    const compacted = (await response.json()) as { object: string; output: { type: string }[] }
    expect(compacted.object).toBe('response.compaction')
    expect(compacted.output.at(-1)?.type).toBe('compaction')
  })
})

describe('§1.9 wire modes', () => {
  test('Responses keeps the reasoning state: encrypted content passes both ways unchanged', async () => {
    const { ask, upstream } = await testApp()
    const events = await getEvents(await ask(NATIVE, { json: codexBody() }))
    const items = events.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item)
    const reasoning = items.find((item) => (item as { type: string }).type === 'reasoning')
    expect((reasoning as { encrypted_content: string }).encrypted_content).toStartWith('enc.')
    const first = codexBody()
    const input = [...first.input, ...items, ...codexBody('go on').input]
    const second = await ask(NATIVE, { json: codexBody('', { input }) })
    expect((await getEvents(second)).at(-1)?.type).toBe('response.completed')
    const { input: replayed } = upstream.requests[1]!.body as { input: unknown[] } // as: a turn's body
    expect(replayed).toContainEqual(reasoning)
  })

  test.each([true, false])('Chat Completions drops reasoning content (stream: %p)', async (stream) => {
    const { ask, upstream } = await testApp()
    upstream.script(() =>
      answers.items([
        { kind: 'reasoning', summary: 'SECRET THOUGHT' },
        { kind: 'text', text: 'the answer' },
      ]),
    )
    const text = await (await ask('POST /v1/chat/completions', { json: { ...CHAT, stream } })).text()
    expect(text).toContain('answer')
    expect(text).not.toContain('SECRET')
    expect(text).not.toContain('encrypted_content')
    expect(text).not.toContain('reasoning_content')
  })

  test('a client that tries a WebSocket is sent to HTTP, where the same turn works', async () => {
    const { ask } = await testApp()
    const headers = { upgrade: 'websocket', connection: 'Upgrade' }
    expect((await ask('GET /backend-api/codex/responses', { headers })).status).toBe(426)
    const response = await ask(NATIVE, { json: codexBody() })
    expect((await getEvents(response)).at(-1)?.type).toBe('response.completed')
  })
})
