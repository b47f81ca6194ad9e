/** The overview through the whole service: who sees what, and what a change does to it. */
import { describe, expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import type { FiguresPart, NowPart, Overview, PoolPart } from '../../src/admin/overview.ts'
import { healthOf } from '../../src/admin/overview-health.ts'
import { importAccount } from '../../src/model/account-intake.ts'
import type { AccountView } from '../../src/model/account-view.ts'
import { parseAuthJson } from '../../src/model/auth-json.ts'
import { answerOf, codexBody, testApp } from '../support/app.ts'
import { aRequestRow } from '../support/keys.ts'
import { type Browser, people, problem, REMOTE } from '../support/people.ts'
import { faults } from '../support/upstream/faults.ts'

const read = async <T>(browser: Pick<Browser, 'ask'>, path: string): Promise<T> =>
  (await (await browser.ask(`GET ${path}`)).json()) as T // as: the route's own value

describe('who sees what', () => {
  test('an operator sees names and ways, a viewer and a guest neither', async () => {
    const app = testApp({ accounts: [{ email: 'mara.long@example.test' }] })
    const { as, guest } = people(app)
    const operator = as('operator')
    await operator.ask(`POST /api/accounts/${app.members[0]?.id}/pause`)
    app.bindings.pool.apply(app.members[0]?.id ?? '', {
      kind: 'auth_failed',
      at: app.clock.now(),
      code: 'token_invalidated',
      evidence: '401 token_invalidated',
    })
    for (const [who, isMasked] of [
      [operator, false],
      [as('viewer'), true],
      [guest(REMOTE), true],
    ] as const) {
      const { now, pool } = await read<Overview>(who, '/dashboard')
      expect(JSON.stringify({ now, pool }).includes('mara.long@example.test')).toBe(!isMasked)
      expect(now.checklist === null).toBe(isMasked)
      expect(now.attention.every(({ action }) => (action === null) === isMasked)).toBe(true)
    }
  })

  test('keys are told of to those who may list them, in the parts as on the page', async () => {
    const app = testApp()
    const { as } = people(app)
    app.key({ name: 'secret-project', expiresAt: app.clock.now() + 86_400_000 })
    const texts = async (who: Browser) => (await read<NowPart>(who, '/dashboard/now')).attention.map(({ text }) => text)
    expect((await texts(as('admin'))).join()).toContain('secret-project')
    expect((await texts(as('viewer'))).join()).not.toContain('secret-project')
  })

  test('a member has no overview, nor has anybody without accounts the pool', async () => {
    const app = testApp()
    const { as, addRole } = people(app)
    for (const path of ['/dashboard', '/dashboard/now', '/dashboard/accounts', '/dashboard/figures'])
      expect(await problem(await as('member').ask(`GET ${path}`))).toEqual([403, 'permission_required'])
    addRole('auditor', { 'dashboard:read': 'all' })
    const auditor = as('auditor')
    const lost = { kind: 'auth_failed', at: app.clock.now(), code: 'token_invalidated', evidence: 'x' } as const
    app.bindings.pool.apply(app.members[0]?.id ?? '', lost)
    app.file.isNamed = false
    const matters = async (who: Browser) =>
      (await read<NowPart>(who, '/dashboard/now')).attention.map(({ id }) => id.replace(/acc_.*/, ''))
    expect(await matters(as('admin'))).toEqual(['database', 'sign-in-', 'backup'])
    expect(await matters(auditor)).toEqual(['database'])
    expect((await read<Overview>(auditor, '/dashboard')).pool).toBeNull()
    expect(await problem(await auditor.ask('GET /dashboard/accounts'))).toEqual([403, 'permission_required'])
  })

  test('the navigation has what the visitor may open, and no more', async () => {
    const app = testApp()
    const { as, guest } = people(app)
    const links = async (who: Browser, path = '/dashboard') => {
      const html = await (await who.ask(`GET ${path}`, { headers: { accept: 'text/html' } })).text()
      return [...html.matchAll(/<a [^>]*href="([^"]+)" data-go="(\w)"/g)].map(([, href]) => href)
    }
    const all = ['/dashboard', '/accounts', '/keys', '/logs', '/reports', '/settings']
    expect(await links(as('admin'))).toEqual(all)
    expect(await links(as('viewer'))).toEqual(all.filter((path) => path !== '/keys'))
    expect(await links(as('member'), '/settings')).toEqual(['/settings'])
    expect(await links(guest(REMOTE))).toEqual(['/dashboard', '/accounts', '/logs', '/reports'])
  })
})

test('a turn is in the tiles, in the strip and, when it failed, among the last errors', async () => {
  const app = testApp()
  await answerOf(app, 'POST /backend-api/codex/responses', { json: codexBody() })
  await answerOf(app, 'POST /backend-api/codex/responses', { json: codexBody('x', { model: '' }) })
  app.bindings.ledger.flush()
  const { tiles, errors } = await read<FiguresPart>(app, '/dashboard/figures')
  const rows = app.rows()
  expect(tiles.requests.value).toBe(rows.length)
  expect(errors).toHaveLength(rows.filter(({ status }) => status === 'error').length)
  const { accounts } = await read<PoolPart>(app, '/dashboard/accounts')
  expect(accounts[0]?.strip.at(-1)).toBe('ok')
  expect(accounts[0]?.strip).toHaveLength(48)
})

test('of many errors the newest five of the day are shown, from whichever half hour', async () => {
  const app = testApp()
  const now = app.clock.now()
  for (const hours of [30, 9, 1, 2, 3, 8, 4])
    aRequestRow(app.db, { id: `h${hours}`, keyId: null, startedAt: now - hours * 3_600_000, status: 'error' })
  const ids = async () => (await read<FiguresPart>(app, '/dashboard/figures')).errors.map(({ id }) => id)
  expect(await ids()).toEqual(['h1', 'h2', 'h3', 'h4', 'h8'])
  app.sqlite.run("DELETE FROM requests WHERE id NOT IN ('h30', 'h9')")
  app.bindings.figures.forgetLog()
  expect(await ids()).toEqual(['h9'])
})

test('of many accounts those are shown that somebody must see to, that cannot be asked, and the fullest, before what is paused', async () => {
  const app = testApp({ accounts: Array.from({ length: 17 }, () => ({ plan: 'plus' as const })) })
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
    const { accounts, total } = await read<PoolPart>(app, '/dashboard/accounts')
    return [total, accounts.map(({ accountId }) => ids.indexOf(accountId))]
  }
  expect(await shown()).toEqual([17, [3, 4, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7]])
  const pausing = (n: number) => app.ask(`POST /api/accounts/${ids[n]}/pause`)
  for (let n = 16; n > 4; n -= 1) await pausing(n)
  expect(await shown()).toEqual([17, [3, 4, 2, 1, 0, 16, 15, 14, 13, 12, 11, 10]])
})

