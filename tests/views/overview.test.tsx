/** The overview page through its route: its content, and the security requirements of every page. */
import { describe, expect, test } from 'bun:test'
import { goToDashboard, showOverview } from '../../src/admin/overview.ts'
import { getHealth } from '../../src/admin/overview-health.ts'
import type { AccountView } from '../../src/model/accounts/account-view.ts'
import type { LogEntry } from '../../src/model/log/request-log-entry.ts'
import type { KeyFact, Slot } from '../../src/model/overview/overview.ts'
import { SLOT_MS } from '../../src/model/overview/overview-slots.ts'
import { getTiles } from '../../src/model/overview/overview-tiles.ts'
import { probe } from '../http/probe.ts'
import { testDb } from '../support/db.ts'
import { anAccount, aRequest, HOUR, MINUTE, NOW } from './samples.ts'

interface Scene {
  accounts?: AccountView[]
  errors?: LogEntry[]
  keys?: KeyFact[]
  draining?: boolean
  ledgerHealthy?: boolean
  guests?: boolean
  backups?: { at: number }[]
  /** The account that has a reset credit. */
  resettable?: string
}

/** Four turns a half hour of the last day, two of the day before; those that failed are in the last half hour. */
const getSlots = (accounts: readonly AccountView[], errors: LogEntry[]): Slot[] =>
  Array.from({ length: 96 }, (_, index) => ({
    at: NOW - (95 - index) * SLOT_MS,
    requests: index < 48 ? 2 : 4,
    errors: index === 95 ? errors.length : 0,
    inputTokens: 1000,
    cachedInputTokens: 250,
    outputTokens: 50,
    costMicros: 10_000,
    conversations: 1,
    begun: 1,
    firstEventMs: [920],
    accounts: new Map(accounts.map(({ accountId }) => [accountId, { ok: 4, errors: index % 2 }])),
    cancelled: 0,
  }))

const getFigures = ({ accounts = [], errors = [], keys = [] }: Scene) => {
  const slots = getSlots(accounts, errors)
  const groups = errors.map((newest) => ({
    count: 1,
    newest,
    codes: [],
    accountIds: newest.accountId === null ? [] : [newest.accountId],
    models: newest.model === null ? [] : [newest.model],
  }))
  const present = { conversations: { now: 3, before: 2 }, keys, errors: groups, rejected: [], stateChanges: new Map() }
  const shown = { period: '24h', slotMs: SLOT_MS, slots: slots.slice(-48), cells: 48 } as const
  return { ...shown, present, tiles: getTiles({ slots, present }) }
}

const scene = (what: Scene = {}) => {
  const {
    accounts = [],
    draining = false,
    ledgerHealthy = true,
    guests = false,
    backups = [{ at: NOW - HOUR }],
    resettable,
  } = what
  return probe(
    (app) => {
      app.get('/', ...goToDashboard)
      app.get('/dashboard', ...showOverview)
    },
    {
      clock: { now: () => NOW, monotonic: () => 0 },
      db: testDb().db,
      pool: { all: () => [], describe: () => accounts },
      figures: { now: async () => getFigures(what) },
      settings: { current: () => ({ apiKeyAuthEnabled: false, guestAccessEnabled: guests, ...NO_THRESHOLDS }) },
      resetCredits: {
        of: (id: string) => (resettable === id ? [{ id: 'c', status: 'available', expiresAt: null }] : null),
      },
      captures: { running: () => [] },
      alerts: { for: () => [], isAuditBroken: false, failingChannels: [] },
      overflow: { recent: () => null },
      egress: { failing: () => [] },
      lifecycle: { draining },
      ledger: { healthy: ledgerHealthy, pending: 0 },
      ops: {
        backups: { list: async () => backups, newestAt: backups[0]?.at ?? null },
        lostDatabase: () => null,
        outage: { current: null },
      },
    },
  )
}

const NO_THRESHOLDS = { alertMinAccounts: 0, alertAccountPercent: 0, alertBlockedHours: 0 }
const BROWSER = { accept: 'text/html' }
const page = async (what: Scene, headers: Record<string, string> = {}): Promise<string> =>
  (await scene(what).ask('GET /dashboard', { headers: { ...BROWSER, ...headers } })).text()

