/** Moves with a price, from requests of a client to the log, the reports and the pages of the dashboard. */
import { describe, expect, test } from 'bun:test'
import type { Considered } from '../../src/model/log/skip-reasons.ts'
import type { Report } from '../../src/model/reports/reports.ts'
import { codexBody, expectNothingLeft, getAnswer, type TestApp, testApp } from '../support/app.ts'
import { answers, type TokenUsage } from '../support/upstream/script.ts'

const NATIVE = 'POST /backend-api/codex/responses'

/** One account that owns every conversation and is nearly used up, and one with 27 of 225 credits left. */
const setUp = async () => {
  const app = await testApp({ accounts: 2, settings: { routingStrategy: 'round_robin' } })
  const [own, other] = app.members as [TestApp['members'][0], TestApp['members'][0]]
  const use = (member: typeof own, usedPercent: number) => {
    const primary = { usedPercent, windowMinutes: 300, resetAt: app.clock.now() + 3_600_000 }
    const secondary = { usedPercent: 10, windowMinutes: 10_080, resetAt: app.clock.now() + 86_400_000 }
    member.sim.setUsage({ primary, secondary })
    const window = { fiveHour: primary, weekly: secondary, monthly: null }
    app.bindings.pool.observe(member.id, { at: app.clock.now(), windows: window, credits: null, planType: 'plus' })
  }
  const nearlyUseUp = async (usedPercent = 96) => {
    app.sqlite.run(`UPDATE accounts SET routing_policy = 'normal'`)
    await app.bindings.pool.reload()
    use(own, usedPercent)
  }
  use(other, 88)
  await app.prefer(own.id)
  const say = async (conversation: string, usage: Partial<TokenUsage>) => {
    app.upstream.script(() => answers.text('Hi', { usage: { inputTokens: 202_000, outputTokens: 500, ...usage } }))
    const answer = await getAnswer(app, NATIVE, { json: codexBody(), headers: { 'session-id': conversation } })
    expect(answer.status).toBe(200)
    await app.clock.advance(100)
    return (await app.rows()).at(-1)!
  }
  const considered = async () => (await app.attemptRows()).at(-1)!.considered as Considered[] // as: written by select()
  return { app, own, other, nearlyUseUp, say, considered }
}

const CACHED = { cachedTokens: 200_000 }
const HARDLY_CACHED = { inputTokens: 3_000, cachedTokens: 1_000 }

describe('on an account that is nearly used up', () => {
  test('a conversation with a large cache stays, and one with a small cache moves', async () => {
    const { app, own, other, nearlyUseUp, say, considered } = await setUp()
    await say('large', CACHED)
    await say('small', HARDLY_CACHED)
    await nearlyUseUp()

    const stayed = await say('large', CACHED)
    expect(stayed).toMatchObject({ accountId: own.id, moved: false, moveAvoidable: false })
    const page = await app.ask(`GET /logs/${stayed.id}`, { headers: { accept: 'text/html' } })
    expect(await page.text()).toContain('chosen; the next request is larger than what is left')
    const kept = await considered()
    // 54 units of the 9 credits that are left, and 200 of 27
    expect(kept.find(({ id }) => id === own.id)).toMatchObject({ stayPercent: 600, skipped: null })
    expect(kept.find(({ id }) => id === other.id)).toMatchObject({ movePercent: 740.74, skipped: 'move_costs_more' })

    expect(await say('small', { inputTokens: 3_000, cachedTokens: 0 })).toMatchObject({
      ...{ accountId: other.id, moved: true, moveAvoidable: false },
    })
    const moved = await considered()
    // 5 units, the least that a request counts, of 9 credits, and 1 of 27
    expect(moved.find(({ id }) => id === own.id)).toMatchObject({ stayPercent: 55.56 })
    expect(moved.find(({ id }) => id === other.id)).toMatchObject({ movePercent: 3.7, skipped: null })
    await expectNothingLeft(app)
  })

  test('the price is known after a restart', async () => {
    const { app, own, nearlyUseUp, say, considered } = await setUp()
    await say('large', {}) // nothing is cached yet
    await say('large', CACHED)
    await nearlyUseUp()
    await app.restart()
    expect(await say('large', CACHED)).toMatchObject({ accountId: own.id, moved: false })
    expect((await considered()).map(({ stayPercent, movePercent }) => stayPercent ?? movePercent)).toEqual([
      600, 740.74,
    ])
  })

  test('the price is that of the last request, or of an earlier one that had more cached', async () => {
    const { app, own, other, nearlyUseUp, say } = await setUp()
    await say('a', CACHED)
    await app.clock.advance(5 * 60_000)
    await say('a', HARDLY_CACHED)
    await say('b', CACHED)
    await say('b', HARDLY_CACHED) // a title
    await nearlyUseUp(97)
    expect((await say('a', {})).accountId).toBe(other.id)
    expect((await say('b', {})).accountId).toBe(own.id)
  })
})

test('the reports count moves, their uncached tokens, and those that were avoidable', async () => {
  const { app, own, nearlyUseUp, say } = await setUp()
  for (const conversation of ['two', 'three']) await say(conversation, HARDLY_CACHED)
  await say('one', CACHED)
  app.sqlite.run('UPDATE accounts SET max_used_percent_primary = 50 WHERE id = ?', [own.id])
  await nearlyUseUp(60)
  await say('one', { inputTokens: 210_000, cachedTokens: 4_000 }) // avoidable: its account is only reserved
  await nearlyUseUp(100)
  await say('two', { inputTokens: 60_000, cachedTokens: 0 }) // its account is used up; 1,000 were cached
  await say('three', { inputTokens: 4_000, cachedTokens: 3_600 }) // less than was cached is new
  await say('one', { inputTokens: 10_000, cachedTokens: 9_000 }) // has moved already
  const { summary, byModel, daily } = (await (await app.ask('GET /api/reports')).json()) as Report // as: checked below
  const expected = { moves: 3, avoidableMoves: 1, movedInputTokens: 201_400 }
  expect(summary).toMatchObject(expected)
  expect(byModel).toMatchObject([expected])
  expect(daily.at(-1)).toMatchObject(expected)
  const own_ = (await (await app.ask(`GET /api/reports?account_id=${own.id}`)).json()) as Report // as above
  expect(own_.summary).toMatchObject({ moves: 0, avoidableMoves: 0, movedInputTokens: 0 })

  const csv = await (await app.ask('GET /api/reports?format=csv')).text()
  expect(csv.split('\r\n')[0]).toEndWith(',moves,avoidable_moves,moved_input_tokens')
  expect(csv).toContain(',3,1,201400')
  const page = async (path: string) => {
    const html = await (await app.ask(`GET ${path}`, { headers: { accept: 'text/html' } })).text()
    return html.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ')
  }
  expect(await page('/reports')).toContain('3 moves cost 201 k uncached tokens, 1 was avoidable.')
  const [, , , first] = await app.rows()
  expect(await page(`/logs/conversations/${first!.conversationHash}`)).toContain(
    '1 move, 200,000 tokens sent uncached, 1 avoidable',
  )
  expect(await page(`/logs/${first!.id}`)).toContain(
    'reached until 2026-01-01 01:00:00 UTC; staying uses 60 % of its remaining quota',
  )
  const entry = (await (await app.ask(`GET /api/request-logs/${first!.id}`)).json()) as Record<string, unknown> // as: JSON
  expect(entry).toMatchObject({ movedAccount: true, moveAvoidable: true })
  expect(entry).toHaveProperty('attempts[0].considered[0].stayPercent', 60)
})
