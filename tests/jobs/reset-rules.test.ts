/** Reset credits by rule: when one is used, and that it is tried once. */
import { describe, expect, test } from 'bun:test'
import { desc } from 'drizzle-orm'
import { commit } from '../../db/commit.ts'
import { auditLogs } from '../../db/schema/system.ts'
import { redeemByRule } from '../../src/jobs/redeem-by-rule.ts'
import { pollResetCredits } from '../../src/jobs/reset-credits.ts'
import { ACTIVE } from '../../src/model/accounts/account-state.ts'
import { claimResetAttempt } from '../../src/model/accounts/reset-attempts.ts'
import { planReset, type ResetRule, windowsPrint } from '../../src/model/accounts/reset-rule.ts'
import type { UsageSnapshot } from '../../src/model/accounts/usage-windows.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { jobDeps } from './deps.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000
const NOW = Date.UTC(2026, 0, 1)

const RULE: ResetRule = { policy: 'when_exhausted', keepCredits: 0, minBlockedMinutes: 60, percent: 95 }
const usage = (fiveHour: [used: number, hours: number], weekly: [used: number, hours: number]): UsageSnapshot => ({
  at: NOW,
  windows: {
    fiveHour: { usedPercent: fiveHour[0], windowMinutes: 300, resetAt: NOW + fiveHour[1] * HOUR_MS },
    weekly: { usedPercent: weekly[0], windowMinutes: 10_080, resetAt: NOW + weekly[1] * HOUR_MS },
    monthly: null,
  },
  credits: null,
  planType: null,
})
const credit = (id: string, hours: number | null) => ({
  id,
  status: 'available',
  expiresAt: hours === null ? null : NOW + hours * HOUR_MS,
})
const plan = (
  rule: Partial<ResetRule>,
  used: UsageSnapshot | null,
  credits = [credit('c2', null), credit('c1', 200), credit('c3', null)],
  now = NOW,
  state = ACTIVE,
  attempts: Parameters<typeof planReset>[1]['attempts'] = new Map(),
) => planReset({ ...RULE, ...rule }, { credits, usage: used, state, attempts }, now)

