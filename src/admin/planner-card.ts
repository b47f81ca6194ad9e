/** The planned starts of five-hour windows, for the card on the reports. */

import type { PlannerCard } from '../../views/reports/planner.tsx'
import type { Ctx } from '../boot/bindings.ts'
import { DAY_MS } from '../lib/durations.ts'
import { iso } from '../lib/iso.ts'
import { listDecisions } from '../model/planner/decisions.ts'
import { ENOUGH_DAYS, HISTORY_MS } from '../model/planner/demand.ts'
import { clockTime } from '../model/planner/starts.ts'
import { firstArrival } from '../model/replay/request-units.ts'
import { holds, mayWrite } from '../model/users/permissions.ts'
import { accountChoices } from './account-choices.ts'

const MAX_ROWS = 6

/** Null for users who may not see accounts, and for viewers while the planner is off. */
export const plannerCard = (c: Ctx): PlannerCard | null => {
  const { grants } = c.var.principal
  const { db, clock, settings } = c.env
  const { plannerMode: mode, plannerZone: zone } = settings.current()
  const isEditable = mayWrite(grants)
  if (!holds(grants, 'accounts:read') || (mode === 'off' && !isEditable)) return null
  const now = clock.now()
  const names = new Map(accountChoices(c).map(({ id, name }) => [id, name]))
  const first = mode === 'off' ? null : firstArrival(db, now - HISTORY_MS)
  return {
    mode,
    zone,
    coveredDays: first === null ? 0 : Math.floor((now - first) / DAY_MS),
    neededDays: ENOUGH_DAYS,
    decisions: listDecisions(db, MAX_ROWS).map(({ id, accountId, scheduledAt, reason, status }) => ({
      id,
      accountName: names.get(accountId ?? '') ?? null,
      scheduledAt: iso(scheduledAt),
      clock: clockTime(scheduledAt, zone),
      reason,
      status,
    })),
    isEditable,
  }
}
