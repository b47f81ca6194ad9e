/** Overflow: which requests a source serves while the pool is used up, their budget, and the way back. */
import { describe, expect, test } from 'bun:test'
import { commit } from '../../../db/commit.ts'
import { DAY_MS } from '../../../src/lib/durations.ts'
import { createLog } from '../../../src/lib/log.ts'
import { OwnBudget, SharedBudget } from '../../../src/proxy/sources/overflow-budget.ts'
import type { Settings } from '../../../src/settings/schema.ts'
import { fetchCatalogs } from '../../spec/catalog.ts'
import { codexBody, expectNothingLeft, getAnswer, isTerminal, type TestApp, testApp } from '../../support/app.ts'
import { ManualClock } from '../../support/clock.ts'
import { testDb } from '../../support/db.ts'
import { addSource, disableSource } from '../../support/source/add.ts'
import { ANSWER_TEXT } from '../../support/source/answers.ts'
import { faults } from '../../support/upstream/faults.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const PUBLIC = 'POST /v1/responses'
const CHAT = 'POST /v1/chat/completions'
const MODEL = 'gpt-5.5'
const HOUR = 3_600_000

const silent = createLog({ level: 'error', format: 'text', now: () => 0, write: () => {} })

interface Prepared {
  accounts?: number
  settings?: Partial<Settings>
  source?: Parameters<typeof addSource>[1]
}

/** Two accounts, used up for an hour, and a source with the same model. */
const prepared = async ({ accounts = 2, settings = {}, source = {} }: Prepared = {}) => {
  const app = await testApp({ accounts })
  await fetchCatalogs(app)
  const { id } = await addSource(app, {
    models: [{ model: MODEL, inputPer1m: 2, outputPer1m: 10 }, 'llama-4'],
    ...source,
  })
  app.source.state.models.push(MODEL)
  await app.change({ overflowSourceId: id, ...settings })
  const until = app.clock.now() + HOUR
  for (const { sim } of app.members) sim.always(faults.usageLimit({ resetsAt: until }))
  return { app, id }
}