describe('the plan', () => {
  test('never: nothing, whatever there is', () => {
    expect(plan({ policy: 'never' }, usage([100, 3], [100, 50]))).toEqual({ kind: 'waiting', for: 'never' })
  })

  test('when_exhausted: the credit that expires first, once a window is used up and does not reset soon', () => {
    const first = { kind: 'planned', creditId: 'c1', at: NOW, left: 2 }
    expect(plan({}, usage([100, 3], [40, 50]))).toEqual(first as never)
    expect(plan({}, usage([20, 3], [100, 50]))).toEqual(first as never)
    expect(plan({}, usage([99, 3], [99, 50]))).toEqual({ kind: 'waiting', for: 'exhausted' })
    expect(plan({}, usage([100, 0.99], [40, 50]))).toEqual({ kind: 'waiting', for: 'reset_soon' })
    expect(plan({ minBlockedMinutes: 240 }, usage([100, 3], [40, 50]))).toEqual({ kind: 'waiting', for: 'reset_soon' })
    expect(plan({}, usage([100, 0.5], [100, 50]))).toEqual(first as never)
    expect(plan({}, usage([100, -1], [40, 50]))).toEqual({ kind: 'waiting', for: 'exhausted' })
    expect(plan({}, null)).toEqual({ kind: 'waiting', for: 'exhausted' })
  })

  test('when_exhausted: also an account that ChatGPT rejects before its figures say so', () => {
    const state = {
      ...ACTIVE,
      status: 'quota_exceeded' as const,
      cause: 'usage_limit_reached',
      until: NOW + 3 * HOUR_MS,
    }
    expect(plan({}, usage([97, 3], [40, 50]), undefined, NOW, state)).toMatchObject({ kind: 'planned', at: NOW })
  })

  test('at_percent: from that percentage', () => {
    const at = { policy: 'at_percent', percent: 80 } as const
    expect(plan(at, usage([80, 3], [40, 50]))).toMatchObject({ kind: 'planned', at: NOW })
    expect(plan(at, usage([79, 3], [40, 50]))).toEqual({ kind: 'waiting', for: 'percent' })
    expect(plan(at, usage([80, 0.5], [40, 50]))).toEqual({ kind: 'waiting', for: 'reset_soon' })
  })

  test('keepCredits: leaves that many', () => {
    const used = usage([100, 3], [40, 50])
    expect(plan({ keepCredits: 2 }, used)).toMatchObject({ kind: 'planned', left: 2 })
    expect(plan({ keepCredits: 3 }, used)).toEqual({ kind: 'waiting', for: 'kept' })
    expect(plan({}, used, [])).toEqual({ kind: 'waiting', for: 'no_credit' })
    expect(plan({}, used, [credit('old', -1)])).toEqual({ kind: 'waiting', for: 'no_credit' })
  })

  describe('after an attempt', () => {
    const used = usage([100, 3], [40, 50])
    const after = (attempts: Record<string, string | null>, rule: Partial<ResetRule> = {}) => {
      const rows = Object.entries(attempts).map(([id, nothingToReset]) => [id, { nothingToReset }] as const)
      const planned = plan(rule, used, undefined, NOW, ACTIVE, new Map(rows))
      return planned.kind === 'planned' ? [planned.creditId, planned.left] : planned.for
    }

    test('the next credit is used, because the one that failed may have been redeemed', () => {
      expect(after({ c1: null })).toEqual(['c2', 2])
      expect(after({ c1: null, c2: null })).toEqual(['c3', 2])
      expect(after({ c2: null })).toEqual(['c1', 2])
      expect(after({ c1: null, c2: null, c3: null })).toBe('attempted')
    })

    test('an attempted credit that is still there counts as kept', () => {
      expect(after({ c1: null }, { keepCredits: 2 })).toEqual(['c2', 2])
      expect(after({ c1: null }, { keepCredits: 3 })).toBe('kept')
    })

    test('nothing to reset: no credit until the windows change, then the same one', () => {
      expect(after({ c1: windowsPrint(used) })).toBe('nothing_to_reset')
      expect(after({ c1: null, c2: windowsPrint(used) })).toBe('nothing_to_reset')
      expect(after({ c1: windowsPrint(usage([99, 3], [40, 50])) })).toEqual(['c1', 2])
      expect(after({ gone: windowsPrint(used) })).toEqual(['c1', 2])
    })

    test('before_expiry: a credit that failed does not keep the next from its last day', () => {
      const credits = [credit('c1', 3), credit('c2', 20)]
      const attempts = new Map([['c1', { nothingToReset: null }]])
      const planned = plan({ policy: 'before_expiry' }, usage([20, 3], [96, 50]), credits, NOW, ACTIVE, attempts)
      expect(planned).toMatchObject({ kind: 'planned', creditId: 'c2', at: NOW + 20 * HOUR_MS - 10 * MINUTE_MS })
    })
  })

  describe('before_expiry', () => {
    const before = { policy: 'before_expiry' } as const
    const at = (used: UsageSnapshot, hours: number | null) => {
      const planned = plan(before, used, [credit('c1', hours)])
      return planned.kind === 'planned' ? (planned.at - NOW) / MINUTE_MS : planned.for
    }
    test('waits for the last day', () => {
      expect(at(usage([100, 3], [100, 50]), 25)).toBe('expiry')
      expect(at(usage([100, 3], [100, 50]), null)).toBe('expiry')
    })
    test('takes the last moment at which a window holds enough and does not reset soon', () => {
      expect(at(usage([20, 3], [96, 50]), 20)).toBe(20 * 60 - 10) // the window outlives the credit
      expect(at(usage([20, 3], [96, 10]), 20)).toBe(9 * 60)
      expect(at(usage([96, 3], [30, 50]), 20)).toBe(2 * 60)
    })
    test('ten minutes before the end also with less use, but not without any', () => {
      expect(at(usage([0, 3], [30, 50]), 20)).toBe(20 * 60 - 10)
      expect(at(usage([0, 3], [30, 50]), 0.1)).toBe(0)
      expect(at(usage([0, 3], [0, 50]), 0.1)).toBe('reset_soon')
      expect(at(usage([0, 3], [30, 0.5]), 0.1)).toBe('reset_soon')
    })
  })
})

