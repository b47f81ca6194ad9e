/** One run of an automation: what became of each account, live. */
import type { FC } from 'hono/jsx'
import type { RunDetails } from '../../src/model/automations/view.ts'
import { SettingsFrame } from '../settings/frame.tsx'
import type { Titled } from '../titles.ts'
import { plural } from '../ui/amounts.ts'
import { Badge } from '../ui/badge.tsx'
import { Card } from '../ui/card.tsx'
import { Outcome } from '../ui/form.tsx'
import { LivePart } from '../ui/live.tsx'
import type { Choice } from '../ui/select.tsx'
import { durationText, Moment, Until } from '../ui/time.tsx'
import type { Page } from './form.tsx'
import { RunBadge } from './list.tsx'
import { ACCOUNT_STATES, AUTOMATIONS_PATH, automationPath, runPath } from './words.ts'

export interface OneRun extends Page, RunDetails {
  /** Names of the accounts that still exist. */
  names: Choice[]
  /** The user may open accounts. */
  opensAccounts: boolean
}

export const RunPage: Titled<OneRun> = (page) => {
  const { frame, now, done, problem, run, accounts, totalAccounts, completedAccounts } = page
  const names = new Map(page.names.map(({ id, name }) => [id, name]))
  return (
    <SettingsFrame frame={frame} now={now} title={`Run of ${run.jobName}`}>
      <nav class="crumbs" aria-label="Where you are">
        <a href={AUTOMATIONS_PATH}>Automations</a> / <a href={automationPath(run.jobId)}>{run.jobName}</a>
      </nav>
      <Outcome done={done} problem={problem} />
      <LivePart id="run" topics={['automations']} src={runPath(run.id)}>
        <Card
          id="run-accounts"
          title="Accounts"
          count={`${completedAccounts} of ${totalAccounts}`}
          aside={<RunBadge run={run} isAside />}
        >
          <div class="card-body">
            <p class="muted small">
              {run.trigger === 'manual' ? 'Started by a user' : 'Scheduled for'} <Moment at={run.scheduledFor} />
              {run.finishedAt && (
                <>
                  {', finished '}
                  <Moment at={run.finishedAt} />
                </>
              )}
              {run.skippedAccounts > 0 && `, ${plural(run.skippedAccounts, 'account')} skipped`}
            </p>
            {run.errorMessage && totalAccounts === 0 && <p>{run.errorMessage}</p>}
          </div>
          <ul class="rows">
            {accounts.map((account) => (
              <AccountRow
                account={account}
                name={names.get(account.accountId) ?? null}
                now={now}
                isLinked={page.opensAccounts && names.has(account.accountId)}
              />
            ))}
          </ul>
        </Card>
      </LivePart>
    </SettingsFrame>
  )
}

RunPage.title = ({ run }) => `Run of ${run.jobName}`

interface RowProps {
  account: RunDetails['accounts'][number]
  /** Null: the account was deleted. */
  name: string | null
  now: string
  isLinked: boolean
}

const AccountRow: FC<RowProps> = ({ account, name, now, isLinked }) => {
  const { accountId, status, scheduledFor, startedAt, finishedAt, errorCode, errorMessage } = account
  const [state, tone] = ACCOUNT_STATES[status]
  return (
    <li class="row automation-account">
      <span class="row-main">
        {isLinked ? <a href={`/accounts/${encodeURIComponent(accountId)}`}>{name}</a> : (name ?? accountId)}
        <span class="hint">
          {status === 'pending' ? (
            <>
              Starts <Until at={scheduledFor} now={now} />
            </>
          ) : (
            <Moment at={startedAt ?? finishedAt ?? scheduledFor} />
          )}
          {startedAt && finishedAt && `, took ${durationText(Date.parse(finishedAt) - Date.parse(startedAt))}`}
        </span>
        {(errorMessage ?? errorCode) && <span class="hint">{errorMessage ?? errorCode}</span>}
      </span>
      <Badge tone={tone}>{state}</Badge>
    </li>
  )
}
