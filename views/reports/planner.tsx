/** The card of the quota planner: what starts of five-hour windows would bring. */
import type { FC } from 'hono/jsx'
import type { Decision } from '../../src/model/planner/decisions.ts'
import type { Settings } from '../../src/settings/schema.ts'
import { plural } from '../ui/amounts.ts'
import { Card } from '../ui/card.tsx'
import { Action } from '../ui/form.tsx'
import { TableHead } from '../ui/table.tsx'
import { Moment } from '../ui/time.tsx'

export interface PlannerCard {
  mode: Settings['plannerMode']
  zone: string
  /** Days of requests in the log, at most 28, and how many a plan needs. */
  coveredDays: number
  neededDays: number
  decisions: PlannedStart[]
  isEditable: boolean
}

interface PlannedStart {
  id: string
  accountName: string | null
  /** ISO 8601, and in the clock of the planner. */
  scheduledAt: string
  clock: string
  reason: string | null
  status: Decision['status']
}

export const PlannedStarts: FC<PlannerCard> = (card) => (
  <Card id="planner" title="Quota planner" aside={<Change {...card} />}>
    {card.decisions.length > 0 && <Starts {...card} />}
    <p class="card-part muted">{getSummary(card)}</p>
  </Card>
)

const Change: FC<PlannerCard> = ({ isEditable }) =>
  isEditable ? (
    <a class="small" href="/settings/routing#planner">
      Change
    </a>
  ) : null

const getSummary = ({ mode, coveredDays, neededDays, decisions }: PlannerCard): string => {
  if (mode === 'off')
    return 'Off. It can compute when an earlier start of a five-hour window would serve more of your requests.'
  if (coveredDays < neededDays)
    return `The log covers ${plural(coveredDays, 'day')}. A plan needs ${neededDays} days of requests.`
  if (!decisions.some(({ status }) => status === 'planned'))
    return 'No start is planned: none would serve enough more of the expected requests.'
  return mode === 'act' ? 'Sluice makes these starts.' : 'These starts are only advice. Sluice does not make them.'
}

const STATUS: Record<PlannerCard['decisions'][number]['status'], string> = {
  planned: 'planned',
  executed: 'started',
  skipped: 'skipped',
  canceled: 'canceled',
}

const Starts: FC<PlannerCard> = ({ decisions, zone, isEditable }) => (
  <div class="scroll-x" tabindex={0}>
    <table>
      <TableHead texts={[`Start (${zone})`, 'Account', 'Result', 'Status']}>
        {isEditable && (
          <th scope="col">
            <span class="sr">Action</span>
          </th>
        )}
      </TableHead>
      <tbody>
        {decisions.map(({ id, clock, scheduledAt, accountName, reason, status }) => (
          <tr>
            <th scope="row">
              {clock}{' '}
              <span class="small muted">
                <Moment at={scheduledAt} />
              </span>
            </th>
            <td>{accountName ?? 'deleted account'}</td>
            <td>{reason}</td>
            <td>{STATUS[status]}</td>
            {isEditable && (
              <td class="number">
                {status === 'planned' && (
                  <Action
                    name={`cancel-${id}`}
                    action={`/api/quota-planner/decisions/${encodeURIComponent(id)}/cancel`}
                    label="Cancel"
                  />
                )}
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)
