/** The pool in one line, for server start and command line: number of accounts and keys, and problems. */
import type { AccountStatus } from '../../../db/schema/accounts.ts'

/** The state in the middle of a sentence. */
export const STATE_WORDS: Record<AccountStatus, string> = {
  active: 'active',
  rate_limited: 'rate limited',
  quota_exceeded: 'out of quota',
  paused: 'paused',
  reauth_required: 'needs sign-in',
  deactivated: 'deactivated',
}

/** "1 key", "2 keys". */
export const plural = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`

/** "3 accounts (1 needs sign-in, 1 paused)": active ones are not listed. */
export const accountsPhrase = (statuses: readonly AccountStatus[]): string => {
  const words = Object.keys(STATE_WORDS) as AccountStatus[] // as: the keys of this table
  const others = words.flatMap((status) => {
    const count = status === 'active' ? 0 : statuses.filter((one) => one === status).length
    return count === 0
      ? []
      : [status === 'reauth_required' && count > 1 ? `${count} need sign-in` : `${count} ${STATE_WORDS[status]}`]
  })
  return `${plural(statuses.length, 'account')}${others.length === 0 ? '' : ` (${others.join(', ')})`}`
}
