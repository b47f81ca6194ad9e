/** The audit log: every event name, and the one way to write a row, inside the commit of the change it records. */
import type { Tx } from '../../db/commit.ts'
import { auditLogs } from '../../db/schema/system.ts'

/** event → severity. */
export const EVENTS = {
  account_imported: 'notice',
  account_updated: 'info',
  account_paused: 'info',
  account_reactivated: 'info',
  account_deleted: 'warning',
  account_probed: 'info',
  api_key_created: 'notice',
  api_key_updated: 'notice',
  api_key_regenerated: 'notice',
  api_key_deleted: 'notice',
  settings_updated: 'notice',
  firewall_entry_added: 'warning',
  firewall_entry_removed: 'warning',
} as const satisfies Record<string, 'info' | 'notice' | 'warning'>
export type AuditEvent = keyof typeof EVENTS

/** Who does something, from where, and when: what every mutating function is given beside its values. */
export interface Actor {
  /** Account id, or `bootstrap`, `cli`, `system`. */
  id: string
  method: string | null
  address: string | null
  at: number
}

export const append = (
  tx: Tx,
  actor: Actor,
  event: AuditEvent,
  { target = null, details = null }: { target?: string | null; details?: Record<string, unknown> | null } = {},
): void => {
  tx.insert(auditLogs)
    .values({
      at: actor.at,
      event,
      actor: actor.id,
      target,
      method: actor.method,
      address: actor.address,
      severity: EVENTS[event],
      details,
    })
    .run()
}
