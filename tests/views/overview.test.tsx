/** The overview page through its route: what a person reads, and what no page of ours may contain. */
import { expect, test } from 'bun:test'
import { goToDashboard, healthOf, showOverview } from '../../src/admin/overview.ts'
import type { AccountView } from '../../src/model/account-view.ts'
import type { RecentRequest } from '../../src/model/request-view.ts'
import { probe } from '../http/probe.ts'
import { testDb } from '../support/db.ts'
import { anAccount, aRequest, HOUR, MINUTE, NOW } from './samples.ts'

interface Scene {
  accounts?: AccountView[]
  requests?: RecentRequest[]
  draining?: boolean
  ledgerHealthy?: boolean
}

const scene = ({ accounts = [], requests = [], draining = false, ledgerHealthy = true }: Scene = {}) =>
  probe(
    (app) => {
      app.get('/', ...goToDashboard)
      app.get('/dashboard', ...showOverview)
    },
    {
      clock: { now: () => NOW, monotonic: () => 0 },
      db: testDb().db,
      pool: { describe: () => accounts },
      reader: { recentRequests: async (limit: number) => requests.slice(0, limit) },
      settings: { current: () => ({ apiKeyAuthEnabled: false, guestAccessEnabled: false }) },
      lifecycle: { draining },
      ledger: { healthy: ledgerHealthy },
    },
  )

const BROWSER = { accept: 'text/html' }
const page = async (what: Scene, headers: Record<string, string> = {}): Promise<string> =>
  (await scene(what).ask('GET /dashboard', { headers: { ...BROWSER, ...headers } })).text()

/** What a person reads: the text without its markup. */
const text = (html: string): string =>
  html
    .replace(/<(title|script|style)\b.*?<\/\1>/gs, ' ')
    .replace(/<[^>]+>/g, ' ')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')
    .replaceAll('&#39;', "'")
    .replace(/\s+/g, ' ')

const blocked = anAccount({
  accountId: 'acc_2',
  email: 'jonas@example.com',
  displayName: 'team-3',
  alias: 'team-3',
  status: 'rate_limited',
  eligible: false,
  why: 'Its 5-hour limit is used up',
  cause: 'usage_limit_reached',
  evidence: '429 usage_limit_reached',
  since: NOW - 14 * MINUTE,
  until: NOW + HOUR + 4 * MINUTE,
})

test('/ leads to the dashboard', async () => {
  const response = await scene().ask('GET /')
  expect([response.status, response.headers.get('location')]).toEqual([302, '/dashboard'])
})

test('other machines are led to where the first password is set', async () => {
  const response = await scene().ask('GET /dashboard', { headers: BROWSER, peer: '192.0.2.7' })
  expect([response.status, response.headers.get('location')]).toEqual([303, '/setup'])
})

test('an empty install shows the three first steps with commands for the address in use, and no empty tables', async () => {
  const read = text(await page({}))
  expect(read).toContain('Ready for the first account')
  for (const step of ['Add an account', 'Create a key', 'Point a client here']) expect(read).toContain(step)
  expect(read).toContain('curl -F auth_json=@"$HOME/.codex/auth.json" http://localhost:2455/api/accounts/import')
  expect(read).toContain('base_url = "http://localhost:2455/backend-api/codex"')
  expect(read).toContain('export OPENAI_BASE_URL=http://localhost:2455/v1')
  expect(read).not.toContain('Last requests')
})

test('with an account and no request yet, the remaining steps stay', async () => {
  const read = text(await page({ accounts: [anAccount()] }))
  expect(read).toContain('Add an account · done')
  expect(read).toContain('Create a key')
  expect(read).not.toContain('auth_json')
})

test('health is one sentence', async () => {
  const read = text(await page({ accounts: [anAccount(), blocked], requests: [aRequest()] }))
  expect(read).toContain(
    'Serving 1 of 2 accounts eligible next one back in 1 h 4 m (team-3) first token 0.92 s (median)',
  )
})

test('a blocked account answers what, why, on what evidence, since when and until when', async () => {
  const read = text(await page({ accounts: [blocked], requests: [aRequest()] }))
  expect(read).toContain('team-3 jonas@example.com Plus')
  expect(read).toContain('Rate limited Its 5-hour limit is used up · back in 1 h 4 m 429 usage_limit_reached, 14 m ago')
})

test('a window says what is left and when it resets; its bar fills with what is used', async () => {
  const html = await page({ accounts: [anAccount()], requests: [aRequest()] })
  expect(text(html)).toContain('5-hour 63 % left · resets in 2 h 10 m')
  expect(text(html)).toContain('Weekly 80 % left · resets in 4 d 3 h')
  expect(html).toMatch(/class="bar-fill" width="37"/)
})

