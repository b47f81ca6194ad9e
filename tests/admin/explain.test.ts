/** The routing simulator uses the same decision as a request, without changing anything. */

import { describe, expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { updateKey } from '../../src/model/keys/api-keys.ts'
import type { Explanation } from '../../src/model/log/explain.ts'
import { fetchCatalogs } from '../spec/catalog.ts'
import { codexBody, getAnswer, type TestApp, testApp } from '../support/app.ts'
import { addSource } from '../support/source/add.ts'

const explained = async (app: TestApp, query = ''): Promise<Explanation> =>
  (await (await app.ask(`GET /api/explain${query}`)).json()) as Explanation // as: the tests check the shape

const aPool = () =>
  testApp({
    accounts: [{ email: 'ada@example.test' }, { email: 'grace@example.test' }, { email: 'alan@example.test' }],
    settings: { routingStrategy: 'fill_first' },
  })

test('the account it names serves the next request, and a simulation changes nothing', async () => {
  const app = await aPool()
  await app.prefer(app.members[1]?.id ?? '')
  const before = JSON.stringify(app.bindings.pool.describe())
  const { chosen, outcome } = await explained(app, '?model=gpt-5.5')
  expect([outcome, chosen?.accountName]).toEqual(['chosen', 'grace@example.test'])
  expect(JSON.stringify(app.bindings.pool.describe())).toBe(before)
  await getAnswer(app, 'POST /backend-api/codex/responses', { json: codexBody() })
  expect((await app.rows())[0]?.accountId).toBe(app.members[1]!.id)
})

test('every other account has its reason in words; the selected one comes first', async () => {
  const app = await aPool()
  await app.ask(`POST /api/accounts/${app.members[0]?.id}/pause`)
  await app.prefer(app.members[2]?.id ?? '')
  const { candidates } = await explained(app)
  expect(candidates.map(({ accountName, reason }) => [accountName, reason])).toEqual([
    ['alan@example.test', null],
    ['ada@example.test', 'paused'],
    ['grace@example.test', 'excluded by its routing policy or the strategy'],
  ])
})

describe('two accounts that reset on different days', () => {
  const DAY_MS = 86_400_000
  const explainedPage = async (days: [number, number]) => {
    const app = await testApp({ accounts: [{ email: 'small@example.test' }, { email: 'large@example.test' }] })
    const at = app.clock.now()
    const weekly = (usedPercent: number, in_: number) => ({
      usedPercent,
      windowMinutes: 10_080,
      resetAt: at + (in_ + 0.5) * DAY_MS,
    })
    const see = (id: string, plan: string, window: ReturnType<typeof weekly>) =>
      app.bindings.pool.observe(id, {
        at,
        planType: plan,
        credits: null,
        windows: { fiveHour: null, weekly: window, monthly: null },
      })
    see(app.members[0]?.id ?? '', 'plus', weekly(80, days[0]))
    see(app.members[1]?.id ?? '', 'pro', weekly(1, days[1]))
    return (await app.ask('GET /accounts/simulator?model=gpt-5.5', { headers: { accept: 'text/html' } })).text()
  }

  test('the page says that the day decided, not a random choice', async () => {
    const html = await explainedPage([1, 6])
    expect(html).toContain('<strong>small@example.test</strong>')
    expect(html).toContain('available; resets later')
    expect(html).not.toContain('weighted random')
  })

  test('on the same day the choice is random, and both could have served', async () => {
    const html = await explainedPage([1, 1])
    expect(html).toContain('weighted random')
    expect(html).not.toContain('resets later')
  })
})

describe('simulating a key', () => {
  test('only its accounts are candidates, and its model is the requested one', async () => {
    const app = await aPool()
    const { row } = await app.key({ assignedAccountIds: [app.members[2]?.id ?? ''], enforcedModel: 'gpt-5.4' })
    const answer = await explained(app, `?model=gpt-5.5&key=${row.id}`)
    expect([answer.model, answer.chosen?.accountName, answer.apiKey]).toEqual([
      'gpt-5.4',
      'alan@example.test',
      { id: row.id, name: 'test' },
    ])
    expect(answer.candidates.filter(({ reason }) => reason === 'not assigned to this key')).toHaveLength(2)
  })

  test('a key without access to the model is rejected before any account is considered', async () => {
    const app = await aPool()
    const { row } = await app.key({ allowedModels: ['gpt-5.4'] })
    expect(await explained(app, `?model=gpt-5.5&key=${row.id}`)).toMatchObject({
      outcome: 'refused',
      sentence: 'This key is not allowed to use the model gpt-5.5, so the request would be rejected.',
      candidates: [],
    })
  })

  test('a key over its limit is rejected like its clients, until the limit resets', async () => {
    const app = await testApp({ accounts: 1, settings: { apiKeyAuthEnabled: true } })
    const limit = { limitType: 'requests', limitWindow: 'daily', maxValue: 1, modelFilter: '' } as const
    const { row, key } = await app.key({ limits: [limit] })
    expect((await explained(app, `?key=${row.id}`)).outcome).toBe('chosen')
    const turn = { json: codexBody(), headers: { authorization: `Bearer ${key}` } }
    await getAnswer(app, 'POST /backend-api/codex/responses', turn)
    const refusal = await getAnswer(app, 'POST /backend-api/codex/responses', turn)
    const { outcome, sentence } = await explained(app, `?key=${row.id}`)
    expect([refusal.status, outcome]).toEqual([429, 'refused'])
    expect(sentence).toMatch(/^API key requests daily limit exceeded\. Usage resets at .+Z\. Until then/)
    expect(refusal.text).toContain(sentence.replace(/ Until then.*/, ''))
    await app.clock.advance(24 * 3_600_000)
    expect((await explained(app, `?key=${row.id}`)).outcome).toBe('chosen')
  })

  test('a disabled key and an unknown key are rejected', async () => {
    const app = await aPool()
    const { row } = await app.key()
    const actor = { id: 'test', method: null, address: null, at: app.clock.now() }
    const doing = { scope: 'all' as const, actor, random: app.bindings.random }
    await commit(app.db, (tx) => updateKey(tx, row.id, { isActive: false }, doing))
    await app.bindings.keys.reload()
    expect((await explained(app, `?key=${row.id}`)).outcome).toBe('refused')
    expect((await app.ask('GET /api/explain?key=key_none')).status).toBe(404)
  })
})

test('an unknown parameter is rejected by name, because ignoring it would answer another question', async () => {
  const app = await aPool()
  const response = await app.ask('GET /api/explain?model=gpt-5.5&apiKeyId=key_none')
  expect([response.status, await response.json()]).toEqual([
    422,
    {
      error: {
        code: 'validation_error',
        message: expect.any(String),
        param: 'apiKeyId',
        details: { fields: { apiKeyId: ['is not a field of this request'] } },
      },
    },
  ])
  expect((await app.ask('GET /accounts/simulator?model=gpt-5.5&from=a-bookmark')).status).toBe(200)
})

test('no result and an empty pool are reported in words', async () => {
  const app = await testApp({ accounts: 1 })
  await app.ask(`POST /api/accounts/${app.members[0]?.id}/pause`)
  expect(await explained(app)).toMatchObject({
    outcome: 'none',
    chosen: null,
    sentence: 'No account is available for this request, so it would be rejected.',
  })
  expect(await explained(await testApp({ accounts: 0 }))).toMatchObject({ outcome: 'none', candidates: [] })
})

test('the page has a form that works without scripts', async () => {
  const app = await aPool()
  const page = async (path: string) => (await app.ask(`GET ${path}`, { headers: { accept: 'text/html' } })).text()
  expect(await page('/accounts/simulator')).not.toContain('id="explanation"')
  const html = await page('/accounts/simulator?model=gpt-5.5&key=')
  expect(html).toContain('id="explanation"')
  expect(html).toContain('The request would use this account.')
})

test('says when a model source would serve: for its model, and while the pool is used up', async () => {
  const app = await testApp()
  await fetchCatalogs(app)
  const { id } = await addSource(app, { models: ['llama-4', 'gpt-5.5'] })
  const source = { sourceId: id, sourceName: 'Local' }
  expect(await explained(app, '?model=llama-4')).toMatchObject({ outcome: 'source', source, chosen: null })
  expect(await explained(app, '?model=gpt-5.5')).toMatchObject({ outcome: 'chosen', source: null })
  await app.change({ overflowSourceId: id })
  const at = app.clock.now()
  for (const member of app.members)
    app.bindings.pool.apply(member.id, {
      kind: 'quota_exceeded',
      at,
      evidence: 'test',
      resetAt: at + 3_600_000,
      retryAfterMs: null,
      cause: 'usage_limit_reached',
    })
  const used = await explained(app, '?model=gpt-5.5')
  expect(used).toMatchObject({ outcome: 'source', source })
  expect(used.candidates).toHaveLength(1)
})
