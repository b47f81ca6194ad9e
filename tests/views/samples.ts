/** Readable accounts and requests for tests of the pages. */
import type { AccountView } from '../../src/model/account-view.ts'
import type { RecentRequest } from '../../src/model/request-view.ts'

export const NOW = Date.UTC(2026, 0, 1, 12)
export const MINUTE = 60_000
export const HOUR = 60 * MINUTE

export const anAccount = (over: Partial<AccountView> = {}): AccountView => ({
  accountId: 'acc_1',
  email: 'mara@example.com',
  alias: null,
  displayName: 'mara@example.com',
  planType: 'plus',
  routingPolicy: 'normal',
  status: 'active',
  eligible: true,
  why: null,
  cause: null,
  evidence: null,
  since: null,
  until: null,
  nextCheckAt: null,
  windows: {
    fiveHour: { usedPercent: 37, resetAt: NOW + 2 * HOUR + 10 * MINUTE, windowMinutes: 300 },
    weekly: { usedPercent: 20, resetAt: NOW + 99 * HOUR, windowMinutes: 10_080 },
    monthly: null,
  },
  inFlight: 0,
  tier: 'healthy',
  credits: null,
  securityWorkAuthorized: false,
  lastRefreshAt: NOW - HOUR,
  usageAt: NOW - MINUTE,
  ...over,
})

export const aRequest = (over: Partial<RecentRequest> = {}): RecentRequest => ({
  id: 'r1',
  requestId: 'req_1',
  startedAt: NOW - 90_000,
  keyName: 'my-laptop',
  accountName: 'mara@example.com',
  model: 'gpt-5.5',
  status: 'ok',
  errorCode: null,
  phase: null,
  httpStatus: 200,
  firstEventMs: 920,
  totalMs: 9000,
  inputTokens: 1200,
  outputTokens: 34,
  costMicros: 23_120,
  attempts: 1,
  ...over,
})