const setup = async (patch: Record<string, unknown> = { resetPolicy: 'when_exhausted' }) => {
  const app = await testApp()
  const { id, sim } = app.members[0]!
  const now = app.clock.now()
  sim.setUsage({
    primary: { usedPercent: 100, windowMinutes: 300, resetAt: now + 4 * HOUR_MS },
    secondary: { usedPercent: 50, windowMinutes: 10_080, resetAt: now + 4 * DAY_MS },
  })
  sim.setResetCredits([
    { id: 'c1', expiresAt: now + 2 * DAY_MS },
    { id: 'c2', expiresAt: now + 3 * DAY_MS },
  ])
  const observe = () => {
    const { primary, secondary } = structuredClone(sim.usage ?? {}) // the stand-in changes its own
    app.bindings.pool.observe(id, {
      at: app.clock.now(),
      windows: { fiveHour: primary ?? null, weekly: secondary ?? null, monthly: null } as UsageSnapshot['windows'],
      credits: null,
      planType: null,
      additional: [],
    })
  }
  observe()
  const rounds = (bindings = app.bindings) => {
    const { pool, resetCredits, random, settings } = bindings
    const deps = { ...jobDeps({ bindings }), pool, resetCredits, random, settings }
    return () =>
      pollResetCredits(
        { ...deps, redeemByRule: (one) => redeemByRule(deps, one) },
        new Map(),
        new AbortController().signal,
      )
  }
  const edit = (more: Record<string, unknown>) => app.ask(`PATCH /api/accounts/${id}`, { json: more })
  return { app, id, sim, observe, rounds, edit, start: async () => void (await edit(patch)) }
}
const redeemed = (app: TestApp) =>
  app.upstream.requests
    .filter(({ path }) => path.endsWith('/consume'))
    .map(({ body }) => body as Record<string, string>)
const page = async (app: TestApp, id: string) =>
  (await app.ask(`GET /accounts/${id}`, { headers: { accept: 'text/html' } })).text()

