/** Readable accounts for the selection tests. */
import { HEALTHY } from '../../src/model/accounts/account-health.ts'
import { ACTIVE, type AccountState } from '../../src/model/accounts/account-state.ts'
import type { UsageSnapshot } from '../../src/model/accounts/usage-windows.ts'
import type { Candidate, PolicyContext } from '../../src/proxy/pool/policies.ts'
import type { SelectionNeeds } from '../../src/proxy/pool/selection-needs.ts'

export const NOW = Date.UTC(2026, 10, 20, 14, 20)
export const DAY_MS = 86_400_000

/** Percent of five hours and of the week used; the week resets in `days`. */
export const used = (fiveHour: number, weekly: number, days = 3): UsageSnapshot => ({
  at: NOW,
  windows: {
    fiveHour: { usedPercent: fiveHour, windowMinutes: 300, resetAt: NOW + 3_600_000 },
    weekly: { usedPercent: weekly, windowMinutes: 10_080, resetAt: NOW + days * DAY_MS },
    monthly: null,
  },
  credits: null,
  planType: null,
})

export const anAccount = (id: string, with_: Partial<Candidate> = {}): Candidate => ({
  id,
  egressPoolId: null,
  planType: 'plus',
  routingPolicy: 'normal',
  state: ACTIVE,
  health: HEALTHY,
  usage: used(0, 0),
  inFlight: 0,
  lastSelectedAt: 0,
  lastForegroundAt: 0,
  securityWorkAuthorized: false,
  maxUsedPercentPrimary: null,
  maxUsedPercentSecondary: null,
  exemptOwnerId: null,
  tags: [],
  position: null,
  models: null,
  limitedModels: new Map(),
  rejectedModels: new Map(),
  missingRoutes: new Map(),
  ...with_,
})

export const limited = (until: number | null, cause = 'usage_limit_reached'): AccountState => ({
  ...ACTIVE,
  status: 'rate_limited',
  cause,
  evidence: 'seen',
  since: NOW - 1000,
  until,
  nextCheckAt: until === null ? NOW + 30_000 : null,
})

export const aContext = (with_: Partial<PolicyContext> = {}): PolicyContext => ({
  strategy: 'usage_weighted',
  now: NOW,
  random: () => 0.5,
  singleAccountId: null,
  relativePower: 2,
  relativeTopK: 5,
  preferEarlierReset: true,
  paidCredits: 'last',
  inFlightPenaltyPercent: 2.5,
  rates: { short: 1, long: 1 },
  whyNoRoute: () => null,
  ...with_,
})

export const needs = (with_: Partial<SelectionNeeds> = {}): SelectionNeeds => ({
  model: null,
  tried: new Set(),
  scope: null,
  owner: null,
  restricted: false,
  streamCap: 0,
  ...with_,
})
