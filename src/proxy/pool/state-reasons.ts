/** The skip reasons of account states. */
import type { AccountState } from '../../model/accounts/account-state.ts'
import type { SkipReason } from '../../model/log/skip-reasons.ts'

/** Limits named by a usage report have their own reason; other blocks use the status. */
export const blockReason = ({ cause, status }: AccountState): SkipReason =>
  OWN_WORDS.find((reason) => reason === cause) ?? (status as 'rate_limited' | 'quota_exceeded') // as: the account is blocked

export const OWN_WORDS = ['spend_cap_reached', 'credits_depleted', 'not_allowed'] as const

export type UnusableStatus = Exclude<AccountState['status'], 'active' | 'rate_limited' | 'quota_exceeded'>

export const UNUSABLE: Record<UnusableStatus, SkipReason> = {
  paused: 'paused',
  reauth_required: 'needs_sign_in',
  deactivated: 'deactivated',
}