test('turns that all fail are said first, though accounts can be asked, until one is answered', async () => {
  const app = testApp()
  const turn = () => answerOf(app, 'POST /backend-api/codex/responses', { json: codexBody() })
  const now = () => read<NowPart>(app, '/dashboard/now')
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
    healthOf(
      accounts.map((over, n) => {
        const usual = { displayName: `${n}`, status: 'active', until: null, nextCheckAt: null, ...used(0, null) }
        return { ...usual, ...over } as AccountView // as: of an account nothing else is looked at
      }),
      { now: NOW, isDraining: false, isLedgerHealthy: true, isFailing: false, firstEventMs: null },
    ).next

  test.each<[string, Partial<AccountView>, string | undefined]>([
    ['a reset of what was used', used(1, NOW + 1), 'reset'],
    ['no reset of what was not', used(0, NOW + 1), undefined],
    ['no reset that is over', used(1, NOW), undefined],
    ['the end of a block, and not the reset behind it', { until: NOW + 5, ...used(9, NOW + 1) }, 'back'],
    ['a check, where the end is not known', { nextCheckAt: NOW + 5, ...used(9, NOW + 1) }, 'check'],
    ['nothing, of one that is paused', { status: 'paused', ...used(1, NOW + 1) }, undefined],
  ])('is %s', (_, account, event) => {
    expect(next(account)?.event).toBe(event as 'reset' | undefined)
  })

  test('is the first of all', () => {
    expect(next({ until: NOW + 9 }, used(1, NOW + 5), used(1, null))).toMatchObject({ account: '1', event: 'reset' })
  })
})

