/** The actions on an account in its current state, and why one is not possible. */
import { type AccountState, type AccountStatus, getStatusUnderPause } from './account-state.ts'

const ACCOUNT_ACTIONS = ['probe', 'resume', 'pause', 'reauthenticate', 'delete'] as const
export type AccountAction = (typeof ACCOUNT_ACTIONS)[number]

export interface OfferedAction {
  action: AccountAction
  /** Why it is not possible now, as a sentence; null: it is. */
  refusal: string | null
}

export const READ_ONLY = 'Your role can view accounts but not change them.'

/** Ordered by how likely they help in this state. The routes reject the same ones. */
export const offeredActions = (account: Standing, mayWrite: boolean): OfferedAction[] =>
  ORDER[account.status].map((action) => ({
    action,
    refusal: mayWrite ? getRefusal(action, account) : READ_ONLY,
  }))

type Standing = Pick<AccountState, 'status' | 'cause'>

const getRefusal = (action: AccountAction, account: Standing): string | null =>
  action === 'resume' && getStatusUnderPause(account) === 'reauth_required'
    ? 'Sign in again first.'
    : (REFUSALS[action]?.[account.status] ?? null)

/** An action without effect in a state is left out: an active account has nothing to resume. */
const ORDER: Record<AccountStatus, readonly AccountAction[]> = {
  active: ['probe', 'pause', 'reauthenticate', 'delete'],
  rate_limited: ['probe', 'resume', 'pause', 'reauthenticate', 'delete'],
  quota_exceeded: ['probe', 'resume', 'pause', 'reauthenticate', 'delete'],
  paused: ['resume', 'probe', 'reauthenticate', 'delete'],
  reauth_required: ['reauthenticate', 'probe', 'pause', 'delete'],
  deactivated: ['reauthenticate', 'resume', 'probe', 'pause', 'delete'],
}

const OUT_OF_USE = {
  paused: 'Resume the account to probe it.',
  reauth_required: 'Sign in again to probe the account.',
  deactivated: 'ChatGPT has closed this account. Sign in again or retry it first.',
} as const

const REFUSALS: Partial<Record<AccountAction, Partial<Record<AccountStatus, string>>>> = {
  probe: OUT_OF_USE,
  pause: {
    reauth_required: 'It is not used anyway until you sign in again.',
    deactivated: 'It is not used anyway while it is deactivated.',
  },
}
