/** The overview in a running app: permissions, and the effect of changes. */
import { describe, expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { requestHours } from '../../db/schema/requests.ts'
import { getHealth } from '../../src/admin/overview-health.ts'
import { importAccount } from '../../src/model/accounts/account-intake.ts'
import type { AccountView } from '../../src/model/accounts/account-view.ts'
import { parseAuthJson } from '../../src/model/accounts/auth-json.ts'
import type { PoolPart } from '../../views/overview/pool.tsx'
import type { Overview } from '../../views/overview.tsx'
import { codexBody, getAnswer, testApp } from '../support/app.ts'
import { aRequestRow } from '../support/keys.ts'
import { type Browser, people, problem, REMOTE } from '../support/people.ts'
import { faults } from '../support/upstream/faults.ts'

const read = async <T>(browser: Pick<Browser, 'ask'>, path: string): Promise<T> =>
  (await (await browser.ask(`GET ${path}`)).json()) as T // as: the route's own value

const pool = async (browser: Pick<Browser, 'ask'>): Promise<PoolPart> => {
  const { pool } = await read<Overview>(browser, '/dashboard')
  if (!pool) throw new Error('this user sees no accounts')
  return pool
}

describe('overview permissions', () => {
  test('an operator sees names and links, a viewer and a guest see neither', async () => {
    const app = await testApp({ accounts: [{ email: 'mara.long@example.test' }] })
    const { as, guest } = people(app)
    const operator = await as('operator')
    await operator.ask(`POST /api/accounts/${app.members[0]?.id}/pause`)
    app.bindings.pool.apply(app.members[0]?.id ?? '', {
      kind: 'auth_failed',
      at: app.clock.now(),
      code: 'token_invalidated',
      evidence: '401 token_invalidated',
    })
    for (const [who, isMasked] of [
      [operator, false],
      [await as('viewer'), true],
      [await guest(REMOTE), true],
    ] as const) {
      const { now, pool } = await read<Overview>(who, '/dashboard')
      expect(JSON.stringify({ now, pool }).includes('mara.long@example.test')).toBe(!isMasked)
      expect(now.checklist === null).toBe(isMasked)
      expect(now.attention.every(({ action }) => (action === null) === isMasked)).toBe(true)
    }
  })

  test('keys are mentioned to users who can list them, in the fragments as on the page', async () => {
    const app = await testApp()
    const { as } = people(app)
    await app.key({ name: 'secret-project', expiresAt: app.clock.now() + 86_400_000 })
    const texts = async (who: Browser) =>
      (await read<Overview>(who, '/dashboard')).now.attention.map(({ text }) => text)
    expect((await texts(await as('admin'))).join()).toContain('secret-project')
    expect((await texts(await as('viewer'))).join()).not.toContain('secret-project')
  })

  test('a member has an overview of their own keys, and no pool without accounts', async () => {
    const app = await testApp()
    const { as, addRole } = people(app)
    expect(await read<object>(await as('member'), '/dashboard')).toMatchObject({
      keys: [],
      pool: null,
      canCreate: true,
    })
    await addRole('auditor', { 'dashboard:read': 'all' })
    const auditor = await as('auditor')
    const lost = { kind: 'auth_failed', at: app.clock.now(), code: 'token_invalidated', evidence: 'x' } as const
    app.bindings.pool.apply(app.members[0]?.id ?? '', lost)
    app.file.isNamed = false
    await app.clock.advance(15 * 60_000) // the first backup is overdue
    const matters = async (who: Browser) =>
      (await read<Overview>(who, '/dashboard')).now.attention.map(({ id }) => id.replace(/acc_.*/, ''))
    expect(await matters(await as('admin'))).toEqual(['database', 'sign-in-', 'backup'])
    expect(await matters(auditor)).toEqual(['database'])
    expect((await read<Overview>(auditor, '/dashboard')).pool).toBeNull()
  })

  test('the navigation has only what the visitor can open', async () => {
    const app = await testApp()
    const { as, guest } = people(app)
    const links = async (who: Browser, path = '/dashboard') => {
      const html = await (await who.ask(`GET ${path}`, { headers: { accept: 'text/html' } })).text()
      return [...html.matchAll(/<a [^>]*href="([^"]+)" data-go="(\w)"/g)].map(([, href]) => href)
    }
    const all = ['/dashboard', '/accounts', '/keys', '/logs', '/reports', '/settings']
    expect(await links(await as('admin'))).toEqual(all)
    expect(await links(await as('viewer'))).toEqual(all.filter((path) => path !== '/keys'))
    expect(await links(await as('member'))).toEqual(all.filter((path) => path !== '/accounts'))
    expect(await links(await guest(REMOTE))).toEqual(['/dashboard', '/accounts', '/logs', '/reports'])
  })
})

test('a request is in the tiles, in the account strip and, when it failed, among the recent errors', async () => {
  const app = await testApp()
  await getAnswer(app, 'POST /backend-api/codex/responses', { json: codexBody() })
  await getAnswer(app, 'POST /backend-api/codex/responses', { json: codexBody('x', { model: '' }) })
  await app.bindings.ledger.flush()
  const { tiles, errors } = (await read<Overview>(app, '/dashboard')).figures
  const rows = await app.rows()
  expect(tiles.requests.value).toBe(rows.length)
  expect(errors).toHaveLength(rows.filter(({ status }) => status === 'error').length)
  const { accounts } = await pool(app)
  expect(accounts[0]?.strip.at(-1)).toBe('ok')
})

test('repeated errors of the period are one row with a count, newest first, at most six', async () => {
  const app = await testApp()
  const now = app.clock.now()
  for (const hours of [30, 9, 1, 2, 3, 8, 4, 5, 6]) {
    const error = { keyId: null, status: 'error', errorCode: hours === 9 ? 'code_3' : `code_${hours}` } as const
    await aRequestRow(app.db, { ...error, id: `h${hours}`, startedAt: now - hours * 3_600_000 })
  }
  const shown = async (period: string) =>
    (await read<Overview>(app, `/dashboard?period=${period}`)).figures.errors.map(({ newest, count }) => [
      newest.id,
      count,
    ])
  const day = [...'12'].map((hours) => [`h${hours}`, 1])
  expect(await shown('24h')).toEqual([...day, ['h3', 2], ['h4', 1], ['h5', 1], ['h6', 1]])
  expect(await shown('1h')).toEqual([['h1', 1]])
  app.sqlite.run("DELETE FROM requests WHERE id NOT IN ('h30', 'h9')")
  app.bindings.figures.forgetLog()
  expect(await shown('24h')).toEqual([['h9', 1]])
  expect(await shown('7d')).toEqual([
    ['h9', 1],
    ['h30', 1],
  ])
})

test('errors with the same cause are one row with its accounts and models, newest first', async () => {
  const app = await testApp({ accounts: [{ email: 'ada@example.test' }, { email: 'alan@example.test' }] })
  const startedAt = app.clock.now()
  const add = (id: string, errorCode: string, member: number | null, model: string | null) =>
    aRequestRow(app.db, {
      id,
      keyId: null,
      startedAt: startedAt - id.charCodeAt(0) * 1000,
      status: 'error',
      errorCode,
      phase: 'upstream',
      accountId: member === null ? null : app.members[member]!.id,
      model,
    })
  await add('a', 'server_is_overloaded', 0, 'gpt-5.5')
  await add('b', 'server_is_overloaded', 0, 'gpt-5.5')
  await add('c', 'slow_down', 1, 'gpt-5.5') // another code for the same cause
  await add('d', 'server_is_overloaded', 1, 'gpt-5.4')
  await add('e', 'no_accounts', null, null)
  await add('f', 'something_new', 0, 'gpt-5.5') // unknown codes are causes of their own
  await add('g', 'something_else', 0, 'gpt-5.5')
  const { errors } = (await read<Overview>(app, '/dashboard')).figures
  const found = errors.map(({ count, newest, codes, accounts, models }) => [newest.id, count, codes, accounts, models])
  const [ada, alan] = ['ada@example.test', 'alan@example.test']
  expect(found).toEqual([
    ['a', 4, ['server_is_overloaded', 'slow_down'], [ada, alan], ['gpt-5.5', 'gpt-5.4']],
    ['e', 1, ['no_accounts'], [], []],
    ['f', 1, ['something_new'], [ada], ['gpt-5.5']],
    ['g', 1, ['something_else'], [ada], ['gpt-5.5']],
  ])
  const html = await (await app.ask('GET /dashboard', { headers: { accept: 'text/html' } })).text()
  expect(html).toContain('/logs?status=failed&amp;range=24h&amp;code=server_is_overloaded&amp;code=slow_down"')
  expect(html).toContain(`title="${ada}, ${alan}"`)
})

describe('periods', () => {
  const HOUR = 3_600_000
  const at = async (app: Awaited<ReturnType<typeof testApp>>, period: string) => {
    const { figures, pool } = await read<Overview>(app, `/dashboard?period=${period}`)
    const lengths = figures.chart?.bars.map(({ from, to }) => Date.parse(to) - Date.parse(from))
    return { figures, pool, barMinutes: [...new Set(lengths)].map((ms) => ms / 60_000), bars: lengths?.length }
  }
  const anOldRequest = (app: Awaited<ReturnType<typeof testApp>>, days = 60) =>
    aRequestRow(app.db, { id: 'old', keyId: null, startedAt: app.clock.now() - days * 24 * HOUR })

  test('the time axis begins with the first request, in cells of five minutes on the first day', async () => {
    const app = await testApp()
    expect((await at(app, '24h')).figures.chart).toBeNull()
    await getAnswer(app, 'POST /backend-api/codex/responses', { json: codexBody() })
    await app.bindings.ledger.flush()
    app.bindings.figures.forgetLog()
    for (const period of ['24h', '7d', '30d']) {
      const { figures, pool, barMinutes } = await at(app, period)
      expect([figures.chart?.bars.length, figures.chart?.cells, barMinutes]).toEqual([1, 12, [5]])
      expect([pool?.accounts[0]?.strip, pool?.slotMs, pool?.cells]).toEqual([['ok'], 300_000, 12])
    }
    const minute = await at(app, '1h')
    expect([minute.bars, minute.barMinutes, minute.figures.chart?.cells]).toEqual([1, [1], 12])
    await app.clock.advance('100m')
    expect((await at(app, '24h')).pool?.accounts[0]?.strip).toEqual(['ok', ...Array(20).fill('idle')])
  })

  test.each([
    ['1h', 60, 1],
    ['24h', 48, 30],
    ['7d', 56, 180],
    ['30d', 60, 720],
  ])('%s is %d bars of %d minutes', async (period, bars, minutes) => {
    const app = await testApp()
    await anOldRequest(app)
    await aRequestRow(app.db, { id: 'now', keyId: null, startedAt: app.clock.now(), status: 'cancelled' })
    const sums = {
      accountId: '',
      keyId: '',
      model: '',
      errors: 0,
      inputTokens: 0,
      cachedInputTokens: 0,
      outputTokens: 0,
    }
    const hour = app.clock.now() - (app.clock.now() % HOUR)
    await commit(app.db, async (tx) => {
      await tx
        .insert(requestHours)
        .values({ ...sums, hour, requests: 1, cancelled: 1, costMicros: 0, unpriced: 0 })
        .run()
    })
    const found = await at(app, period)
    expect([found.bars, found.barMinutes]).toEqual([bars, [minutes]])
    expect(found.figures.chart?.bars.at(-1)).toMatchObject({ answered: 0, cancelled: 1, errors: 0 })
    expect(found.pool?.accounts[0]?.strip).toHaveLength(bars)
  })

  test('tiles count the selected period', async () => {
    const app = await testApp()
    await anOldRequest(app)
    for (const minutes of [1, 30, 90, 23 * 60])
      await aRequestRow(app.db, { id: `m${minutes}`, keyId: null, startedAt: app.clock.now() - minutes * 60_000 })
    const requests = async (period: string) => (await at(app, period)).figures.tiles.requests
    expect(await requests('1h')).toMatchObject({ value: 2, before: 1 })
    expect((await requests('1h')).series).toHaveLength(30)
    expect((await requests('24h')).value).toBe(4)
  })

  test('tiles are compared only if the whole previous period is known', async () => {
    const app = await testApp()
    await anOldRequest(app, 1.5)
    await aRequestRow(app.db, { id: 'now', keyId: null, startedAt: app.clock.now() })
    const before = async (period: string) => (await at(app, period)).figures.tiles.requests.before
    expect([await before('1h'), await before('24h'), await before('7d')]).toEqual([0, null, null])
  })

  test.each(['99y', '1H', '24h,7d'])('%s is not a valid period', async (period) => {
    const answer = await (await testApp()).ask(`GET /dashboard?period=${period}`)
    expect(await problem(answer)).toEqual([422, 'validation_error'])
  })
})

test('with many accounts, those that need attention, are unavailable or most used come before paused ones', async () => {
  const app = await testApp({ accounts: Array.from({ length: 17 }, () => ({ plan: 'plus' as const })) })
  const at = app.clock.now()
  const ids = app.members.map(({ id }) => id)
  for (const [n, id] of ids.entries()) {
    const window = { usedPercent: n, windowMinutes: 300, resetAt: at + 3_600_000 }
    const windows = { fiveHour: window, weekly: null, monthly: null }
    app.bindings.pool.observe(id, { at, planType: 'plus', credits: null, windows })
  }
  const blocked = { kind: 'rate_limited', at, evidence: 'seen', resetAt: at + 60_000, retryAfterMs: null } as const
  app.bindings.pool.apply(ids[4] ?? '', blocked)
  app.bindings.pool.apply(ids[3] ?? '', { kind: 'auth_failed', at, code: 'invalid_grant', evidence: 'x' })
  const shown = async () => {
    const { accounts, total } = await pool(app)
    return [total, accounts.map(({ accountId }) => ids.indexOf(accountId))]
  }
  expect(await shown()).toEqual([17, [3, 4, 16, 15, 14, 13, 12, 11, 10]])
  const pausing = (n: number) => app.ask(`POST /api/accounts/${ids[n]}/pause`)
  for (let n = 16; n > 4; n -= 1) await pausing(n)
  expect(await shown()).toEqual([17, [3, 4, 2, 1, 0, 16, 15, 14, 13]])
})

test('requests that all fail are reported first, even with available accounts, until one succeeds', async () => {
  const app = await testApp()
  const turn = () => getAnswer(app, 'POST /backend-api/codex/responses', { json: codexBody() })
  const now = async () => (await read<Overview>(app, '/dashboard')).now
  for (const { sim } of app.members) sim.always(faults.forbidden())
  await turn()
  await turn()
  expect((await now()).health.level).toBe('serving')
  await turn()
  const { health, attention } = await now()
  expect([health.level, health.eligible]).toEqual(['failing', app.members.length])
  expect(attention[0]?.text).toBe('The last 3 requests failed. Last error: “ChatGPT rejected the request.”')
  for (const { sim } of app.members) sim.clearFaults()
  await turn()
  expect((await now()).health.level).toBe('serving')
})

describe('what happens next', () => {
  const NOW = 1000
  const used = (usedPercent: number, resetAt: number | null) => ({
    windows: { fiveHour: { usedPercent, windowMinutes: 300, resetAt }, weekly: null, monthly: null },
  })
  const next = (...accounts: Partial<AccountView>[]) =>
    getHealth(
      accounts.map((over, n) => {
        const usual = { displayName: `${n}`, status: 'active', until: null, nextCheckAt: null, ...used(0, null) }
        return { ...usual, ...over } as AccountView // as: only these fields of an account are used
      }),
      {
        now: NOW,
        isDraining: false,
        isLedgerHealthy: true,
        isFailing: false,
        firstEventMs: null,
        hasResetCredit: () => false,
        mayWrite: true,
      },
    ).next

  test.each<[string, Partial<AccountView>, string | undefined]>([
    ['a reset of a used window', used(1, NOW + 1), 'reset'],
    ['no reset of an unused window', used(0, NOW + 1), undefined],
    ['no reset in the past', used(1, NOW), undefined],
    ['the end of a block, not the reset after it', { until: NOW + 5, ...used(9, NOW + 1) }, 'back'],
    ['a check, if the end is unknown', { nextCheckAt: NOW + 5, ...used(9, NOW + 1) }, 'check'],
    ['nothing for a paused account', { status: 'paused', ...used(1, NOW + 1) }, undefined],
  ])('is %s', (_, account, event) => {
    expect(next(account)?.event).toBe(event as 'reset' | undefined)
  })

  test('is the earliest of all events', () => {
    expect(next({ until: NOW + 9 }, used(1, NOW + 5), used(1, null))).toMatchObject({ account: '1', event: 'reset' })
  })
})

test('the first steps show a key and its first response immediately', async () => {
  const app = await testApp()
  const steps = async () => (await read<Overview>(app, '/dashboard')).now.checklist
  expect(await steps()).toMatchObject({ hasAccount: true, hasKey: false, hasAnswered: false })
  const { key } = await app.key()
  await app.bindings.keys.reload()
  expect(await steps()).toMatchObject({ hasKey: true, hasAnswered: false })
  const headers = { authorization: `Bearer ${key}` }
  await getAnswer(app, 'POST /backend-api/codex/responses', { json: codexBody(), headers })
  await app.bindings.ledger.flush()
  expect(await steps()).toMatchObject({ hasKey: true, hasAnswered: true, password: 'open' })
  app.sqlite.run('DELETE FROM requests')
  expect(await steps(), 'what is done stays done when the log is untilEmpty').toMatchObject({ hasAnswered: true })
})

test('the commands of the first steps name a non-default folder, and mark an address that is a guess', async () => {
  const app = await testApp({ environment: { CODEX_LB_DATA_DIR: '/srv/sluice' } })
  const admin = await people(app).as('admin')
  const page = async (host: string) =>
    (await admin.ask('GET /dashboard', { headers: { accept: 'text/html', host } })).text()
  expect(await page('sluice.example.test')).toContain('data-guess="http://sluice.example.test"')
  const own = await page('localhost:2455')
  expect(own).not.toContain('data-guess')
  expect(own).toContain('SLUICE_DATA_DIR=&#39;/srv/sluice&#39; npm run sluice -- keys create')
})

test('an account with new tokens is no longer blocked in its strip', async () => {
  const app = await testApp()
  const { id, sim } = app.members[0]!
  await aRequestRow(app.db, { id: 'old', keyId: null, startedAt: app.clock.now() - 30 * 3_600_000 })
  app.bindings.pool.apply(id, { kind: 'auth_failed', at: app.clock.now(), code: 'invalid_grant', evidence: 'x' })
  await app.clock.advance('2h')
  const { sealer, random } = app.bindings
  const actor = { id: 'test', method: null, address: null, at: app.clock.now() }
  const imported = parseAuthJson(sim.authJson(), 'auth.json')
  await commit(app.db, (tx) => importAccount(tx, imported, { sealer, random, actor }))
  await app.clock.advance('3h')
  const { accounts } = await pool(app)
  expect(accounts[0]?.status).toBe('active')
  expect(accounts[0]?.strip.slice(-11)).toEqual([...Array(4).fill('blocked'), ...Array(7).fill('idle')])
})

test('the quota of an account that needs sign-in is not counted as available', async () => {
  const app = await testApp({ accounts: [{ plan: 'plus' }, { plan: 'plus' }] })
  const [full, gone] = app.members.map(({ id }) => id)
  const at = app.clock.now()
  const see = (id: string, usedPercent: number) =>
    app.bindings.pool.observe(id, {
      at,
      planType: 'plus',
      credits: null,
      windows: { fiveHour: { usedPercent, windowMinutes: 300, resetAt: at + 3_600_000 }, weekly: null, monthly: null },
    })
  see(full ?? '', 90)
  see(gone ?? '', 10)
  app.bindings.pool.apply(gone ?? '', { kind: 'auth_failed', at, code: 'invalid_grant', evidence: 'x' })
  const { meters } = await pool(app)
  expect(meters.map(({ window, usedPercent }) => [window, usedPercent])).toEqual([['5h', 90]])
})

test('users who cannot see keys do not learn whether there was one or it was deleted', async () => {
  const app = await testApp({ settings: { apiKeyAuthEnabled: true } })
  const { row, key } = await app.key({ name: 'ci' })
  app.members[0]!.sim.always({ status: 500 })
  const turn = { json: codexBody(), headers: { authorization: `Bearer ${key}` } }
  await app.clock.advance(0)
  const answer = app.ask('POST /backend-api/codex/responses', turn)
  await app.clock.advance('60s')
  await (await answer).text()
  await app.bindings.ledger.flush()
  const cells = async (who: Browser) => {
    const html = await (await who.ask('GET /dashboard', { headers: { accept: 'text/html' } })).text()
    return [...html.matchAll(/class="cell-key">(.*?)<\/td>/g)].map(([, cell]) => cell?.replace(/<[^>]+>/g, ''))
  }
  const { as } = people(app)
  expect([row.name, await cells(await as('operator')), await cells(await as('viewer'))]).toEqual(['ci', ['ci'], ['–']])
})
