/** What is known about an account, and, told apart from it, whether it would be chosen now and why not. */
import type { FC } from 'hono/jsx'
import type { WireAccount } from '../../src/model/account-view.ts'
import { CheckIcon, ClockIcon, CrossIcon } from '../ui/icons.tsx'
import { Meter } from '../ui/meter.tsx'
import { Since, Until } from '../ui/time.tsx'

interface Props {
  account: WireAccount
  /** ISO 8601: when the page was made. */
  now: string
}

export const WINDOWS = ['fiveHour', 'weekly', 'monthly'] as const
export const WINDOW_NAMES = { fiveHour: '5-hour', weekly: 'Weekly', monthly: 'Monthly' } as const

/** Those that were reported: a plan without a window has no bar for it, and nothing known is not drawn as zero. */
export const Windows: FC<Props> = ({ account: { windows }, now }) => {
  if (WINDOWS.every((name) => !windows[name])) return <span class="muted">No usage reported yet</span>
  return (
    <>
      {WINDOWS.map((name) => {
        const window = windows[name]
        return window && <Meter label={WINDOW_NAMES[name]} window={window} now={now} />
      })}
    </>
  )
}

/** Where the state says why, what would end it is worth more. */
const NOT_UNTIL: Partial<Record<WireAccount['status'], string>> = {
  paused: 'Not asked until it is resumed',
  reauth_required: 'Not asked until somebody signs in again',
}

export const Eligibility: FC<Props> = ({ account, now }) => {
  if (account.eligible)
    return (
      <span class="eligible is-eligible">
        <CheckIcon />
        {eligibleText(account)}
      </span>
    )
  const comesBack = account.until ?? account.nextCheckAt
  return (
    <span class="eligible">
      {comesBack ? <ClockIcon /> : <CrossIcon />}
      <span>
        {NOT_UNTIL[account.status] ?? account.why ?? 'Not eligible now'}
        {comesBack && (
          <>
            {account.until ? ' · back ' : ' · next check '}
            <Until at={comesBack} now={now} />
          </>
        )}
      </span>
    </span>
  )
}

const eligibleText = ({ tier, paidCredits }: WireAccount): string => {
  if (paidCredits !== null)
    return paidCredits === 'last' ? 'Eligible, paid credits used last' : 'Eligible, on paid credits'
  return tier === 'draining' ? 'Eligible, asked last' : 'Eligible now'
}

/** Once the included quota is used up: what is left of the credits, and when they are used. Null before. */
export const paidCreditsText = ({ paidCredits, credits }: WireAccount): string | null => {
  if (paidCredits === null) return null
  const left = credits?.unlimited
    ? 'unlimited'
    : credits?.balance == null
      ? 'some left'
      : `${amountText(credits.balance)} left`
  return `Included quota used up; paid credits: ${left}, ${PAID[paidCredits]}`
}

const PAID = { never: 'not used', last: 'used last', freely: 'used freely' } as const

/** Of what keeps it from being asked, or from being asked as often as others. */
export const Evidence: FC<Props> = ({ account, now }) => {
  const { evidence, since } = groundsOf(account)
  return evidence === null ? null : (
    <span class="evidence muted">
      {evidence.replace(/\.$/, '')}
      {since && (
        <>
          {', '}
          <Since at={since} now={now} />
        </>
      )}
    </span>
  )
}

/** An account in service has no block to explain, but it may have failed. */
export const groundsOf = (account: WireAccount): { evidence: string | null; since: string | null } => {
  const { status, evidence, since, tier, lastError } = account
  if (status === 'paused') return { evidence: null, since }
  if (status !== 'active') return { evidence, since }
  const isHeldBack = account.skipped === 'cooling_down' || (account.eligible && tier !== 'healthy')
  return isHeldBack && lastError ? { evidence: lastError.evidence, since: lastError.at } : { evidence: null, since }
}

const POLICIES: Record<WireAccount['routingPolicy'], string | null> = {
  normal: null,
  burn_first: 'used first',
  preserve: 'kept back',
}

/** The few facts that tell accounts apart. */
export const factsOf = (account: WireAccount): string[] =>
  [
    planName(account.planType),
    POLICIES[account.routingPolicy],
    account.securityWorkAuthorized ? 'restricted pool' : null,
    creditsText(account),
  ].filter((fact) => fact !== null)

export const planName = (plan: string | null): string | null =>
  plan === null || plan === 'unknown' ? null : plan.charAt(0).toUpperCase() + plan.slice(1).replaceAll('_', ' ')

const creditsText = ({ credits }: WireAccount): string | null => {
  if (credits?.unlimited) return 'unlimited credits'
  return credits?.balance ? `${amountText(credits.balance)} credits` : null
}

const amountText = (amount: number): string => amount.toLocaleString('en', { maximumFractionDigits: 2 })

/** The address where the name is another. */
export const addressOf = ({ alias, email }: WireAccount): string | null =>
  alias === null || alias === email ? null : email
