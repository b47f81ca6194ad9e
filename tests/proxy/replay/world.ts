/** Small worlds for the replay: accounts with the windows of a plan, and arrivals. */
import type { Arrival, ReplayAccount, ReplayWorld } from '../../../src/proxy/replay/simulate.ts'

export const HOUR = 3_600_000
export const DAY = 24 * HOUR

export const account = (id: string, more: Partial<ReplayAccount> = {}): ReplayAccount => ({
  id,
  planType: 'plus',
  routingPolicy: 'normal',
  securityWorkAuthorized: false,
  maxUsedPercentPrimary: null,
  maxUsedPercentSecondary: null,
  exemptOwnerId: null,
  tags: [],
  position: null,
  models: null,
  fiveHour: { credits: 100, lengthMs: 5 * HOUR, usedCredits: 0, resetAt: null },
  long: { length: 'weekly', credits: 1000, lengthMs: 7 * DAY, usedCredits: 0, resetAt: null },
  ...more,
})

export const arrival = (at: number, credits: number, more: Partial<Arrival> = {}): Arrival => ({
  at,
  durationMs: 1000,
  conversation: null,
  model: 'gpt-5.5',
  key: null,
  short: credits,
  long: credits,
  ...more,
})

export const world = (
  accounts: readonly ReplayAccount[],
  arrivals: readonly Arrival[],
  { strategy = 'round_robin', ...more }: Partial<ReplayWorld> & Partial<ReplayWorld['policy']> = {},
): ReplayWorld => ({
  accounts,
  arrivals,
  from: 0,
  to: 28 * DAY,
  affinityMs: 30 * DAY,
  policy: {
    strategy,
    singleAccountId: null,
    relativePower: 2,
    relativeTopK: 5,
    preferEarlierReset: false,
    paidCredits: 'last',
    inFlightPenaltyPercent: 2.5,
    rates: { short: 1, long: 1 },
  },
  ...more,
})
