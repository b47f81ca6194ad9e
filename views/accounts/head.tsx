/** The top of an account: state and "eligible now" as two facts, and, when it is out, the five questions people have then. */
import type { Child, FC } from 'hono/jsx'
import type { AccountAction, OfferedAction } from '../../src/model/account-actions.ts'
import type { WireAccount } from '../../src/model/account-view.ts'
import { StateBadge } from '../ui/badge.tsx'
import { ButtonLink, Refused } from '../ui/button.tsx'
import { Fact } from '../ui/fact.tsx'
import { Action } from '../ui/form.tsx'
import { live } from '../ui/live.tsx'
import { opens } from '../ui/modal.ts'
import { Since, Until } from '../ui/time.tsx'
import { withQuery } from '../ui/with-query.ts'
import type { AccountProps } from './detail.tsx'
import { accountPath } from './links.ts'
import { DeleteDialog } from './modal.tsx'
import { addressOf, Eligibility, Evidence, factsOf, groundsOf, paidCreditsText } from './standing.tsx'

export const AccountHead: FC<AccountProps> = ({ account, workspace, actions, mayWrite, now }) => (
  <section class="card account-head" aria-labelledby="account-title" {...live(partOf(account))}>
    <div class="account-head-main">
      <div class="account-head-name">
        <h1 id="account-title">{account.displayName}</h1>
        <p class="muted">
          {[addressOf(account), workspace, ...factsOf(account), inFlightText(account)].filter(Boolean).join(' · ')}
        </p>
      </div>
      <dl class="two-facts">
        <div>
          <Fact name="State">
            <StateBadge status={account.status} />
          </Fact>
        </div>
        <div>
          <Fact name="Eligible now?">
            <Eligibility account={account} now={now} />
            {account.paidCredits && <span class="evidence muted">{paidCreditsText(account)}</span>}
            {account.eligible && <Evidence account={account} now={now} />}
          </Fact>
        </div>
      </dl>
    </div>
    {account.status !== 'active' || !account.eligible ? (
      <FiveAnswers account={account} actions={actions} mayWrite={mayWrite} now={now} />
    ) : (
      <div class="account-actions">
        <Actions account={account} actions={actions} />
      </div>
    )}
  </section>
)

/** The lightest of its tabs is asked: only the head is taken. */
const partOf = ({ accountId }: WireAccount) => ({
  id: 'account-head',
  topics: ['accounts', 'usage'] as const,
  src: withQuery(accountPath(accountId), { tab: 'routing' }),
})

const inFlightText = ({ inFlight }: WireAccount): string | null => (inFlight > 0 ? `${inFlight} in flight` : null)

type AnswersProps = Pick<AccountProps, 'account' | 'actions' | 'mayWrite' | 'now'>

const FiveAnswers: FC<AnswersProps> = ({ account, actions, mayWrite, now }) => (
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
    <Fact name="On what evidence">{evidenceText(account, mayWrite)}</Fact>
    <Fact name="Until">
      <UntilWhen account={account} now={now} />
    </Fact>
    <Fact name="What you can do">
      <Actions account={account} actions={actions} />
    </Fact>
  </dl>
)

const WHAT: Record<WireAccount['status'], string> = {
  active: 'The account itself is fine, but it would not be chosen at this moment.',
  rate_limited: 'The service asks this account to wait; turns go to other accounts meanwhile.',
  quota_exceeded: 'The allowance of this account is used up.',
  paused: 'Somebody paused this account here; the service has nothing against it.',
  reauth_required: 'The service no longer takes the credentials of this account.',
  deactivated: 'The service has closed this account or its workspace.',
}

/** By the cause of the block, where that says more than the state. */
const REPORTED: Partial<Record<string, string>> = {
  spend_cap_reached:
    'This account has reached the spend cap of its ChatGPT workspace. It is used again when the cap resets or is raised.',
  credits_depleted:
    'The ChatGPT workspace of this account has no credits left. It is used again when credits are added.',
  limit_reached: 'ChatGPT reports that this account has reached its usage limit.',
  not_allowed: 'ChatGPT reports that this account may not send requests now. It gave no reason.',
}

/** The account itself is fine, and another one is named. */
const isPinnedOut = ({ status, skipped }: WireAccount): boolean => status === 'active' && skipped === 'policy_class'

