/** A row of the request log as those see it who may not know all of it. */
import { maskEmails } from './account-summary.ts'

/** What somebody who reads the log is not told (spec §2, capability summary). */
export interface Blinders {
  /** Whose upstream accounts they are: e-mail addresses are masked, and messages left out, which the upstream may have worded. */
  hidesAccounts: boolean
  /** Which API keys there are. */
  hidesKeys: boolean
}

/** `blinders` on every member of a row that could name an account or a key. */
export const blindedRow = <T extends Row>(row: T, blinders: Blinders): T => ({
  ...row,
  ...(blinders.hidesAccounts && masked(row)),
  ...(blinders.hidesKeys && hidden(row)),
})

interface Row {
  accountName?: string | null
  errorMessage?: string | null
  message?: string | null
  apiKeyId?: string | null
  apiKeyName?: string | null
}

const masked = (row: Row): Row => ({
  ...present(row, ['accountName'], (text) => text && maskEmails(text)),
  ...present(row, ['errorMessage', 'message'], () => null),
})

const hidden = (row: Row): Row => present(row, ['apiKeyId', 'apiKeyName'], () => null)

type Change = (text: string | null) => string | null

const present = (row: Row, names: (keyof Row)[], change: Change): Row =>
  Object.fromEntries(names.filter((name) => name in row).map((name) => [name, change(row[name] ?? null)]))
