/** A row of the request log as a list shows it, and as those see it who may not know all of it. */
import { maskEmails } from './account-summary.ts'

/** What somebody who reads the log is not told (spec §2, capability summary). */
export interface Blinders {
  /** Whose upstream accounts they are: e-mail addresses are masked, also in messages. */
  hidesAccounts: boolean
  /** Which API keys there are. */
  hidesKeys: boolean
}

export interface RecentRequest {
  id: string
  /** What the client was told, and may have chosen. */
  requestId: string
  /** ms since epoch */
  startedAt: number
  /** null: no key was needed, or it is gone. */
  keyName: string | null
  /** null: no account was reached, or it is gone. */
  accountName: string | null
  model: string | null
  status: 'ok' | 'error' | 'cancelled'
  errorCode: string | null
  /** Where it failed or was left: auth · select · connect · first_event · stream · finish. */
  phase: string | null
  httpStatus: number
  firstEventMs: number | null
  totalMs: number
  inputTokens: number | null
  outputTokens: number | null
  /** Millionths of a US dollar; null: the model has no known price. */
  costMicros: number | null
  /** Accounts that were asked. */
  attempts: number
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
  keyName?: string | null
  apiKeyId?: string | null
  apiKeyName?: string | null
}

const masked = (row: Row): Row =>
  present(row, ['accountName', 'errorMessage', 'message'], (text) => text && maskEmails(text))

const hidden = (row: Row): Row => present(row, ['keyName', 'apiKeyId', 'apiKeyName'], () => null)

type Change = (text: string | null) => string | null

const present = (row: Row, names: (keyof Row)[], change: Change): Row =>
  Object.fromEntries(names.filter((name) => name in row).map((name) => [name, change(row[name] ?? null)]))