const nothingLeft = async (app: TestApp) => {
  await app.clock.advance(100)
  await expectNothingLeft(app)
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

describe('while every account is at its usage limit', () => {
  test('the native client is served by the source, in a stream with one terminal event', async () => {
    const { app, id } = await prepared()
    const answer = await getAnswer(app, NATIVE, { json: codexBody() })
    expect(answer.status).toBe(200)
    expect(answer.text).toContain(ANSWER_TEXT)
    expect(answer.events.filter(({ type }) => isTerminal(type))).toHaveLength(1)
    expect(answer.headers.get('x-sluice-source')).toBe('Local')
    expect(await app.rows()).toMatchObject([
      { sourceId: id, overflow: true, accountId: null, status: 'ok', attempts: 2, costMicros: 12 * 2 + 4 * 10 },
    ])
    expect(await app.failedSelections()).toMatchObject([{ code: 'usage_limit_reached' }])
    expect(app.lines.join('\n')).toContain('a model source serves a request because the pool is at its usage limit')
    await nothingLeft(app)
  })

  test('SDKs are too, as a document, a stream and a chat completion', async () => {
    const { app } = await prepared()
    const whole = await getAnswer(app, PUBLIC, { json: { model: MODEL, input: 'hello' } })
    expect(JSON.parse(whole.text)).toMatchObject({ status: 'completed', output: [{ type: 'message' }] })
    const streamed = await getAnswer(app, PUBLIC, { json: { model: MODEL, input: 'hello', stream: true } })
    expect(streamed.events.at(-1)).toMatchObject({ type: 'response.completed' })
    const chat = await getAnswer(app, CHAT, { json: { model: MODEL, messages: [{ role: 'user', content: 'hello' }] } })
    expect(JSON.parse(chat.text).choices[0].message.content).toBe(ANSWER_TEXT)
    expect((await app.rows()).map(({ overflow }) => overflow)).toEqual([true, true, true])
    await nothingLeft(app)
  })

  test('the pool serves again as soon as it can', async () => {
    const { app } = await prepared()
    await getAnswer(app, NATIVE, { json: codexBody() })
    for (const { sim } of app.members) sim.always(null)
    await app.clock.advance(HOUR + 60_000)
    app.bindings.pool.tick()
    const answer = await getAnswer(app, NATIVE, { json: codexBody() })
    expect(answer.headers.get('x-sluice-source')).toBeNull()
    expect(answer.text).not.toContain(ANSWER_TEXT)
    expect((await app.rows()).map(({ overflow }) => overflow)).toEqual([true, false])
    expect(app.source.received).toHaveLength(1)
  })

  test('another model can be set, and is the one that is used', async () => {
    const { app } = await prepared({ settings: { overflowModel: 'llama-4' } })
    const answer = await getAnswer(app, NATIVE, { json: codexBody('hello', { tools: [{ type: 'web_search' }] }) })
    expect(answer.status).toBe(200)
    const body = app.source.last('/responses')?.body
    expect(body).toMatchObject({ model: 'llama-4', stream: true, store: false })
    expect(body).not.toHaveProperty('tools')
    expect(body).not.toHaveProperty('include')
    expect(await app.rows()).toMatchObject([{ model: MODEL, overflow: true }])
  })

  test('a key is only marked if that is needed', async () => {
    const { app } = await prepared({ settings: { overflowKeys: 'marked' } })
    const plain = (await app.key()).key
    const marked = (await app.key({ allowOverflow: true })).key
    const ask = async (headers: Record<string, string>) =>
      (await getAnswer(app, NATIVE, { json: codexBody(), headers })).status
    expect([await ask({}), await ask(bearer(plain)), await ask(bearer(marked))]).toEqual([429, 429, 200])
  })

  test('a key is served within its own sources and models only', async () => {
    const { app, id } = await prepared({ settings: { overflowModel: 'llama-4' } })
    const other = (await addSource(app, { name: 'Other', models: [] })).id
    const ask = async (input: Parameters<TestApp['key']>[0]) =>
      (await getAnswer(app, NATIVE, { json: codexBody(), headers: bearer((await app.key(input)).key) })).status
    expect(await ask({ assignedSourceIds: [other] })).toBe(429)
    expect(await ask({ assignedSourceIds: [id] })).toBe(200)
    expect(await ask({ allowedModels: [MODEL] })).toBe(429)
    expect(await ask({ allowedModels: [MODEL, 'llama-4'] })).toBe(200)
  })
})

describe('the pool’s error is returned', () => {
  const REASONING = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'abc' }
  test.each([
    ['a conversation with ciphertext', { input: [REASONING, ...codexBody().input] }],
    ['a compaction', { input: [...codexBody().input, { type: 'compaction_trigger' }] }],
    [
      'an uploaded file',
      { input: [{ type: 'message', role: 'user', content: [{ type: 'input_file', file_id: 'file_1' }] }] },
    ],
  ])('for %s', async (_what, more) => {
    const { app } = await prepared()
    const answer = await getAnswer(app, NATIVE, { json: codexBody('hello', more) })
    expect(answer.status).toBe(429)
    expect(JSON.parse(answer.text).error).toMatchObject({ type: 'usage_limit_reached' })
    expect(app.source.received).toHaveLength(0)
    await nothingLeft(app)
  })

  test.each([
    ['no source is set', { settings: { overflowSourceId: null } }],
    ['the source has no Responses', { source: { supportsResponses: false } }],
    ['the source lacks the model', { source: { models: ['llama-4'] } }],
  ] as [string, Prepared][])('if %s', async (_why, options) => {
    const { app } = await prepared(options)
    expect((await getAnswer(app, NATIVE, { json: codexBody() })).status).toBe(429)
    expect(app.source.received).toHaveLength(0)
  })

  test('if the source is disabled', async () => {
    const { app, id } = await prepared()
    await disableSource(app, id)
    expect((await getAnswer(app, NATIVE, { json: codexBody() })).status).toBe(429)
  })

  test('if one account is only busy or failing', async () => {
    const { app } = await prepared()
    app.members[1]!.sim.always(faults.serverError())
    const answer = await getAnswer(app, NATIVE, { json: codexBody() })
    expect(answer.status).toBeGreaterThanOrEqual(500)
    expect(app.source.received).toHaveLength(0)
  })

  test.each(['unreachable', 'server_error', 'html', 'endless'] as const)(
    'if the source fails too: %s, called once',
    async (fault) => {
      const { app } = await prepared()
      app.source.fail(fault)
      const answer = await getAnswer(app, NATIVE, { json: codexBody() })
      expect(answer.status).toBe(429)
      expect(answer.headers.get('x-sluice-source')).toBeNull()
      expect(JSON.parse(answer.text).error).toMatchObject({ type: 'usage_limit_reached', resets_at: expect.anything() })
      expect(app.source.received).toHaveLength(1)
      expect(await app.rows()).toMatchObject([{ sourceId: null, overflow: false, errorCode: 'usage_limit_reached' }])
      expect((await app.failedSelections()).map(({ code }) => code)).toEqual([
        'usage_limit_reached',
        expect.any(String),
      ])
      expect(app.bindings.overflow.recent()).toBeNull()
      await nothingLeft(app)
    },
  )

  test('if the source is at its limit of parallel requests', async () => {
    const { app } = await prepared({ source: { maxConcurrency: 1, models: [MODEL], timeoutSeconds: 600 } })
    app.source.fail('stall')
    const first = app.ask(NATIVE, { json: codexBody(), headers: { 'session-id': 'a' } })
    await app.clock.advance(1000)
    const second = await getAnswer(app, NATIVE, { json: codexBody(), headers: { 'session-id': 'b' } })
    expect(second.status).toBe(429)
    await app.clock.advance(700_000)
    await (await first).text()
    await nothingLeft(app)
  })
})

