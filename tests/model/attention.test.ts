/** Items that need attention: each kind, and which users see it. */
import { describe, expect, test } from 'bun:test'
import { SEVERITIES } from '../../db/schema/alerts.ts'
import { ALERT_EVENTS } from '../../src/model/alerts/events.ts'
import { attention, type Facts, matters } from '../../src/model/overview/attention.ts'
import type { KeyFact } from '../../src/model/overview/overview.ts'
import { PRESETS, type PresetSlug } from '../../src/model/users/permissions.ts'
import { anAccount, HOUR, NOW } from '../views/samples.ts'

const DAY = 24 * HOUR

const facts = (over: Partial<Facts> = {}): Facts => ({
  accounts: [anAccount()],
  keys: [],
  isLedgerHealthy: true,
  outage: null,
  isDatabaseLost: false,
  isChosenAccountGone: false,
  overflow: null,
  failingProxies: [],
  rejected: [],
  unwritten: 0,
  isDashboardOpen: false,
  isKeyless: false,
  lastBackupAt: NOW - HOUR,
  isFirstBackupComing: false,
  backupFailure: null,
  credits: [],
  thresholds: { minAccounts: 0, accountPercent: 0, blockedHours: 0 },
  isAuditBroken: false,
  failingChannels: [],
  now: NOW,
  ...over,
})

const aKey = (over: Partial<KeyFact> = {}): KeyFact => ({
  id: 'key_1',
  name: 'ci',
  isActive: true,
  expiresAt: null,
  limits: [{ type: 'cost_usd', window: 'weekly', used: 92, max: 100, resetAt: NOW + DAY }],
  ...over,
})

const said = (over: Partial<Facts>, role: PresetSlug = 'admin') => {
  for (const { alert, tone } of matters(facts(over), PRESETS.admin)) {
    const severity = alert?.isInfo ? 'info' : tone === 'bad' ? 'bad' : 'warning'
    if (alert)
      // as severe as the page of channels says, or less
      expect(SEVERITIES.indexOf(severity)).toBeLessThanOrEqual(SEVERITIES.indexOf(ALERT_EVENTS[alert.event].severity))
  }
  return attention(facts(over), PRESETS[role]).map(({ text, action }) => [text, action?.href ?? null])
}

test('is empty when nothing is wrong', () => {
  expect(said({})).toEqual([])
})

test('a sign-in, with a link for users who can do it', () => {
  const accounts = [anAccount({ accountId: 'acc_2', displayName: 'team-3', status: 'reauth_required' })]
  const text = 'team-3 needs sign-in. It is not used until you sign in again.'
  expect(said({ accounts })).toEqual([[text, '/accounts/new/browser?account=acc_2']])
  expect(said({ accounts }, 'viewer')).toEqual([[text, null]])
})

test('many of a kind are three and a number', () => {
  const accounts = Array.from({ length: 9 }, (_, n) => anAccount({ accountId: `a${n}`, status: 'reauth_required' }))
  const items = said({ accounts })
  expect(items).toHaveLength(4)
  expect(items.at(-1)).toEqual(['6 more accounts need sign-in', '/accounts'])
})

describe('keys', () => {
  test('near a limit, by the fullest one', () => {
    const full = { type: 'requests', window: 'daily', used: 99, max: 100, resetAt: NOW + HOUR } as const
    const limits = [...aKey().limits, full]
    expect(said({ keys: [aKey()] })).toEqual([['Key ci is at 92 % of its weekly cost limit', '/keys/key_1']])
    expect(said({ keys: [aKey({ limits })] })).toEqual([
      ['Key ci is at 99 % of its daily request limit', '/keys/key_1'],
    ])
  })

  test('not when the window is over, the key is off, or there is room', () => {
    const [limit] = aKey().limits
    for (const key of [
      aKey({ limits: [{ ...limit!, resetAt: NOW - 1 }] }),
      aKey({ limits: [{ ...limit!, resetAt: NOW + 365 * DAY }] }), // from a clock that was ahead
      aKey({ isActive: false }),
      aKey({ limits: [{ ...limit!, used: 89 }] }),
    ])
      expect(said({ keys: [key] })).toEqual([])
  })

  test('soon to expire', () => {
    const keys = [aKey({ limits: [], expiresAt: NOW + 3.5 * DAY })]
    expect(said({ keys })).toEqual([['Key ci expires in 3 days', '/keys/key_1']])
    expect(said({ keys: [aKey({ limits: [], expiresAt: NOW + 8 * DAY })] })).toEqual([])
    expect(said({ keys: [aKey({ limits: [], expiresAt: NOW - 1 })] })).toEqual([])
  })

  test('are hidden from users who cannot list them', () => {
    const keys = [aKey({ expiresAt: NOW + DAY })]
    for (const role of ['viewer', 'guest', 'member'] as const) expect(said({ keys }, role)).toEqual([])
  })
})

