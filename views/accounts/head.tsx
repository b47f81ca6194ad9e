/** The top of an account: state and "eligible now" as two facts, and, when it is out, the five questions people have then. */
import type { FC } from 'hono/jsx'
import type { AccountAction, OfferedAction } from '../../src/model/account-actions.ts'
import type { WireAccount } from '../../src/model/account-view.ts'
import { Eligibility, factsOf } from '../account-list.tsx'
import { Action } from '../people/list.tsx'
import { StateBadge } from '../ui/badge.tsx'
import { Since, Until } from '../ui/time.tsx'
import type { AccountProps } from './detail.tsx'
import { DeleteDialog, opens } from './modal.tsx'

export const AccountHead: FC<AccountProps> = ({ account, workspace, actions, mayWrite, now }) => (
  <section class="card account-head" aria-labelledby="account-title">
    <div class="account-head-main">
      <div class="account-head-name">
        <h1 id="account-title">{account.displayName}</h1>
        <p class="muted">
          {[account.displayName === account.email ? null : account.email, workspace, ...factsOf(account)]
            .filter(Boolean)
            .join(' · ')}
        </p>
      </div>
      <dl class="two-facts">
        <div>
          <dt>State</dt>
          <dd>
            <StateBadge status={account.status} />
          </dd>
        </div>
        <div>
          <dt>Eligible now?</dt>
          <dd>
            <Eligibility account={account} now={now} />
          </dd>
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

type AnswersProps = Pick<AccountProps, 'account' | 'actions' | 'mayWrite' | 'now'>

const FiveAnswers: FC<AnswersProps> = ({ account, actions, mayWrite, now }) => (
  <dl class="answers">
    <dt>What</dt>
    <dd>
      {whatText(account)}
      {account.cause && account.cause !== account.status && (
        <>
          {' '}
          <code>{account.cause}</code>
        </>
      )}
    </dd>
    <dt>Since</dt>
    <dd>{account.since ? <Since at={account.since} now={now} /> : 'just now; nothing was written down'}</dd>
    <dt>On what evidence</dt>
    <dd>{evidenceText(account, mayWrite)}</dd>
    <dt>Until</dt>
    <dd>
      <UntilWhen account={account} now={now} />
    </dd>
    <dt>What you can do</dt>
    <dd>
      <Actions account={account} actions={actions} />
    </dd>
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

const whatText = ({ status, why }: WireAccount): string =>
  status === 'active' && why ? `${WHAT.active} ${why}.` : WHAT[status]

const evidenceText = ({ status, evidence }: WireAccount, mayWrite: boolean): string => {
  if (status === 'paused') return 'It was paused by hand.'
  if (status === 'active') return 'What this service counts itself: turns under way and recent errors.'
  if (!mayWrite) return 'Shown to those who manage accounts.'
  return evidence ?? 'The service gave none.'
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
  if (refusal)
    return (
      <button class="button button-plain" type="button" disabled title={refusal}>
        {label}
      </button>
    )
  const path = `/api/accounts/${encodeURIComponent(accountId)}`
  switch (action) {
    case 'probe':
      return <Action name="probe" action={`${path}/probe`} label={label} />
    case 'resume':
      return <Action name="resume" action={`${path}/reactivate`} label={label} />
    case 'pause':
      return <Action name="pause" action={`${path}/pause`} label={label} />
    case 'reauthenticate':
      return (
        <a class="button button-plain" href={`/accounts/new/browser?account=${encodeURIComponent(accountId)}`}>
          {label}
        </a>
      )
    case 'delete':
      return <Delete account={account} label={label} />
  }
}

const Delete: FC<{ account: WireAccount; label: string }> = ({ account, label }) => (
  <form id="form-delete" class="action" method="post" action="/api/accounts/delete">
    <input type="hidden" name="accountIds" value={account.accountId} />
    <button class="button button-plain button-risky" type="button" {...opens('delete-account')}>
      {label}
    </button>
    <DeleteDialog id="delete-account" title={`Delete ${account.displayName}?`}>
      <p>Its credentials are erased, and conversations it owns cannot go on. Turns under way still end.</p>
    </DeleteDialog>
  </form>
)
