/** A used-up quota of one model: other models continue, and the pool reports both. */
import { describe, expect, test } from 'bun:test'
import { failureFromEvent, failureFromResponse } from '../../src/proxy/exchange/classify.ts'
import { fetchCatalogs } from '../spec/catalog.ts'
import { codexBody, expectNothingLeft, getAnswer, testApp } from '../support/app.ts'
import { faults } from '../support/upstream/faults.ts'

const POST = 'POST /backend-api/codex/responses'
const HOUR_MS = 3_600_000
const AT = Date.UTC(2026, 0, 1)
const LIMITED = 'gpt-5.5'
const OTHER = 'codex-auto-review'

/** The account's own windows have room, those of the limit's own family are full. */
const familyHeaders = (at: number): Record<string, string> => ({
  'x-codex-active-limit': 'codex_bengalfox',
  'x-codex-primary-used-percent': '4',
  'x-codex-primary-window-minutes': '300',
  'x-codex-bengalfox-primary-used-percent': '100',
  'x-codex-bengalfox-primary-window-minutes': '300',
  'x-codex-bengalfox-primary-reset-at': String((at + 2 * HOUR_MS) / 1000),
})

interface Strike {
  knowsCatalogs?: boolean
  headers?: Record<string, string>
}

describe('a used-up quota of one model', () => {
  const struck = async (accounts = 2, { knowsCatalogs = true, headers = {} }: Strike = {}) => {
    const app = await testApp({ accounts })
    if (knowsCatalogs) await fetchCatalogs(app)
    const told = { ...familyHeaders(app.clock.now()), ...headers }
    for (const { sim } of app.members) sim.always(faults.usageLimit({ headers: told }))
    const turn = (model: string) => getAnswer(app, POST, { json: codexBody('hello', { model }) })
    const first = await turn(LIMITED)
    for (const { sim } of app.members) sim.always(null)
    return { app, turn, first }
  }
  const getError = ({ text }: { text: string }) => JSON.parse(text).error

  test('is reported with its reset, blocks no account, and is not retried until then', async () => {
    const { app, turn, first } = await struck()
    const resetsAt = app.clock.now() / 1000 + 2 * 3600
    for (const answer of [first, await turn(LIMITED)]) {
      expect(answer.status).toBe(429)
      expect(getError(answer)).toMatchObject({ type: 'usage_limit_reached', resets_at: resetsAt })
      expect(getError(answer).message).toStartWith(
        'All accounts have reached their usage limit for this model; it will reset at ',
      )
    }
    expect(await app.attemptRows()).toHaveLength(2)
    for (const { id } of app.members) expect(app.bindings.pool.get(id)?.state.status).toBe('active')
    expect((await turn(OTHER)).status).toBe(200)
    await app.clock.advance(2 * HOUR_MS)
    expect((await turn(LIMITED)).status).toBe(200)
    await expectNothingLeft(app)
  })

  test('applies to a model in no catalog, too', async () => {
    const { app, turn, first } = await struck(11, { knowsCatalogs: false })
    expect(first.status).toBe(503) // ten were tried, and the eleventh not yet
    for (const { sim } of app.members) sim.always(faults.usageLimit({ headers: familyHeaders(app.clock.now()) }))
    for (let n = 0; n < 2; n++) expect(getError(await turn(LIMITED)).type).toBe('usage_limit_reached')
    expect(await app.attemptRows()).toHaveLength(11)
    await expectNothingLeft(app)
  })

  test('has no reset if none was stated, and does not last too long', async () => {
    const untold = { 'x-codex-bengalfox-primary-reset-at': '' }
    const { first, app, turn } = await struck(2, { headers: untold })
    for (const answer of [first, await turn(LIMITED)]) {
      expect(answer.status).toBe(429)
      expect(getError(answer).resets_at).toBeUndefined()
    }
    await app.clock.advance(60_000)
    expect((await turn(LIMITED)).status).toBe(200)
    const far = await struck(1, { headers: { ...untold, 'retry-after': '99999999999' } })
    await far.app.clock.advance(60_000)
    expect((await far.turn(LIMITED)).status).toBe(200)
    await expectNothingLeft(app)
    await expectNothingLeft(far.app)
  })

  test('ends when the clock is set back', async () => {
    const { app, turn } = await struck(1)
    app.bindings.pool.tick()
    app.clock.set(-24 * HOUR_MS)
    app.bindings.pool.tick()
    expect((await turn(LIMITED)).status).toBe(200)
    await expectNothingLeft(app)
  })

  test('ends with a poll in which no such quota is full, and with no other', async () => {
    const { app, turn } = await struck(1)
    const { pool } = app.bindings
    const id = app.members[0]!.id
    const window = { usedPercent: 100, windowMinutes: 300, resetAt: app.clock.now() + HOUR_MS }
    const quota = { limitName: 'Spark', meteredFeature: 'codex_bengalfox', primary: window, secondary: null }
    const poll = {
      at: app.clock.now(),
      windows: { fiveHour: null, weekly: null, monthly: null },
      credits: null,
      planType: null,
    }
    for (const snapshot of [poll, { ...poll, additional: [quota] }]) {
      pool.observe(id, snapshot)
      expect((await turn(LIMITED)).status).toBe(429)
    }
    pool.observe(id, { ...poll, additional: [{ ...quota, primary: { ...window, usedPercent: 3 } }] })
    expect((await turn(LIMITED)).status).toBe(200)
    await expectNothingLeft(app)
  })
})

describe('which quota a rejection is about', () => {
  const error = { type: 'usage_limit_reached', message: 'The usage limit has been reached' }
  const ofStatus = (headers: Record<string, string>) =>
    failureFromResponse(429, new Headers(headers), JSON.stringify({ error }), AT)

  test.each<[string, Record<string, string>, boolean]>([
    ['of a family with its own windows', {}, true],
    ['of the account', { 'x-codex-active-limit': 'codex' }, false],
    ['of a plan, which has no windows of its own', { 'x-codex-active-limit': 'premium' }, false],
    ['of a name without a header', { 'x-codex-active-limit': 'codex bengalfox' }, false],
    ['while the account’s own is full, too', { 'x-codex-primary-used-percent': '100' }, false],
    ['while the account’s own is not mentioned', { 'x-codex-primary-used-percent': '' }, false],
  ])('%s', (_, more, isOfOneModel) => {
    const headers = { ...familyHeaders(AT), ...more }
    const wrapped = failureFromEvent({ type: 'error', status: 429, error, headers }, AT)
    for (const failure of [ofStatus(headers), wrapped]) expect(failure?.isOfOneModel).toBe(isOfOneModel)
    if (isOfOneModel) expect(wrapped?.resetsAt).toBe(AT + 2 * HOUR_MS)
  })
})