test('the ledger comes before everything that still works', () => {
  const items = said({ isLedgerHealthy: false, unwritten: 7, keys: [aKey()], lastBackupAt: null })
  expect(items[0]?.[0]).toBe('The request log cannot be written. 7 finished requests are kept in memory.')
  expect(items.map(([text]) => text)).toContain('No backup yet')
})

test('requests that all fail are reported with the newest failure and a link to it', () => {
  const text = 'The last 4 requests failed. Last error: “Overloaded.”'
  const outage = { turns: 4, message: 'Overloaded.' }
  expect(said({ outage })).toEqual([[text, '/logs?status=failed']])
  expect(said({ outage }, 'viewer')).toEqual([[text, '/logs?status=failed']])
  const untold = { turns: 4, message: '' }
  expect(said({ outage: untold }, 'viewer')).toEqual([['The last 4 requests failed', '/logs?status=failed']])
})

test('a missing database file comes first, with the backup that saves it', () => {
  const text =
    'The database file was removed or replaced. Changes are lost when the server stops unless you back up now.'
  expect(said({ isDatabaseLost: true, isLedgerHealthy: false })[0]).toEqual([text, '/settings/data'])
  expect(said({ isDatabaseLost: true }, 'viewer')).toEqual([[text, null]])
})

test('backups: none yet, an old one, or hidden from this user', () => {
  expect(said({ lastBackupAt: null })).toEqual([['No backup yet', '/settings/data']])
  expect(said({ lastBackupAt: NOW - 9 * DAY })).toEqual([['The last backup is 9 days old', '/settings/data']])
  expect(said({ lastBackupAt: undefined })).toEqual([])
  expect(said({ lastBackupAt: null, accounts: [] })).toEqual([])
  expect(said({ lastBackupAt: null, isFirstBackupComing: true })).toEqual([])
  expect(said({ lastBackupAt: NOW - 9 * DAY, isFirstBackupComing: true })).toHaveLength(1)
})

test('a strategy that names a deleted account', () => {
  const text = 'No new conversations are served. The account chosen for the “Single account” strategy was deleted.'
  expect(said({ isChosenAccountGone: true })).toEqual([[text, '/settings/routing']])
  expect(said({ isChosenAccountGone: true }, 'viewer')).toEqual([[text, null]])
})

test('open access', () => {
  expect(said({ isDashboardOpen: true, isKeyless: true }).map(([text]) => text)).toEqual([
    'Anyone who can reach this dashboard has full control. Sign-in is disabled in the environment.',
    'Clients from the networks set in the environment need no API key',
  ])
})

test('overflow to a model source is reported with its count, and with the requests outside its budget', () => {
  const use = { sourceName: 'Local', count: 2, overBudget: 0 }
  const served = 'Local served 2 requests in the last hour, because every account was at its usage limit'
  expect(said({ overflow: use })).toEqual([[served, '/settings/sources']])
  expect(said({ overflow: { ...use, overBudget: 1 } })).toEqual([
    [`${served}. 1 request did not fit into the budget`, '/settings/sources'],
  ])
  expect(said({ overflow: { ...use, count: 0, overBudget: 3 } })[0]?.[0]).toStartWith(
    'Overflow has used up its budget for today',
  )
})

