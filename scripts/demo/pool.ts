/** The seven accounts of the demo, one in every state, and what the stand-in upstream reports about each. */
import type { AccountStatus } from '../../db/schema/accounts.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/lib/durations.ts'
import type { AccountOptions, Plan } from '../../tests/support/upstream/accounts.ts'
import type { Upstream } from '../../tests/support/upstream/app.ts'
import { faults } from '../../tests/support/upstream/faults.ts'

export const MODELS = ['gpt-5.5', 'gpt-6-sol', 'gpt-6-luna', 'gpt-5.4-mini'] as const
/** Offered by the Pro account only. */
export const PRO_MODEL = 'gpt-6-astra'

export interface DemoAccount {
  name: string
  email: string
  plan: Plan
  alias?: string
  /** Last resort: used only when no other account is available. */
  isLastResort?: boolean
  status: AccountStatus
  /** How long ago it entered this state, ms; 0 for an active account. */
  sinceMs: number
  /** Until the block ends, ms, if its end is known. */
  endsInMs?: number
  /** Share of the requests while the account is available. */
  weight: number
  fiveHourPercent: number
  weeklyPercent: number
  /** Until its weekly window resets. */
  weeklyResetMs: number
}

export const DEMO_ACCOUNTS: readonly DemoAccount[] = [
  {
    name: 'ada',
    email: 'ada@example.test',
    plan: 'pro',
    status: 'active',
    sinceMs: 0,
    weight: 12,
    fiveHourPercent: 34,
    weeklyPercent: 41,
    weeklyResetMs: 3.2 * DAY_MS,
  },
  {
    name: 'grace',
    email: 'grace@example.test',
    plan: 'plus',
    status: 'active',
    sinceMs: 0,
    weight: 4,
    fiveHourPercent: 71,
    weeklyPercent: 63,
    weeklyResetMs: 1.4 * DAY_MS,
  },
  {
    name: 'linus',
    email: 'linus@example.test',
    plan: 'plus',
    status: 'rate_limited',
    weight: 5,
    sinceMs: 38 * MINUTE_MS,
    endsInMs: 82 * MINUTE_MS,
    fiveHourPercent: 100,
    weeklyPercent: 58,
    weeklyResetMs: 4.6 * DAY_MS,
  },
  {
    name: 'margaret',
    email: 'margaret@example.test',
    plan: 'team',
    status: 'quota_exceeded',
    weight: 5,
    sinceMs: 5.5 * HOUR_MS,
    endsInMs: 1.3 * DAY_MS,
    fiveHourPercent: 12,
    weeklyPercent: 100,
    weeklyResetMs: 1.3 * DAY_MS,
  },
  {
    name: 'tony',
    email: 'tony@example.test',
    plan: 'plus',
    status: 'paused',
    sinceMs: 2.1 * DAY_MS,
    weight: 4,
    fiveHourPercent: 0,
    weeklyPercent: 27,
    weeklyResetMs: 5.1 * DAY_MS,
    alias: 'Tony (on holiday)',
  },
  {
    name: 'barbara',
    email: 'barbara@example.test',
    plan: 'team',
    status: 'reauth_required',
    weight: 5,
    sinceMs: 14 * HOUR_MS,
    fiveHourPercent: 22,
    weeklyPercent: 49,
    weeklyResetMs: 2.7 * DAY_MS,
  },
  {
    name: 'edsger',
    email: 'edsger@example.test',
    plan: 'edu',
    status: 'deactivated',
    weight: 2,
    sinceMs: 3.4 * DAY_MS,
    fiveHourPercent: 5,
    weeklyPercent: 18,
    weeklyResetMs: 6.2 * DAY_MS,
    isLastResort: true,
  },
]

/** Adds the accounts to the stand-in, which then treats each according to its state. */
export const addToUpstream = (upstream: Upstream, now: number): void => {
  for (const account of DEMO_ACCOUNTS) {
    const added = upstream.addAccount(getOptions(account, now))
    if (account.status === 'rate_limited') added.always(faults.usageLimit({ resetsAt: now + (account.endsInMs ?? 0) }))
    if (account.status === 'quota_exceeded')
      added.setResetCredits([{ id: 'credit-1', grantedAt: now - 6 * DAY_MS, expiresAt: now + 24 * DAY_MS }])
    if (account.status === 'reauth_required') added.revoke('token_invalidated')
    if (account.status === 'deactivated') added.revoke('account_deactivated')
  }
}

const getOptions = (account: DemoAccount, now: number): AccountOptions => ({
  email: account.email,
  plan: account.plan,
  models: [...MODELS, ...(account.plan === 'pro' ? [PRO_MODEL] : [])],
  usage: {
    primary: { usedPercent: account.fiveHourPercent, windowMinutes: 300, resetAt: fiveHourReset(account, now) },
    secondary: {
      usedPercent: account.weeklyPercent,
      windowMinutes: 10_080,
      resetAt: now + account.weeklyResetMs,
    },
  },
})

export const fiveHourReset = ({ status, endsInMs = 0 }: DemoAccount, now: number): number =>
  now + (status === 'rate_limited' ? endsInMs : 2.2 * HOUR_MS)