/** The visible text, without markup. */
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

test('/ redirects to the dashboard', async () => {
  const response = await scene().ask('GET /')
  expect([response.status, response.headers.get('location')]).toEqual([302, '/dashboard'])
})

test('other machines are sent to the page where the first password is set', async () => {
  const response = await scene().ask('GET /dashboard', { headers: BROWSER, peer: '192.0.2.7' })
  expect([response.status, response.headers.get('location')]).toEqual([303, '/setup'])
})

test('an empty install shows the first steps, commands for the address in use, and nothing else', async () => {
  const html = await page({})
  const read = text(html)
  expect(read).toContain('No accounts yet')
  for (const step of ['Set a password', 'Add an account', 'Create a key and test it']) expect(read).toContain(step)
  expect(read).toContain('npm run sluice -- accounts import ~/.codex/auth.json')
  expect(read).toContain('npm run sluice -- keys create --name my-laptop')
  expect(read, 'the API asks for a session once there is a password').not.toContain('curl ')
  expect(html).not.toMatch(/class="(tiles|list requests|pool-meters)"|id="strips"/)
})

const aKey = (): KeyFact => ({
  id: 'key_1',
  name: 'ci',
  isActive: true,
  expiresAt: null,
  limits: [],
})

test('the first steps follow progress, and stay hidden once dismissed', async () => {
  const read = text(await page({ accounts: [anAccount()] }))
  expect(read).toContain('Add an account · done')
  expect(read).not.toContain('accounts import')
  expect(await page({ accounts: [anAccount()] }, { cookie: 'checklist=off' })).not.toContain('checklist-title')
})

test('health is one sentence', async () => {
  const read = text(await page({ accounts: [anAccount(), blocked] }))
  expect(read).toContain(
    'Serving 1 of 2 accounts available next account back in 1 h 4 min (team-3) first token 0.92 s, median',
  )
})

test('a blocked account shows its state and its end', async () => {
  const read = text(await page({ accounts: [anAccount(), blocked] }))
  expect(read).toContain('team-3 Rate limited back in 1 h 4 min')
})

test('what needs attention is at the top, with a link', async () => {
  const lost = anAccount({ accountId: 'acc_9', displayName: 'mara', status: 'reauth_required', eligible: false })
  const html = await page({ accounts: [anAccount(), lost], backups: [] })
  expect(text(html)).toContain(
    'mara needs sign-in. It is not used until you sign in again. Sign in again No backup yet Back up now',
  )
  expect(html).toContain('href="/accounts/new/browser?account=acc_9"')
})

test('the pool has one bar per window: the remaining share, the tick of even pace, and how long it lasts', async () => {
  const half = { usedPercent: 75, resetAt: NOW + 2.5 * HOUR, windowMinutes: 300 }
  const html = await page({ accounts: [anAccount({ windows: { fiveHour: half, weekly: null, monthly: null } })] })
  const read = text(html)
  expect(read).toContain('5-hour 25 % left 56 of 225 credits')
  expect(read).toContain('on pace to run out at 12:50 UTC ( in 50 min )')
  expect(read).toContain('next reset in 2 h 30 min')
  expect(html).toMatch(/class="bar-fill" width="75"/)
  expect(html).toMatch(/class="bar-pace" d="M50 0v6"/)
})

test('the remaining share while no account is available is not shown as lasting', async () => {
  const windows = { ...blocked.windows, weekly: { usedPercent: 40, resetAt: NOW + 48 * HOUR, windowMinutes: 10_080 } }
  const read = text(await page({ accounts: [{ ...blocked, windows }] }))
  expect(read).toContain('no account is available')
  expect(read).not.toContain('it lasts')
})

test('usage that was never reported is a gap, not a zero', async () => {
  const windows = { fiveHour: null, weekly: null, monthly: null }
  const html = await page({ accounts: [anAccount({ windows })] })
  expect(text(html)).toContain('no usage reported yet')
  expect(html).not.toContain('bar-fill')
})