describe('the daily budget', () => {
  test('ends overflow when it is used up, and starts over the next day', async () => {
    const { app } = await prepared({ settings: { overflowCostUsdPerDay: 0.05 } })
    const statuses: number[] = []
    for (let n = 0; n < 4; n++) statuses.push((await getAnswer(app, NATIVE, { json: codexBody() })).status)
    expect(statuses).toEqual([200, 200, 200, 200]) // 64 micro-dollars each
    app.source.state.models.length = 0
    await app.change({ overflowCostUsdPerDay: 0.0001 })
    expect((await getAnswer(app, NATIVE, { json: codexBody() })).status).toBe(429)
    expect(app.source.received).toHaveLength(4)
    expect(app.bindings.overflow.recent()).toMatchObject({ count: 4, overBudget: 1, sourceName: 'Local' })
    app.source.state.models.push(MODEL)
    await app.change({ overflowCostUsdPerDay: 0.03 })
    for (const { sim } of app.members) sim.always(faults.usageLimit({ resetsAt: app.clock.now() + 100 * HOUR }))
    await app.clock.advance(25 * HOUR)
    expect((await getAnswer(app, NATIVE, { json: codexBody() })).status).toBe(200)
  })

  test('is not exceeded by parallel requests', async () => {
    const { app } = await prepared({ settings: { overflowCostUsdPerDay: 0.05 } })
    // each is expected to cost 2048 output tokens at 10 USD per million: 0.0205 USD
    const answers = Array.from({ length: 8 }, (_, n) =>
      getAnswer(app, NATIVE, { json: codexBody(), headers: { 'session-id': `s${n}` } }),
    )
    const statuses = (await Promise.all(answers)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(2)
    expect(app.source.received).toHaveLength(2)
    await nothingLeft(app)
  })

  test('counts spending from before a restart', async () => {
    const { app } = await prepared({ settings: { overflowCostUsdPerDay: 0.021 } })
    const ask = async () => (await getAnswer(app, NATIVE, { json: codexBody() })).status
    let served = 0
    while ((await ask()) === 200) served++
    expect(served).toBeGreaterThan(1)
    await app.restart()
    expect(await ask()).toBe(429)
    expect(app.source.received).toHaveLength(served)
  })

  test('counts requests without reported usage, also after a restart', async () => {
    const { app } = await prepared({ settings: { overflowCostUsdPerDay: 0.025 } })
    app.source.fail('no_usage')
    const ask = async () => (await getAnswer(app, NATIVE, { json: codexBody() })).status
    let served = 0
    while (served < 50 && (await ask()) === 200) served++
    expect(served).toBeLessThan(50)
    expect((await app.rows()).every(({ overflow, costMicros }) => !overflow || (costMicros ?? 0) > 0)).toBe(true)
    await app.restart()
    expect(await ask()).toBe(429)
  })

  test.each(['hang', 'stall'] as const)('counts a request cancelled by its client (%s)', async (fault) => {
    const { app, id } = await prepared({ settings: { overflowCostUsdPerDay: 0.05 } })
    app.source.fail(fault)
    const gone = new AbortController()
    const asked = getAnswer(app, NATIVE, { json: codexBody(), signal: gone.signal }).catch(() => null)
    await app.clock.advance(1000)
    expect(app.source.received).toHaveLength(1)
    gone.abort()
    await asked
    await app.clock.advance(1000)
    const [row] = await app.rows()
    expect(row).toMatchObject({ status: 'cancelled', sourceId: id, overflow: true, accountId: null })
    expect(row?.costMicros).toBeGreaterThan(0)
    await nothingLeft(app)
  })

  test('is impossible for a model without prices, which is then not used', async () => {
    const models = [{ model: MODEL }, { model: 'free', inputPer1m: 0, outputPer1m: 0 }]
    const { app } = await prepared({ settings: { overflowCostUsdPerDay: 5 }, source: { models } })
    const ask = async () => (await getAnswer(app, NATIVE, { json: codexBody() })).status
    expect(await ask()).toBe(429)
    expect(app.bindings.overflow.recent()).toMatchObject({ count: 0, overBudget: 1 })
    app.source.state.models.push('free')
    await app.change({ overflowModel: 'free' })
    expect(await ask()).toBe(200)
    await app.change({ overflowModel: null, overflowCostUsdPerDay: 0 })
    expect(await ask()).toBe(200)
  })

  test('a reservation is corrected once', async () => {
    const budget = await OwnBudget.open(testDb().db, 0)
    const limit = { limitMicros: 100, now: 0 }
    const charge = await budget.hold(60, limit)
    expect(await budget.hold(60, limit)).toBeNull()
    charge?.(10)
    charge?.(90)
    expect(await budget.hold(91, limit)).toBeNull()
    expect(await budget.hold(90, limit)).not.toBeNull()
    expect(await budget.hold(1, { limitMicros: 0, now: 0 })).not.toBeNull()
  })

  test('several processes share the budget of a day, and what a killed one held stays spent', async () => {
    const { db } = testDb()
    const clock = new ManualClock(DAY_MS)
    const processes = [0, 1, 2].map(() => new SharedBudget({ db, clock, log: silent }))
    const limit = { limitMicros: 100, now: DAY_MS }
    const held = await Promise.all(Array.from({ length: 12 }, (_, n) => processes[n % 3]!.hold(30, limit)))
    const charges = held.filter((charge) => charge !== null)
    expect(charges).toHaveLength(3)
    charges[0]?.(5)
    charges[0]?.(50)
    await commit(db, async () => {}) // after the correction
    expect(await processes[1]!.hold(36, limit)).toBeNull()
    expect(await processes[1]!.hold(35, limit)).not.toBeNull()
    const late = await processes[0]!.hold(1, { limitMicros: 0, now: DAY_MS }) // counted without a limit, too
    expect(await processes[2]!.hold(80, { ...limit, now: 2 * DAY_MS })).not.toBeNull()
    await clock.advance(DAY_MS)
    late?.(15)
    await commit(db, async () => {}) // after the correction
    expect(await processes[1]!.hold(6, { ...limit, now: 2 * DAY_MS })).toBeNull()
    expect(await processes[1]!.hold(5, { ...limit, now: 2 * DAY_MS })).not.toBeNull()
  })

  test('without the database, several processes use no overflow that has a limit', async () => {
    const { db, sqlite } = testDb()
    const budget = new SharedBudget({ db, clock: new ManualClock(0), log: silent })
    sqlite.close()
    expect(await budget.hold(1, { limitMicros: 100, now: 0 })).toBeNull()
    expect(await budget.hold(1, { limitMicros: 0, now: 0 })).not.toBeNull()
  })
})
