/** All automations with their next and last run, two to start from, and the latest runs. */
import type { FC } from 'hono/jsx'
import type { AutomationView, RunView } from '../../src/model/automations/view.ts'
import { SettingsFrame } from '../settings/frame.tsx'
import { plural } from '../ui/amounts.ts'
import { Badge } from '../ui/badge.tsx'
import { ButtonLink } from '../ui/button.tsx'
import { Card, TextCard } from '../ui/card.tsx'
import { Action, Outcome } from '../ui/form.tsx'
import { LivePart } from '../ui/live.tsx'
import { AgePager } from '../ui/pager.tsx'
import { Since, Until } from '../ui/time.tsx'
import { withQuery } from '../ui/with-query.ts'
import type { Page, Runs } from './form.tsx'
import { AUTOMATIONS_PATH, automationPath, KIND_NAMES, RUN_STATES, runPath, scheduleText } from './words.ts'

export interface Automations extends Page {
  automations: AutomationView[]
  runs: Runs
}

export const AutomationsPage: FC<Automations> = ({ frame, now, done, problem, canWrite, automations, runs }) => (
  <SettingsFrame frame={frame} now={now} title="Automations">
    <Outcome done={done} problem={problem} />
    <Card
      id="automations"
      title="Automations"
      count={automations.length || null}
      aside={
        canWrite && (
          <ButtonLink class="button button-plain card-action" href={`${AUTOMATIONS_PATH}/new`}>
            Create automation
          </ButtonLink>
        )
      }
    >
      {automations.length === 0 ? (
        <p class="empty muted">No automations yet.</p>
      ) : (
        <LivePart id="automation-list" topics={['automations']} src={AUTOMATIONS_PATH}>
          <ul class="rows">
            {automations.map((automation) => (
              <Row automation={automation} now={now} canWrite={canWrite} />
            ))}
          </ul>
        </LivePart>
      )}
    </Card>
    {canWrite && <Templates />}
    <RunList runs={runs} now={now} path={AUTOMATIONS_PATH} isNamed />
  </SettingsFrame>
)

interface RowProps {
  automation: AutomationView
  now: string
  canWrite: boolean
}

const Row: FC<RowProps> = ({ automation, now, canWrite }) => {
  const { id, name, kind, enabled, schedule, nextRunAt, lastRun } = automation
  return (
    <li class="row automation">
      <span class="row-main">
        <a class="automation-name" href={automationPath(id)}>
          {name}
        </a>
        <span class="hint">
          {KIND_NAMES[kind]} · {scheduleText(schedule)}
        </span>
        <span class="hint">
          {enabled ? (
            nextRunAt ? (
              <>
                Next run <Until at={nextRunAt} now={now} />
              </>
            ) : (
              'No next run'
            )
          ) : (
            'Off'
          )}
          {lastRun && (
            <>
              {' · '}
              <a href={runPath(lastRun.id)}>
                Last run <Since at={lastRun.startedAt} now={now} />
              </a>
            </>
          )}
        </span>
      </span>
      {lastRun && <RunBadge run={lastRun} />}
      {canWrite && <Action name={`run-${id}`} action={`/api/automations/${id}/run-now`} label="Run now" />}
    </li>
  )
}

export const RunBadge: FC<{ run: RunView; isAside?: boolean }> = ({ run: { status }, isAside }) => {
  const [name, tone] = RUN_STATES[status]
  const badge = <Badge tone={tone}>{name}</Badge>
  return isAside ? <span class="card-link">{badge}</span> : badge
}

const Templates: FC = () => (
  <TextCard id="ready-made" title="Start from an example">
    <ul class="automation-examples">
      <li>
        <a href={`${AUTOMATIONS_PATH}/new?ready=mornings`}>Start windows on working mornings</a>
        <span class="hint">
          One small request per account at 07:55, so that the five-hour window begins before you do.
        </span>
      </li>
      <li>
        <a href={`${AUTOMATIONS_PATH}/new?ready=nightly`}>Nightly check</a>
        <span class="hint">Checks every account at night, so that you learn of problems before your clients do.</span>
      </li>
    </ul>
  </TextCard>
)

interface RunListProps {
  runs: Runs
  now: string
  /** The page it is on. */
  path: string
  /** Shows the name of the automation. */
  isNamed?: boolean
}

export const RunList: FC<RunListProps> = ({
  runs: { items, total, offset, newer, older },
  now,
  path,
  isNamed = false,
}) => (
  <Card id="automation-runs" title="Runs" count={total || null}>
    {items.length === 0 ? (
      <p class="empty muted">No runs yet. Runs are kept for 90 days.</p>
    ) : (
      <LivePart id="run-list" topics={['automations']} src={withQuery(path, { offset: offset || null })}>
        <ul class="rows">
          {items.map((run) => (
            <li class="row">
              <span class="row-main">
                <a href={runPath(run.id)}>
                  {isNamed ? run.jobName : 'Run'} <Since at={run.startedAt} now={now} />
                </a>
                <span class="hint">{getFacts(run)}</span>
                {run.errorMessage && <span class="hint">{run.errorMessage}</span>}
              </span>
              <RunBadge run={run} />
            </li>
          ))}
        </ul>
      </LivePart>
    )}
    <AgePager
      newest={newer === null ? null : withQuery(path, { offset: newer === 0 ? null : newer })}
      older={older === null ? null : withQuery(path, { offset: older })}
    />
  </Card>
)

const getFacts = ({ trigger, totalAccounts, completedAccounts, pendingAccounts, skippedAccounts }: RunView): string =>
  [
    trigger === 'manual' ? 'Started by a user' : 'Scheduled',
    pendingAccounts > 0
      ? `${completedAccounts} of ${plural(totalAccounts, 'account')}`
      : plural(totalAccounts, 'account'),
    ...(skippedAccounts > 0 ? [`${skippedAccounts} skipped`] : []),
  ].join(' · ')
