/** What somebody can do about an account in its present state, and, where they cannot, why not. */
import { type AccountState, type AccountStatus, statusBeneath } from './account-state.ts'

const ACCOUNT_ACTIONS = ['probe', 'resume', 'pause', 'reauthenticate', 'delete'] as const
export type AccountAction = (typeof ACCOUNT_ACTIONS)[number]

export interface OfferedAction {
  action: AccountAction
  /** Why it cannot be done now, as a sentence; null: it can. */
  refusal: string | null
}

export const READ_ONLY = 'Your role can look at accounts but not change them.'

/** In the order of their use for this state: what most likely helps comes first. The routes refuse the same. */
export const offeredActions = (account: Standing, mayWrite: boolean): OfferedAction[] =>
  ORDER[account.status].map((action) => ({
    action,
    refusal: mayWrite ? refusalOf(action, account) : READ_ONLY,
  }))

type Standing = Pick<AccountState, 'status' | 'cause'>

const refusalOf = (action: AccountAction, account: Standing): string | null =>
  action === 'resume' && statusBeneath(account) === 'reauth_required'
    ? 'It has to sign in again first.'
    : (REFUSALS[action]?.[account.status] ?? null)

/** A state that is being left is not offered again: what runs has nothing to resume. */
const ORDER: Record<AccountStatus, readonly AccountAction[]> = {
  active: ['probe', 'pause', 'reauthenticate', 'delete'],
  rate_limited: ['probe', 'resume', 'pause', 'reauthenticate', 'delete'],
  quota_exceeded: ['probe', 'resume', 'pause', 'reauthenticate', 'delete'],
  paused: ['resume', 'probe', 'reauthenticate', 'delete'],
  reauth_required: ['reauthenticate', 'probe', 'pause', 'delete'],
  deactivated: ['reauthenticate', 'resume', 'probe', 'pause', 'delete'],
}

const OUT_OF_USE = {
  paused: 'A paused account is not asked anything. Resume it first.',
  reauth_required: 'Without a new sign-in there is nothing to ask with.',
  deactivated: 'The service has closed this account. Sign in again or try again first.',
} as const

const REFUSALS: Partial<Record<AccountAction, Partial<Record<AccountStatus, string>>>> = {
  probe: OUT_OF_USE,
  pause: {
    reauth_required: 'It is not asked anyway until somebody signs in again.',
    deactivated: 'It is not asked anyway while it is deactivated.',
  },
}