test('the first steps follow a key and its first answer at once', async () => {
  const app = testApp()
  const steps = async () => (await read<NowPart>(app, '/dashboard/now')).checklist
  expect(await steps()).toMatchObject({ hasAccount: true, hasKey: false, hasAnswered: false })
  const { key } = app.key()
  app.bindings.keys.reload()
  expect(await steps()).toMatchObject({ hasKey: true, hasAnswered: false })
  const headers = { authorization: `Bearer ${key}` }
  await answerOf(app, 'POST /backend-api/codex/responses', { json: codexBody(), headers })
  app.bindings.ledger.flush()
  expect(await steps()).toMatchObject({ hasKey: true, hasAnswered: true, password: 'open' })
  app.sqlite.run('DELETE FROM requests')
  expect(await steps(), 'what is done stays done when the log is emptied').toMatchObject({ hasAnswered: true })
})

test('the commands of the first steps name the folder where it is not the usual one, and mark an address that is a guess', async () => {
  const app = testApp({ environment: { CODEX_LB_DATA_DIR: '/srv/sluice' } })
  const admin = people(app).as('admin')
  const page = async (host: string) =>
    (await admin.ask('GET /dashboard', { headers: { accept: 'text/html', host } })).text()
  expect(await page('sluice.example.test')).toContain('data-guess="http://sluice.example.test"')
  const own = await page('localhost:2455')
  expect(own).not.toContain('data-guess')
  expect(own).toContain('SLUICE_DATA_DIR=&#39;/srv/sluice&#39; npm run sluice -- keys create')
})

test('an account that got new tokens is blocked no longer in its strip', async () => {
  const app = testApp()
  const { id, sim } = app.members[0]!
  app.bindings.pool.apply(id, { kind: 'auth_failed', at: app.clock.now(), code: 'invalid_grant', evidence: 'x' })
  await app.clock.advance('2h')
  const { sealer, random } = app.bindings
  const actor = { id: 'test', method: null, address: null, at: app.clock.now() }
  const imported = parseAuthJson(sim.authJson(), 'auth.json')
  commit(app.db, (tx) => importAccount(tx, imported, { sealer, random, actor }))
  await app.clock.advance('3h')
  const { accounts } = await read<PoolPart>(app, '/dashboard/accounts')
  expect(accounts[0]?.status).toBe('active')
  expect(accounts[0]?.strip.slice(-11)).toEqual([...Array(4).fill('blocked'), ...Array(7).fill('idle')])
})

test('what is left in an account that must sign in is not left in the pool', async () => {
  const app = testApp({ accounts: [{ plan: 'plus' }, { plan: 'plus' }] })
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
  const { meters } = await read<PoolPart>(app, '/dashboard/accounts')
  expect(meters.map(({ window, usedPercent }) => [window, usedPercent])).toEqual([['5h', 90]])
})

test('who may not know the keys is told neither that there was none nor that it is gone', async () => {
  const app = testApp({ settings: { apiKeyAuthEnabled: true } })
  const { row, key } = app.key({ name: 'ci' })
  app.members[0]!.sim.always({ status: 500 })
  const turn = { json: codexBody(), headers: { authorization: `Bearer ${key}` } }
  await app.clock.advance(0)
  const answer = app.ask('POST /backend-api/codex/responses', turn)
  await app.clock.advance('60s')
  await (await answer).text()
  app.bindings.ledger.flush()
  const cells = async (who: Browser) => {
    const html = await (await who.ask('GET /dashboard', { headers: { accept: 'text/html' } })).text()
    return [...html.matchAll(/class="cell-key">(.*?)<\/td>/g)].map(([, cell]) => cell?.replace(/<[^>]+>/g, ''))
  }
  const { as } = people(app)
  expect([row.name, await cells(as('operator')), await cells(as('viewer'))]).toEqual(['ci', ['ci'], ['–']])
})
