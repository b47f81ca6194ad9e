/** The top of an account page: its state, whether it is available, and what explains a block. */
import type { Child, FC } from 'hono/jsx'
import type { AccountAction, OfferedAction } from '../../src/model/accounts/account-actions.ts'
import type { WireAccount } from '../../src/model/accounts/account-view.ts'
import { expectedState, StateBadge } from '../ui/badge.tsx'
import { ButtonLink, DisabledButton } from '../ui/button.tsx'
import { Fact } from '../ui/fact.tsx'
import { Action } from '../ui/form.tsx'
import { CheckIcon, CrossIcon } from '../ui/icons.tsx'
import { live } from '../ui/live.tsx'
import { opens } from '../ui/modal.ts'
import { Since, Until } from '../ui/time.tsx'
import { withQuery } from '../ui/with-query.ts'
import { Eligibility, Evidence, getAddress, getBlockEvidence, getFacts, paidCreditsText } from './availability.tsx'
import type { AccountProps } from './detail.tsx'
import { accountPath } from './links.ts'
import { DeleteDialog } from './modal.tsx'

export const AccountHead: FC<AccountProps> = ({ account, workspace, actions, mayWrite, probe, now }) => (
  <section class="card account-head" aria-labelledby="account-title" {...live(getPart(account))}>
    <div class="account-head-main">
      <div class="account-head-name">
        <h1 id="account-title">{account.displayName}</h1>
        <p class="muted">
          {[getAddress(account), workspace, ...getFacts(account), inFlightText(account)].filter(Boolean).join(' · ')}
        </p>
      </div>
      <dl class="two-facts">
        <div>
          <Fact name="State">
            <StateBadge status={account.status} />
          </Fact>
        </div>
        <div>
          <Fact name="Available?">
            <Eligibility account={account} now={now} />
            {account.paidCredits && <span class="evidence muted">{paidCreditsText(account)}</span>}
            {account.eligible && <Evidence account={account} now={now} />}
          </Fact>
        </div>
      </dl>
    </div>
    {account.status !== 'active' || !account.eligible ? (
      <HeadFacts account={account} actions={actions} mayWrite={mayWrite} probe={probe} now={now} />
    ) : (
      <div class="account-actions">
        <Actions account={account} actions={actions} probe={probe} now={now} />
      </div>
    )}
  </section>
)

/** Refreshed from the lightest tab, of which only the head is used. */
const getPart = ({ accountId }: WireAccount) => ({
  id: 'account-head',
  topics: ['accounts', 'usage'] as const,
  src: withQuery(accountPath(accountId), { tab: 'routing' }),
})

const inFlightText = ({ inFlight }: WireAccount): string | null => (inFlight > 0 ? `${inFlight} running` : null)

type AnswersProps = Pick<AccountProps, 'account' | 'actions' | 'mayWrite' | 'probe' | 'now'>

const HeadFacts: FC<AnswersProps> = ({ account, actions, mayWrite, probe, now }) => (
  <dl class="answers">
    <Fact name="What">
      {whatText(account)}
      {account.cause && account.cause !== account.status && (
        <>
          {' '}
          <code>{account.cause}</code>
        </>
      )}
    </Fact>
    <Fact name="Since">
      <SinceWhen account={account} now={now} />
    </Fact>
    <Fact name="Evidence">{evidenceText(account, mayWrite)}</Fact>
    <Fact name="Ends">
      <BlockEnd account={account} now={now} />
    </Fact>
    <Fact name="What you can do">
      <Actions account={account} actions={actions} probe={probe} now={now} />
    </Fact>
  </dl>
)

const WHAT: Record<WireAccount['status'], string> = {
  active: 'The account works, but routing does not use it right now.',
  rate_limited: 'ChatGPT asked this account to wait. Requests go to other accounts for now.',
  quota_exceeded: 'This account is out of quota.',
  paused: 'This account was paused in Sluice. Nothing is wrong with it at ChatGPT.',
  reauth_required: 'ChatGPT no longer accepts the credentials of this account.',
  deactivated: 'ChatGPT has closed this account or its workspace.',
}

/** By the block's cause, if that says more than the state. */
const REPORTED: Partial<Record<string, string>> = {
  spend_cap_reached:
    'This account has reached the spend cap of its ChatGPT workspace. It is used again when the cap resets or is raised.',
  credits_depleted:
    'The ChatGPT workspace of this account has no credits left. It is used again when credits are added.',
  limit_reached: 'ChatGPT says this account has reached its usage limit.',
  not_allowed: 'ChatGPT says this account cannot send requests right now. It gave no reason.',
}

/** The account works, but the routing strategy uses only another one. */
const isPinnedOut = ({ status, skipped }: WireAccount): boolean => status === 'active' && skipped === 'policy_class'

const whatText = (account: WireAccount): string => {
  if (isPinnedOut(account)) return 'The account works, but the routing strategy sends every request to another account.'
  const { status, cause, why, skipped } = account
  if (status === 'paused' && cause !== null && cause !== status)
    return 'This account is paused in Sluice. It would not be available after resuming either.'
  if (skipped === 'cooling_down')
    return 'Recent requests failed on this account. Requests go to other accounts for now.'
  if (skipped === 'paid_credits_off')
    return 'The included quota of this account is used up, and Sluice is set not to use paid credits (Settings → Routing).'
  if (skipped === 'reserved') return 'This account has reached its usage cap. The rest of its quota is reserved.'
  const reported = status === 'quota_exceeded' ? REPORTED[cause ?? ''] : undefined
  return reported ?? (status === 'active' && why ? `${WHAT.active} ${why}.` : WHAT[status])
}

