/** The audit log: all event names, and the only function to write a row, inside the commit of the change. */
import type { Tx } from '../../db/commit.ts'
import { extendChain } from './audit-chain.ts'

/** Event → severity. */
export const EVENTS = {
  account_imported: 'notice',
  account_updated: 'info',
  account_paused: 'info',
  account_reactivated: 'info',
  account_deleted: 'warning',
  account_probed: 'info',
  account_sign_in_started: 'info',
  account_signed_in: 'notice',
  account_reauthenticated: 'notice',
  account_sign_in_failed: 'warning',
  account_sign_in_cancelled: 'info',
  account_exported: 'warning',
  account_released: 'notice',
  sticky_sessions_deleted: 'notice',
  quota_planner_canceled: 'notice',
  quota_planner_started: 'notice',
  reset_credit_redeemed: 'notice',
  api_key_created: 'notice',
  api_key_updated: 'notice',
  api_key_regenerated: 'notice',
  api_key_deleted: 'notice',
  api_key_tested: 'info',
  model_source_created: 'notice',
  model_source_updated: 'notice',
  model_source_deleted: 'notice',
  model_source_tested: 'info',
  automation_created: 'notice',
  automation_updated: 'notice',
  automation_deleted: 'notice',
  automation_started: 'info',
  settings_updated: 'notice',
  proxy_endpoint_created: 'warning',
  proxy_endpoint_updated: 'warning',
  proxy_endpoint_deleted: 'warning',
  proxy_endpoint_tested: 'info',
  proxy_pool_created: 'notice',
  proxy_pool_updated: 'notice',
  proxy_pool_deleted: 'notice',
  proxy_pool_member_added: 'notice',
  proxy_pool_member_updated: 'notice',
  proxy_pool_member_removed: 'notice',
  account_egress_changed: 'notice',
  firewall_entry_added: 'warning',
  firewall_entry_removed: 'warning',
  capture_started: 'warning',
  capture_ended: 'notice',
  captured_request_read: 'warning',
  captured_request_deleted: 'notice',
  captured_requests_deleted: 'notice',
  login_success: 'info',
  login_failed: 'warning',
  logout: 'info',
  password_set: 'warning',
  password_changed: 'warning',
  password_removed: 'warning',
  totp_enabled: 'warning',
  totp_disabled: 'warning',
  recovery_codes_created: 'warning',
  recovery_code_used: 'warning',
  passkey_added: 'warning',
  passkey_renamed: 'info',
  passkey_removed: 'warning',
  step_up_verified: 'info',
  profile_updated: 'info',
  guest_password_set: 'warning',
  guest_password_removed: 'warning',
  guest_sessions_revoked: 'notice',
  user_created: 'warning',
  identity_linked: 'warning',
  user_invited: 'warning',
  invite_resent: 'notice',
  invite_confirmed: 'notice',
  invite_revoked: 'notice',
  invite_accepted: 'warning',
  user_updated: 'notice',
  user_renamed: 'notice',
  user_role_changed: 'warning',
  user_disabled: 'warning',
  user_enabled: 'warning',
  user_deleted: 'warning',
  user_keys_deactivated: 'notice',
  user_keys_reactivated: 'notice',
  user_totp_reset: 'warning',
  user_sessions_revoked: 'notice',
  session_ended: 'info',
  role_created: 'warning',
  role_updated: 'warning',
  role_deleted: 'warning',
  provider_updated: 'warning',
  bootstrap_token_rotated: 'warning',
  audit_purged: 'warning',
  backup_created: 'notice',
  backup_downloaded: 'warning',
  backup_restored: 'warning',
} as const satisfies Record<string, 'info' | 'notice' | 'warning'>
export type AuditEvent = keyof typeof EVENTS

/** Who acts, from where, and when: passed to every mutating function. */
export interface Actor {
  /** User id, or `bootstrap`, `disabled`, `guest`, `cli`, `system`. */
  id: string
  /** The user's current name. */
  name?: string | null
  role?: string | null
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
  extendChain(tx, {
    at: actor.at,
    event,
    actor: actor.id,
    actorName: actor.name ?? null,
    actorRole: actor.role ?? null,
    target,
    method: actor.method,
    address: actor.address,
    severity: EVENTS[event],
    details,
  })
}