const whatText = (account: WireAccount): string => {
  if (isPinnedOut(account))
    return 'The account itself is fine, but the strategy names another one, and only that is asked.'
  const { status, cause, why, skipped } = account
  if (status === 'paused' && cause !== null && cause !== status)
    return 'Somebody paused this account here; apart from that it could not serve, either.'
  if (skipped === 'cooling_down') return 'Requests failed at this account lately; turns go to others meanwhile.'
  if (skipped === 'paid_credits_off')
    return 'The included quota of this account is used up, and its paid credits are not used (Settings, Routing).'
  const reported = status === 'quota_exceeded' ? REPORTED[cause ?? ''] : undefined
  return reported ?? (status === 'active' && why ? `${WHAT.active} ${why}.` : WHAT[status])
}

const evidenceText = (account: WireAccount, mayWrite: boolean): Child => {
  const { status } = account
  const { evidence } = groundsOf(account)
  if (isPinnedOut(account))
    return (
      <>
        The strategy under <a href="/settings/routing">Settings → Routing</a>.
      </>
    )
  if (status === 'paused') return ['It was paused by hand.', account.evidence].filter(Boolean).join(' ')
  if (status === 'active' && account.skipped !== 'cooling_down')
    return 'What this service counts itself: turns under way.'
  if (!mayWrite) return 'Shown to those who manage accounts.'
  return evidence ?? 'The service gave none.'
}

const SinceWhen: FC<{ account: WireAccount; now: string }> = ({ account, now }) => {
  const { since } = groundsOf(account)
  return since ? <Since at={since} now={now} /> : <>just now; nothing was written down</>
}

const UntilWhen: FC<{ account: WireAccount; now: string }> = ({ account, now }) => {
  if (account.until)
    return (
      <>
        it ends by itself <Until at={account.until} now={now} />
      </>
    )
  if (account.nextCheckAt)
    return (
      <>
        no end is known; it is tried again <Until at={account.nextCheckAt} now={now} />
      </>
    )
  if (isPinnedOut(account)) return <>the strategy is changed</>
  if (account.status === 'active' && account.skipped === 'at_cap') return <>one of its turns ends</>
  return <>{ENDS[account.status]}</>
}

const ENDS: Record<WireAccount['status'], string> = {
  active: 'the reason is gone; nothing has to be done',
  rate_limited: 'the service serves it again',
  quota_exceeded: 'the service serves it again',
  paused: 'somebody resumes it',
  reauth_required: 'somebody signs in to it again',
  deactivated: 'somebody signs in to it again, or tries it again',
}

const Actions: FC<{ account: WireAccount; actions: readonly OfferedAction[] }> = ({ account, actions }) => {
  const reasons = [...new Set(actions.flatMap(({ refusal }) => refusal ?? []))]
  return (
    <>
      <div class="actions">
        {actions.map((offered) => (
          <ActionButton account={account} {...offered} />
        ))}
      </div>
      {reasons.length > 0 && <p class="muted small action-reasons">{reasons.join(' ')}</p>}
    </>
  )
}

const LABELS: Record<AccountAction, string> = {
  probe: 'Probe now',
  resume: 'Resume',
  pause: 'Pause',
  reauthenticate: 'Re-authenticate',
  delete: 'Delete…',
}

const labelOf = (action: AccountAction, status: WireAccount['status']): string =>
  action === 'resume' && status !== 'paused' ? 'Clear and retry' : LABELS[action]

const ActionButton: FC<{ account: WireAccount } & OfferedAction> = ({ account, action, refusal }) => {
  const { accountId, status } = account
  const label = labelOf(action, status)
  if (refusal) return <Refused label={label} why={refusal} />
  const path = `/api/accounts/${encodeURIComponent(accountId)}`
  switch (action) {
    case 'probe':
      return <Action name="probe" action={`${path}/probe`} label={label} />
    case 'resume':
      return <Action name="resume" action={`${path}/reactivate`} label={label} />
    case 'pause':
      return <Action name="pause" action={`${path}/pause`} label={label} />
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
      <p>Its credentials are erased, and conversations it owns cannot go on. Turns under way still end.</p>
    </DeleteDialog>
  </form>
)