describe('conditions that alerts add', () => {
  const off = { minAccounts: 0, accountPercent: 0, blockedHours: 0 }
  const all = (over: Partial<Facts>) =>
    matters(facts(over), PRESETS.admin).map(({ alert, text }) => [alert?.event, text])

  test('no account available is an alert, but the health line already says it', () => {
    const accounts = [anAccount({ eligible: false })]
    expect(said({ accounts })).toEqual([])
    expect(all({ accounts })).toContainEqual(['pool.exhausted', 'No account can serve requests.'])
  })

  test('few accounts, from the set number on', () => {
    const accounts = [anAccount(), anAccount({ accountId: 'b', eligible: false })]
    const text = 'Only 1 of 2 accounts are available'
    expect(said({ accounts, thresholds: { ...off, minAccounts: 2 } })).toEqual([[text, '/accounts']])
    for (const minAccounts of [0, 1]) expect(said({ accounts, thresholds: { ...off, minAccounts } })).toEqual([])
  })

  test('the fullest window of an account, from the set percentage on', () => {
    const accounts = [anAccount()]
    const text = 'mara@example.com has used 37 % of its 5-hour quota'
    expect(said({ accounts, thresholds: { ...off, accountPercent: 37 } })).toEqual([[text, '/accounts/acc_1']])
    expect(said({ accounts, thresholds: { ...off, accountPercent: 38 } })).toEqual([])
  })

  test('a block longer than the window that caused it, or than the set hours', () => {
    const full = { fiveHour: { usedPercent: 100, resetAt: null, windowMinutes: 300 }, weekly: null, monthly: null }
    const blocked = { status: 'rate_limited', eligible: false, windows: full } as const
    const since = (hours: number) => [anAccount(), anAccount({ ...blocked, accountId: 'b', since: NOW - hours * HOUR })]
    expect(said({ accounts: since(4.9) })).toEqual([])
    expect(said({ accounts: since(6) })).toEqual([
      ['mara@example.com has been blocked for 6 hours, longer than its own window', '/accounts/b'],
    ])
    const until = [anAccount(), anAccount({ ...blocked, accountId: 'b', since: NOW, until: NOW + 30 * HOUR })]
    expect(said({ accounts: until })).toEqual([])
    expect(said({ accounts: until, thresholds: { ...off, blockedHours: 24 } })).toEqual([
      ['mara@example.com is blocked for another 30 hours', '/accounts/b'],
    ])
  })

  test('a reset credit is news, and needs attention on its last day', () => {
    const credit = { id: 'c1', accountId: 'acc_1', expiresAt: NOW + 3 * DAY }
    expect(said({ credits: [credit] })).toEqual([])
    expect(all({ credits: [credit] })).toEqual([['credit.appeared', 'mara@example.com has a reset credit']])
    expect(said({ credits: [{ ...credit, expiresAt: NOW + 5 * HOUR }] })).toEqual([
      ['A reset credit of mara@example.com expires in 5 hours', '/accounts/acc_1'],
    ])
  })

  test('quota that runs out before its reset', () => {
    const fiveHour = { usedPercent: 80, resetAt: NOW + 3 * HOUR, windowMinutes: 300 }
    const accounts = [anAccount({ windows: { fiveHour, weekly: null, monthly: null } })]
    expect(said({ accounts })[0]?.[0]).toBe(
      'The 5-hour quota of all accounts is on pace to run out in 30 minutes, before it resets',
    )
    const half = [anAccount({ windows: { fiveHour: { ...fiveHour, usedPercent: 45 }, weekly: null, monthly: null } })]
    expect(said({ accounts: half })).toEqual([])
  })

  test('a key over its limit stays near it, so that the alert at 90 % does not end', () => {
    const limits = [{ ...aKey().limits[0]!, used: 100 }]
    expect(said({ keys: [aKey({ limits })] })).toHaveLength(1)
    const alerts = matters(facts({ keys: [aKey({ limits })] }), PRESETS.admin).map(({ alert }) => alert?.part ?? 'near')
    expect(alerts).toEqual(['full', 'near'])
  })

  test('a failed backup, a broken audit log and a channel that fails', () => {
    const failingChannels = [{ id: 'alc_1', name: 'Pager' }]
    expect(said({ backupFailure: 'No space left.', isAuditBroken: true, failingChannels })).toEqual([
      ['The audit log was changed from outside: its chain is broken.', '/audit'],
      ['The last backup failed: No space left.', '/settings/data'],
      ['Alerts to Pager could not be sent', '/settings/alerts/alc_1'],
    ])
  })
})
