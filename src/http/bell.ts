/** The active alerts for the bell on every page. */
import type { BellProps } from '../../views/bell.tsx'
import type { Principal } from '../auth/principal.ts'
import { seesOnlyOwnKeys } from '../auth/view-scope.ts'
import type { Ctx } from '../boot/bindings.ts'
import { iso } from '../lib/iso.ts'
import { holds } from '../model/users/permissions.ts'

/** The most alerts in the bell. The alerts page lists all. */
const LISTED = 8

export const getBell = (c: Ctx): BellProps => {
  const principal = c.get('principal') as Principal | undefined // as: an error can occur before any gate
  const grants = principal?.grants ?? new Map()
  const standing = c.env.alerts.for(grants)
  const hidesAccounts = !holds(grants, 'accounts:write')
  return {
    alerts: standing.slice(0, LISTED).map((row) => ({
      key: row.key,
      severity: row.severity,
      text: hidesAccounts ? row.textMasked : row.text,
      path: row.path,
      at: iso(row.since),
      isAcknowledged: row.acknowledgedAt !== null,
    })),
    total: standing.length,
    unacknowledged: standing.filter(({ acknowledgedAt }) => acknowledgedAt === null).length,
    hasPage: holds(grants, 'ops:write'),
    isLive: principal !== undefined && holds(grants, 'dashboard:read') && !seesOnlyOwnKeys(principal),
    now: iso(c.env.clock.now()),
  }
}