describe('the reset job', () => {
  test('uses one credit, and leaves an audit row and an event', async () => {
    const { app, id, sim, rounds, start } = await setup()
    await start()
    const round = rounds()
    await round()
    await round()
    expect(redeemed(app)).toHaveLength(1)
    expect(redeemed(app)[0]).toMatchObject({
      credit_id: 'c1',
      redeem_request_id: expect.stringMatching(/^[0-9a-f]{64}$/),
    })
    expect(sim.usage?.primary?.usedPercent).toBe(0)
    const audit = await app.db.select().from(auditLogs).orderBy(desc(auditLogs.id)).all()
    expect(audit.filter(({ event }) => event === 'reset_credit_redeemed')).toMatchObject([
      { actor: 'system', target: id, details: { creditId: 'c1', code: 'reset', rule: 'when_exhausted' } },
    ])
    const events = await (await app.ask(`GET /accounts/${id}?tab=events`, { headers: { accept: 'text/html' } })).text()
    expect(events).toContain('Used by rule.')
  })

  test('does nothing for the default rule, and uses the settings if the account has no rule', async () => {
    const { app, rounds } = await setup()
    const round = rounds()
    await round()
    expect(redeemed(app)).toEqual([])
    await app.change({ resetPolicy: 'when_exhausted' })
    await app.bindings.settings.reload()
    await round()
    expect(redeemed(app)).toHaveLength(1)
  })

  test('an account with the rule never is left alone, whatever the settings say', async () => {
    const { app, rounds, start } = await setup({ resetPolicy: 'never' })
    await start()
    await app.change({ resetPolicy: 'when_exhausted' })
    await app.bindings.settings.reload()
    await rounds()()
    expect(redeemed(app)).toEqual([])
  })

  test('an attempt that fails is not repeated, not even after a restart', async () => {
    const { app, id, sim, rounds, start, observe } = await setup()
    await start()
    sim.next({ on: 'redeem', status: 503 })
    await rounds()()
    await app.restart()
    observe()
    await rounds()()
    expect(redeemed(app).map(({ credit_id }) => credit_id)).toEqual(['c1'])
    expect(await page(app, id)).toContain('will use a reset credit within a minute')
  })

  test('after a failed attempt the next credit gets its own, once the usage was read again', async () => {
    const { app, id, sim, rounds, start, observe } = await setup()
    await start()
    sim.always({ on: 'redeem', status: 503 })
    const round = rounds()
    for (let minute = 0; minute < 4; minute++) {
      await round()
      await app.clock.advance(MINUTE_MS)
      observe()
    }
    expect(redeemed(app).map(({ credit_id }) => credit_id)).toEqual(['c1', 'c2'])
    expect(await page(app, id)).toContain('tried each of these credits once')
  })

  test('the page says that there was nothing to reset', async () => {
    const { app, id, sim, rounds, start } = await setup()
    await start()
    const answer = { code: 'nothing_to_reset', windows_reset: 0, credit: { id: 'c1', status: null, redeemed_at: null } }
    sim.next({ on: 'redeem', status: 200, body: answer })
    await rounds()()
    expect(await page(app, id)).toContain('ChatGPT had nothing to reset')
  })

  test('claims no second credit until usage is reported after the first attempt', async () => {
    const { app, id } = await setup()
    const at = app.clock.now()
    const claim = (creditId: string, usageAt: number) =>
      commit<boolean>(app.db, (tx) =>
        claimResetAttempt(tx, { accountId: id, creditId, rule: 'when_exhausted' }, { at, print: '100', usageAt }),
      )
    expect([
      await claim('c1', at - 1),
      await claim('c2', at - 1),
      await claim('c2', at),
      await claim('c2', at + 1),
    ]).toEqual([true, false, false, true])
  })

  test('does not use a second credit for a window whose usage was not read again since the first', async () => {
    const { app, sim, rounds, start, observe } = await setup()
    await start()
    sim.always({ on: 'usage', status: 404, body: { detail: 'Not found' } })
    const round = rounds()
    for (let minute = 0; minute < 3; minute++) {
      await round()
      await app.clock.advance(MINUTE_MS)
    }
    expect(redeemed(app).map(({ credit_id }) => credit_id)).toEqual(['c1'])
    sim.setUsage({
      ...sim.usage,
      primary: { usedPercent: 100, windowMinutes: 300, resetAt: app.clock.now() + 5 * HOUR_MS },
    })
    observe()
    await round()
    expect(redeemed(app).map(({ credit_id }) => credit_id)).toEqual(['c1', 'c2'])
  })

  test('nor after a restart, with the usage that was stored before it', async () => {
    const { app, sim, rounds, start } = await setup()
    await start()
    sim.always({ on: 'usage', status: 404, body: { detail: 'Not found' } })
    await rounds()()
    await app.restart()
    expect(app.bindings.pool.all()[0]?.usage?.windows.fiveHour?.usedPercent).toBe(100)
    await rounds()()
    expect(redeemed(app).map(({ credit_id }) => credit_id)).toEqual(['c1'])
  })

  test('nothing_to_reset leaves the credit, and the next change tries again with the same request id', async () => {
    const { app, sim, rounds, start, observe } = await setup()
    await start()
    const answer = { code: 'nothing_to_reset', windows_reset: 0, credit: { id: 'c1', status: null, redeemed_at: null } }
    sim.next({ on: 'redeem', status: 200, body: answer })
    const round = rounds()
    await round()
    await round()
    expect(redeemed(app)).toHaveLength(1)
    sim.setUsage({
      ...sim.usage,
      primary: { usedPercent: 100, windowMinutes: 300, resetAt: app.clock.now() + 5 * HOUR_MS },
    })
    observe()
    await round()
    const [first, second, ...more] = redeemed(app)
    expect(second).toEqual(first as never)
    expect(more).toEqual([])
  })

  test('the page shows beforehand what the rule would do', async () => {
    const { app, id, rounds, start, edit } = await setup({ resetPolicy: 'before_expiry', minBlockedMinutes: 60 })
    await start()
    await rounds()()
    expect(await page(app, id)).toContain('will use a reset credit in the last 24 hours before it expires')
    await edit({ resetPolicy: 'at_percent', percent: 50, keepCredits: 1 })
    expect(await page(app, id)).toContain('will use a reset credit within a minute, with 1 left after that')
    await edit({ keepCredits: 2 })
    expect(await page(app, id)).toContain('because it keeps 2 for you')
    await edit({ resetPolicy: 'before_expiry', keepCredits: 0 })
    await app.clock.advance(30 * HOUR_MS)
    expect((await page(app, id)).replaceAll(/<[^>]*>/g, '')).toMatch(
      /will use a reset credit on [^.]*, with 1 left after that/,
    )
    expect(redeemed(app)).toEqual([])
  })

  test.each([
    ['resetPolicy', 'sometimes'],
    ['keepCredits', 10],
    ['minBlockedMinutes', -1],
    ['percent', 49],
    ['percent', 101],
  ])('PATCH account rejects %s %p and names it', async (name, value) => {
    const { edit } = await setup()
    const response = await edit({ [name]: value })
    expect(response.status).toBe(422)
    expect(JSON.stringify(await response.json())).toContain(name)
  })
})