test('usage that was never reported is a gap, not a zero', async () => {
  const windows = { fiveHour: null, weekly: null, monthly: null }
  const html = await page({ accounts: [anAccount({ windows })], requests: [aRequest()] })
  expect(text(html)).toContain('No usage reported yet')
  expect(html).not.toContain('bar-fill')
})

test('a request row tells who, where, what came of it, the failing phase, speed and cost', async () => {
  const failed = aRequest({
    id: 'r2',
    status: 'error',
    phase: 'stream',
    errorCode: 'stream_incomplete',
    costMicros: null,
  })
  const left = aRequest({ id: 'r3', status: 'cancelled', phase: 'first_event', firstEventMs: null, attempts: 2 })
  const read = text(await page({ accounts: [anAccount()], requests: [aRequest(), failed, left] }))
  expect(read).toContain('1 m ago my-laptop mara@example.com gpt-5.5 Done 0.92 s $0.0231')
  expect(read).toContain('Failed mid-stream stream_incomplete 0.92 s –')
  expect(read).toContain('Client left before the first token · 2 accounts tried – $0.0231')
})

test('what accounts, keys and clients wrote is text and nothing else', async () => {
  const evil = '<img src=x onerror=alert(1)>"\'&'
  const account = { ...blocked, displayName: evil, email: evil, planType: evil, why: evil, evidence: evil }
  const request = aRequest({
    status: 'error',
    keyName: evil,
    accountName: evil,
    model: evil,
    errorCode: evil,
    phase: evil,
  })
  const html = await page({ accounts: [account], requests: [request] })
  expect(html).not.toContain('<img')
  expect(html.split('&lt;img src=x onerror=alert(1)&gt;').length).toBeGreaterThan(8)
})

test('no page needs more than its policy allows: no inline script, style or handler', async () => {
  for (const what of [{}, { accounts: [anAccount(), blocked], requests: [aRequest()] }]) {
    const html = await page(what)
    expect(html).not.toMatch(/<script(?![^>]*\ssrc=)/)
    expect(html).not.toMatch(/<style|\sstyle=|\son[a-z]+=|hx-on|javascript:/)
  }
})

test('the page renews itself with the same region alone', async () => {
  const html = await page({}, { 'hx-request': 'true', 'hx-request-type': 'partial' })
  expect(html).toStartWith('<div id="overview"')
  expect(html).toContain('hx-get="/dashboard" hx-trigger="every 10s" hx-swap="outerMorph"')
})

test('a JSON client gets the same value, with times in ISO 8601', async () => {
  const response = await scene({ accounts: [blocked], requests: [aRequest()] }).ask('GET /dashboard')
  expect(await response.json()).toMatchObject({
    generatedAt: '2026-01-01T12:00:00.000Z',
    health: { level: 'blocked', eligible: 0, total: 1, next: { at: '2026-01-01T13:04:00.000Z', event: 'back' } },
    accounts: [{ until: '2026-01-01T13:04:00.000Z', windows: { fiveHour: { resetAt: '2026-01-01T14:10:00.000Z' } } }],
    requests: [{ startedAt: '2026-01-01T11:58:30.000Z' }],
  })
})

test('the theme cookie is honoured on the first paint, and nothing else in it', async () => {
  expect(await page({}, { cookie: 'theme=dark' })).toContain('data-theme="dark"')
  expect(await page({}, { cookie: 'theme=%22evil' })).not.toContain('data-theme')
})

test('the level follows the worst thing that is true', () => {
  const usual = { now: NOW, isDraining: false, isLedgerHealthy: true }
  const level = (accounts: AccountView[], over = {}) => healthOf(accounts, [], { ...usual, ...over }).level
  expect(level([])).toBe('empty')
  expect(level([anAccount(), blocked])).toBe('serving')
  expect(level([blocked])).toBe('blocked')
  expect(level([anAccount()], { isLedgerHealthy: false })).toBe('faulty')
  expect(level([anAccount()], { isDraining: true, isLedgerHealthy: false })).toBe('draining')
})

test('what only a person can repair is counted', () => {
  const accounts = [
    anAccount({ status: 'reauth_required', eligible: false }),
    anAccount({ status: 'deactivated' }),
    blocked,
  ]
  expect(healthOf(accounts, [], { now: NOW, isDraining: false, isLedgerHealthy: true }).needAttention).toBe(2)
})