test('tiles show the last day, and how it differs from the one before', async () => {
  const read = text(await page({ accounts: [anAccount()] }))
  expect(read).toContain('Requests 192 ▲ 100 %')
  expect(read).toContain('25 % of input cached')
  expect(read).toContain('Cost $0.48 no change')
  expect(read).toContain('Error rate 0.0 % no change')
  expect(read).toContain('First token 0.92 s p95 0.92 s')
  expect(read).toContain('Conversations 3 in the last hour ▲ 50 %')
})

test('with many accounts those that need attention are shown, and the page stays small', async () => {
  const many = Array.from({ length: 200 }, (_, n) =>
    anAccount({ accountId: `acc_${n}`, displayName: `account-${n}@example.com` }),
  )
  const lost = anAccount({ accountId: 'acc_x', displayName: 'lost', status: 'reauth_required', eligible: false })
  const html = await page({ accounts: [...many, lost], keys: [aKey()] })
  expect(html.match(/class="strip-row"/g)).toHaveLength(9)
  expect(text(html)).toContain('All 201 accounts')
  expect(html.indexOf('strip-acc_x')).toBeLessThan(html.indexOf('strip-acc_0'))
  expect(html.length).toBeLessThan(41 * 1024)
})

test('the strip distinguishes half hours by shape, and has a text', async () => {
  const html = await page({ accounts: [anAccount()] })
  expect(html).toContain('<title>Last 24 hours: 12 h no errors, 12 h some errors</title>')
  expect(html).toMatch(/class="outcome-ok" d="M0 9h6/)
  expect(html).toMatch(/class="outcome-some_errors" d="M8 4h6m10 0h6/)
})

test('the recent errors show who, where and what happened', async () => {
  const failed = aRequest({
    id: 'r2',
    status: 'error',
    result: 'Stream cut off',
    failurePhase: 'stream',
    errorCode: 'stream_incomplete',
    costUsd: null,
  })
  const read = text(await page({ accounts: [anAccount()], errors: [failed] }))
  expect(read).toContain('1 min ago my-laptop mara@example.com gpt-5.5 Stream cut off stream_incomplete 1')
})

test('the names of accounts, keys and clients are only text', async () => {
  const evil = '<img src=x onerror=alert(1)>"\'&'
  const account = { ...blocked, displayName: evil, email: evil, planType: evil, why: evil, evidence: evil }
  const request = aRequest({
    status: 'error',
    apiKeyName: evil,
    accountName: evil,
    model: evil,
    errorCode: evil,
    failurePhase: evil as 'stream', // as: whatever an earlier version wrote
  })
  const html = await page({
    accounts: [account],
    errors: [request],
    keys: [{ ...aKey(), name: evil, expiresAt: NOW + HOUR }],
  })
  expect(html).not.toContain('<img')
  expect(html.split('&lt;img src=x onerror=alert(1)&gt;').length).toBeGreaterThan(6)
})

test('no page needs more than its policy allows: no inline script, style or handler', async () => {
  for (const what of [{}, { accounts: [anAccount(), blocked], errors: [aRequest()] }]) {
    const html = await page(what)
    expect(html).not.toMatch(/<script(?![^>]*\ssrc=)/)
    expect(html).not.toMatch(/<style|\sstyle=|\son[a-z]+=|hx-on|javascript:/)
  }
})

test('the page is refreshed as a whole, for the shown period', async () => {
  const html = await page({ accounts: [anAccount()] })
  expect(html).toMatch(/<div class="page overview"[^>]*data-live-src="\/dashboard\?period=24h" data-live-pick/)
  expect(html.match(/<main.*<\/main>/s)?.[0].match(/data-live-src/g)).toHaveLength(1)
})

describe('while no account is available, the health line says what to do', () => {
  const advice = async (what: Scene) => text(/health-advice">(.*?)<\/p>/s.exec(await page(what))?.[1] ?? '').trim()

  test('a reset credit, another account, or waiting', async () => {
    expect(await advice({ accounts: [blocked], resettable: 'acc_2' })).toBe(
      'use a reset credit on team-3 , add an account , or wait until 13:04 UTC ( in 1 h 4 min ).',
    )
  })

  test('a credit of an account that is not at a limit does not help', async () => {
    const lost = anAccount({ accountId: 'acc_2', displayName: 'mara', status: 'reauth_required', eligible: false })
    expect(await advice({ accounts: [lost], resettable: 'acc_2' })).toBe('sign in to mara again or add an account .')
  })

  test('a paused account can be resumed', async () => {
    const paused = anAccount({ displayName: 'ada', status: 'paused', eligible: false })
    expect(await advice({ accounts: [paused] })).toBe('resume ada or add an account .')
  })

  test('there is no advice while one is available', async () => {
    expect(await page({ accounts: [blocked, anAccount()], resettable: 'acc_2' })).not.toContain('health-advice')
  })
})

test.each([
  [4, undefined],
  [10, 'wait'],
  [48, 'bad'],
] as const)('%d errors in 192 requests color the tile %p', async (count, tone) => {
  const errors = Array.from({ length: count }, () => aRequest({ status: 'error' }))
  const html = await page({ accounts: [anAccount()], errors })
  expect(/tile-toned tone-(\w+)"><h2 class="tile-label">(.*?)</.exec(html)?.slice(1)).toEqual(
    tone && [tone, 'Error rate'],
  )
})

test('the chart has a bar for each half hour, and each row of its table opens the log there', async () => {
  const html = await page({ accounts: [anAccount()] }, { cookie: 'zone=Asia/Kolkata' })
  const rows = [...html.matchAll(/<th><a href="\/logs\?since=(.*?)&amp;until=(.*?)">(.*?)<\/a>/g)]
  expect(rows).toHaveLength(48)
  expect(rows[0]?.slice(1)).toEqual(['2026-01-01T12:00:00Z', '2026-01-01T12:30:00Z', '17:30'])
  expect(html).toContain('data-chart="48"')
})

test('an unknown period is rejected with a clear sentence', async () => {
  const response = await scene().ask('GET /dashboard?period=99y', { headers: BROWSER })
  expect([response.status, text(await response.text())]).toEqual([
    422,
    expect.stringContaining('Period: choose 1h, 24h, 7d or 30d.'),
  ])
})

test('a JSON client gets the same value, with times in ISO 8601', async () => {
  const response = await scene({ accounts: [blocked], errors: [aRequest()] }).ask('GET /dashboard')
  expect(await response.json()).toMatchObject({
    generatedAt: '2026-01-01T12:00:00.000Z',
    now: {
      health: { level: 'blocked', eligible: 0, total: 1, next: { at: '2026-01-01T13:04:00.000Z', event: 'back' } },
    },
    pool: { total: 1, accounts: [{ until: '2026-01-01T13:04:00.000Z', used: { fiveHour: expect.any(Number) } }] },
    figures: {
      errors: [{ count: 1, newest: { requestedAt: '2026-01-01T11:58:30.000Z' } }],
      tiles: { requests: { value: 192, before: 94 } },
    },
  })
})

test('the theme cookie applies on the first paint, and has no other effect', async () => {
  expect(await page({}, { cookie: 'theme=dark' })).toContain('data-theme="dark"')
  expect(await page({}, { cookie: 'theme=%22evil' })).not.toContain('data-theme')
})

const CALM = {
  now: NOW,
  isDraining: false,
  isLedgerHealthy: true,
  isFailing: false,
  firstEventMs: null,
  hasResetCredit: () => false,
  mayWrite: true,
}

test('the level follows the most severe condition', () => {
  const level = (accounts: AccountView[], over = {}) => getHealth(accounts, { ...CALM, ...over }).level
  expect(level([])).toBe('empty')
  expect(level([anAccount(), blocked])).toBe('serving')
  expect(level([anAccount()], { isFailing: true })).toBe('failing')
  expect(level([blocked], { isFailing: true })).toBe('blocked')
  expect(level([anAccount()], { isLedgerHealthy: false })).toBe('faulty')
  expect(level([anAccount()], { isDraining: true, isLedgerHealthy: false })).toBe('draining')
})

test('conditions that need a user are counted', () => {
  const accounts = [
    anAccount({ status: 'reauth_required', eligible: false }),
    anAccount({ status: 'deactivated' }),
    blocked,
  ]
  expect(getHealth(accounts, CALM).needAttention).toBe(2)
})
