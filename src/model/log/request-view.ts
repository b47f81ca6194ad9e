/** Hides parts of a log row that the user may not see. */
import { maskEmails } from '../accounts/account-summary.ts'
import type { ViewScope } from '../users/view-scope.ts'

/** What is hidden from a reader of the log (spec §2, capability summary). */
export interface HiddenFields {
  /** Rows of other keys are not read at all. In a user's own scope, accounts are left out. */
  scope: ViewScope
  /** Accounts: masks e-mail addresses and leaves out messages, which the upstream may have written. */
  hidesAccounts: boolean
  /** API keys. */
  hidesKeys: boolean
}

/** Applies `blinders` to every member that could name an account or a key. */
export const blindedRow = <T extends Row>(row: T, hiddenFields: HiddenFields): T => ({
  ...row,
  ...(hiddenFields.hidesAccounts && masked(row)),
  ...(hiddenFields.hidesKeys && hidden(row)),
  ...(hiddenFields.scope !== 'all' && withoutAccount(row)),
})

interface Row {
  accountId?: string | null
  planType?: string | null
  accountName?: string | null
  errorMessage?: string | null
  egressReason?: string | null
  message?: string | null
  apiKeyId?: string | null
  apiKeyName?: string | null
}

const masked = (row: Row): Row => ({
  ...present(row, ['accountName'], (text) => text && maskEmails(text)),
  ...present(row, ['errorMessage', 'egressReason', 'message'], () => null),
})

const hidden = (row: Row): Row => present(row, ['apiKeyId', 'apiKeyName'], () => null)

const withoutAccount = (row: Row): Row => present(row, ['accountId', 'accountName', 'planType'], () => null)

type Change = (text: string | null) => string | null

const present = (row: Row, names: (keyof Row)[], change: Change): Row =>
  Object.fromEntries(names.filter((name) => name in row).map((name) => [name, change(row[name] ?? null)]))
