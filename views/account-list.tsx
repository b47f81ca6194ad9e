/** The accounts: what is known about each, and, told apart from it, whether it would be chosen now and why not. */
import type { FC } from 'hono/jsx'
import type { WireAccount } from '../src/model/account-view.ts'
import { StateBadge } from './ui/badge.tsx'
import { CheckIcon, ClockIcon, CrossIcon } from './ui/icons.tsx'
import { Meter } from './ui/meter.tsx'
import { Since, Until } from './ui/time.tsx'

interface ListProps {
  accounts: readonly WireAccount[]
  /** ISO 8601: when the page was made. */
  now: string
}

export const AccountList: FC<ListProps> = ({ accounts, now }) => (
  <section class="card" aria-labelledby="accounts-title">
    <header class="card-head">
      <h2 id="accounts-title">Accounts</h2>
      <span class="count">{accounts.length}</span>
    </header>
    <ul class="accounts">
      {accounts.map((account) => (
        <AccountRow account={account} now={now} />
      ))}
    </ul>
  </section>
)

const AccountRow: FC<{ account: WireAccount; now: string }> = ({ account, now }) => (
  <li class="account" id={`account-${account.accountId}`}>
    <div class="account-name">
      <p class="account-title">
        <strong title={account.displayName}>{account.displayName}</strong>
        {account.displayName !== account.email && <span class="muted">{account.email}</span>}
      </p>
      <span class="muted">{factsOf(account).join(' · ')}</span>
    </div>
    <div class="account-state">
      <StateBadge status={account.status} />
      <Eligibility account={account} now={now} />
      <Evidence account={account} now={now} />
    </div>
    <div class="account-windows">
      <Windows account={account} now={now} />
    </div>
  </li>
)

export const LABELS = { fiveHour: '5-hour', weekly: 'Weekly', monthly: 'Monthly' } as const
export const WINDOWS = ['fiveHour', 'weekly', 'monthly'] as const

/** Those that were reported: a plan without a window has no bar for it, and nothing known is not drawn as zero. */
export const Windows: FC<{ account: WireAccount; now: string }> = ({ account: { windows }, now }) => {
  if (WINDOWS.every((name) => !windows[name])) return <span class="muted">No usage reported yet</span>
  return (
    <>
      {WINDOWS.map((name) => {
        const window = windows[name]
        return window && <Meter label={LABELS[name]} window={window} now={now} />
      })}
    </>
  )
}

/** Where the state says why, what would end it is worth more. */
const NOT_UNTIL: Partial<Record<WireAccount['status'], string>> = {
  paused: 'Not asked until it is resumed',
  reauth_required: 'Not asked until somebody signs in again',
}

export const Eligibility: FC<{ account: WireAccount; now: string }> = ({ account, now }) => {
  if (account.eligible)
    return (
      <span class="eligible is-eligible">
        <CheckIcon />
        {account.tier === 'draining' ? 'Eligible, asked last' : 'Eligible now'}
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

export const Evidence: FC<{ account: WireAccount; now: string }> = ({ account, now }) =>
  account.status === 'active' || account.status === 'paused' || !account.evidence ? null : (
    <span class="evidence muted">
      {account.evidence.replace(/\.$/, '')}
      {account.since && (
        <>
          {', '}
          <Since at={account.since} now={now} />
        </>
      )}
    </span>
  )

const POLICIES: Record<WireAccount['routingPolicy'], string | null> = {
  normal: null,
  burn_first: 'used first',
  preserve: 'kept back',
}

export const factsOf = (account: WireAccount): string[] =>
  [
    planName(account.planType),
    POLICIES[account.routingPolicy],
    account.securityWorkAuthorized ? 'restricted pool' : null,
    account.inFlight > 0 ? `${account.inFlight} in flight` : null,
    creditsText(account),
  ].filter((fact) => fact !== null)

export const planName = (plan: string): string | null =>
  plan === 'unknown' ? null : plan.charAt(0).toUpperCase() + plan.slice(1).replaceAll('_', ' ')

const creditsText = ({ credits }: WireAccount): string | null => {
  if (credits?.unlimited) return 'unlimited credits'
  return credits?.balance ? `${credits.balance.toLocaleString('en', { maximumFractionDigits: 2 })} credits` : null
}
