/** The words for accounts that pages, dialogs, the API and the command line share. */
import type { AccountStatus } from '../../../db/schema/accounts.ts'
import type { AccountEvent, AccountState } from './account-state.ts'

export const STATE_NAMES: Record<AccountStatus, string> = {
  active: 'Active',
  rate_limited: 'Rate limited',
  quota_exceeded: 'Out of quota',
  paused: 'Paused',
  reauth_required: 'Needs sign-in',
  deactivated: 'Deactivated',
}

/** The quota windows, by the names that reports of ChatGPT, readings of meters and the pool have for them. */
const WINDOW_NAMES = {
  fiveHour: '5-hour',
  five_hour: '5-hour',
  '5h': '5-hour',
  weekly: 'weekly',
  '7d': 'weekly',
  monthly: 'monthly',
} as const

type QuotaWindow = keyof typeof WINDOW_NAMES

/** Within a sentence. */
export const windowName = (window: QuotaWindow): string => WINDOW_NAMES[window]

/** As a label. */
export const windowLabel = (window: QuotaWindow): string => {
  const name = windowName(window)
  return name.charAt(0).toUpperCase() + name.slice(1)
}

/** Why an account is active again, for its history. `before`: the state that ended. */
export const recoveryText = ({ until }: Pick<AccountState, 'until'>, event: AccountEvent): string | null => {
  switch (event.kind) {
    case 'usage':
      return 'The usage report shows quota again.'
    case 'checked':
      return event.by === 'reset_credit' ? 'A reset credit was used.' : 'ChatGPT served a probe.'
    case 'reactivate':
      return 'Resumed by a user.'
    case 'reauthenticated':
      return 'Signed in again.'
    default:
      return until === null ? 'The wait is over, so it is tried again.' : 'The reset time has passed.'
  }
}
