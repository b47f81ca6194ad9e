/** The state of an account, and whether it is available now and why not. */
import type { FC } from 'hono/jsx'
import type { WireAccount } from '../../src/model/accounts/account-view.ts'
import { STATE_NAMES, windowLabel } from '../../src/model/accounts/account-words.ts'
import { CheckIcon, ClockIcon, CrossIcon } from '../ui/icons.tsx'
import { Meter } from '../ui/meter.tsx'
import { Since, Until } from '../ui/time.tsx'

interface Props {
  account: WireAccount
  /** ISO 8601: when the page was made. */
  now: string
}

export const WINDOWS = ['fiveHour', 'weekly', 'monthly'] as const

/** The reported windows. Unknown ones are left out, not shown as zero. */
export const Windows: FC<Props> = ({ account: { windows }, now }) => {
  if (WINDOWS.every((name) => !windows[name])) return <span class="muted">No usage reported yet</span>
  return (
    <>
      {WINDOWS.map((name) => {
        const window = windows[name]
        return window && <Meter label={windowLabel(name)} window={window} now={now} />
      })}
    </>
  )
}

/** Where the badge already says why, this says what ends it. */
const NOT_UNTIL: Partial<Record<WireAccount['status'], string>> = {
  paused: 'Not used until you resume it',
  reauth_required: 'Not used until you sign in again',
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
  const says = NOT_UNTIL[account.status] ?? account.why ?? 'Not available'
  const isRepeated = comesBack && says === STATE_NAMES[account.status]
  return (
    <span class="eligible">
      {comesBack ? <ClockIcon /> : <CrossIcon />}
      <span>
        {!isRepeated && says}
        {comesBack && (
          <>
            {isRepeated ? '' : ' · '}
            {account.until ? 'back ' : 'next check '}
            <Until at={comesBack} now={now} />
          </>
        )}
      </span>
    </span>
  )
}

const eligibleText = ({ tier, paidCredits }: WireAccount): string => {
  if (paidCredits !== null)
    return paidCredits === 'last' ? 'Available, paid credits used last' : 'Available, on paid credits'
  return tier === 'draining' ? 'Available, used last' : 'Available'
}

/** After the included quota is used up: the remaining credits, and when they are used. Otherwise null. */
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

/** Why the account is not used, or less than others. */
export const Evidence: FC<Props> = ({ account, now }) => {
  const { evidence, since } = getBlockEvidence(account)
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

/** An active account has no block to explain, but it may have failed recently. */
export const getBlockEvidence = (account: WireAccount): { evidence: string | null; since: string | null } => {
  const { status, evidence, since, tier, lastError } = account
  if (status === 'paused') return { evidence: null, since }
  if (status !== 'active') return { evidence, since }
  const isHeldBack = account.skipped === 'cooling_down' || (account.eligible && tier !== 'healthy')
  return isHeldBack && lastError ? { evidence: lastError.evidence, since: lastError.at } : { evidence: null, since }
}

const POLICIES: Record<WireAccount['routingPolicy'], string | null> = {
  normal: null,
  burn_first: 'use first',
  preserve: 'last resort',
}

/** Facts that distinguish accounts. */
export const getFacts = (account: WireAccount): string[] =>
  [
    planName(account.planType),
    POLICIES[account.routingPolicy],
    account.securityWorkAuthorized ? 'restricted pool' : null,
    creditsText(account),
    ...account.tags,
  ].filter((fact) => fact !== null)

export const planName = (plan: string | null): string | null =>
  plan === null || plan === 'unknown' ? null : plan.charAt(0).toUpperCase() + plan.slice(1).replaceAll('_', ' ')

const creditsText = ({ credits }: WireAccount): string | null => {
  if (credits?.unlimited) return 'unlimited credits'
  return credits?.balance ? `${amountText(credits.balance)} credits` : null
}

const amountText = (amount: number): string => amount.toLocaleString('en', { maximumFractionDigits: 2 })

/** The e-mail address, if the name differs. */
export const getAddress = ({ alias, email }: WireAccount): string | null =>
  alias === null || alias === email ? null : email