const evidenceText = (account: WireAccount, mayWrite: boolean): Child => {
  const { status } = account
  const { evidence } = getBlockEvidence(account)
  if (isPinnedOut(account))
    return (
      <>
        The routing strategy under <a href="/settings/routing">Settings → Routing</a>.
      </>
    )
  if (status === 'paused') return ['Paused by a user.', account.evidence].filter(Boolean).join(' ')
  if (account.skipped === 'reserved') return 'The caps under Routing, and the usage that ChatGPT reported.'
  if (status === 'active' && account.skipped !== 'cooling_down')
    return 'Sluice counted the requests running on this account.'
  if (!mayWrite) return 'Only users who can manage accounts see this.'
  return evidence ?? 'ChatGPT gave no reason.'
}

const SinceWhen: FC<{ account: WireAccount; now: string }> = ({ account, now }) => {
  const { since } = getBlockEvidence(account)
  return since ? <Since at={since} now={now} /> : <>just now</>
}

const BlockEnd: FC<{ account: WireAccount; now: string }> = ({ account, now }) => {
  if (account.until) return <Until at={account.until} now={now} />
  if (account.nextCheckAt)
    return (
      <>
        unknown; next check <Until at={account.nextCheckAt} now={now} />
      </>
    )
  if (isPinnedOut(account)) return <>when you change the strategy</>
  if (account.status === 'active' && account.skipped === 'at_cap') return <>when one of its requests finishes</>
  return <>{ENDS[account.status]}</>
}

const ENDS: Record<WireAccount['status'], string> = {
  active: 'automatically',
  rate_limited: 'when ChatGPT accepts requests again',
  quota_exceeded: 'when ChatGPT accepts requests again',
  paused: 'when you resume it',
  reauth_required: 'when you sign in again',
  deactivated: 'when you sign in again or retry it',
}

const Actions: FC<Omit<AnswersProps, 'mayWrite'>> = ({ account, actions, probe, now }) => {
  const reasons = [...new Set(actions.flatMap(({ refusal }) => refusal ?? []))]
  return (
    <>
      <div class="actions">
        {actions.map((offered) => (
          <ActionButton account={account} {...offered} />
        ))}
      </div>
      {probe && <ProbeResult probe={probe} now={now} />}
      {reasons.length > 0 && <p class="muted small action-reasons">{reasons.join(' ')}</p>}
    </>
  )
}

const ProbeResult: FC<{ probe: NonNullable<AccountProps['probe']>; now: string }> = ({ probe, now }) => {
  const isServed = probe.result === 'served'
  return (
    <p class={isServed ? 'probe-result is-good' : 'probe-result is-bad'} role="status">
      {isServed ? <CheckIcon /> : <CrossIcon />}
      <span>
        {isServed ? 'ChatGPT served the probe' : `The probe failed: ${probe.detail ?? 'no answer'}`}{' '}
        <span class="muted">
          <Since at={probe.at} now={now} />
        </span>
      </span>
    </p>
  )
}

const LABELS: Record<AccountAction, string> = {
  probe: 'Probe now',
  resume: 'Resume',
  pause: 'Pause',
  reauthenticate: 'Sign in again',
  delete: 'Delete…',
}

const getLabel = (action: AccountAction, status: WireAccount['status']): string =>
  action === 'resume' && status !== 'paused' ? 'Clear and retry' : LABELS[action]

/** Selector of the account's badge, for the script. */
const BADGE = '#account-head .badge'

const ActionButton: FC<{ account: WireAccount } & OfferedAction> = ({ account, action, refusal }) => {
  const { accountId, status } = account
  const label = getLabel(action, status)
  if (refusal) return <DisabledButton label={label} why={refusal} />
  const path = `/api/accounts/${encodeURIComponent(accountId)}`
  switch (action) {
    case 'probe':
      return <Action name="probe" action={`${path}/probe`} label={label} />
    case 'resume':
      return (
        <Action name="resume" action={`${path}/reactivate`} label={label} expected={expectedState(BADGE, 'active')} />
      )
    case 'pause':
      return <Action name="pause" action={`${path}/pause`} label={label} expected={expectedState(BADGE, 'paused')} />
    case 'reauthenticate':
      return <ButtonLink href={`/accounts/new/browser?account=${encodeURIComponent(accountId)}`}>{label}</ButtonLink>
    case 'delete':
      return <Delete account={account} label={label} />
  }
}

const Delete: FC<{ account: WireAccount; label: string }> = ({ account, label }) => (
  <form id="form-delete" method="post" action="/api/accounts/delete">
    <input type="hidden" name="accountIds" value={account.accountId} />
    <button class="button button-plain button-risky" type="button" {...opens('delete-account')}>
      {label}
    </button>
    <DeleteDialog id="delete-account" title={`Delete ${account.displayName}?`}>
      <p>Its credentials are erased and its conversations can't continue. Running requests will finish.</p>
    </DeleteDialog>
  </form>
)
