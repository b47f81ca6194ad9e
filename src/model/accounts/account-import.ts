/** Imports several `auth.json` files: the valid ones are stored, the others are reported with a reason. */

import type { Tx } from '../../../db/commit.ts'
import { AppError } from '../../errors.ts'
import { mapInOrder } from '../../lib/in-order.ts'
import { parseJson } from '../../lib/json.ts'
import { readAccountEntry } from '../imports/account-forms.ts'
import { FORMAT_NAMES } from '../imports/words.ts'
import { type ImportedRow, importAccount, type TakingIn } from './account-intake.ts'
import { type ImportedAccount, parseAuthJson } from './auth-json.ts'

export interface AuthFile {
  name: string
  text: string
}

export interface ImportFailure {
  file: string
  /** Names the file and what is wrong with it. */
  message: string
}

interface ReadAuthFiles {
  accounts: ImportedAccount[]
  failures: ImportFailure[]
}

/** Reads all files; stores nothing. */
export const readAuthFiles = (files: readonly AuthFile[]): ReadAuthFiles => {
  const read: ReadAuthFiles = { accounts: [], failures: [] }
  for (const { name, text } of files) {
    try {
      read.accounts.push(readAuthFile(text, name))
    } catch (err) {
      if (!(err instanceof AppError)) throw err
      read.failures.push({ file: name, message: err.message })
    }
  }
  return read
}

/** Also accepts complete files of other programs. Throws `invalid_auth_json`. */
const readAuthFile = (text: string, name: string): ImportedAccount => {
  const entry = readAccountEntry(parseJson(text), name)
  if (!entry || entry.format === 'codex') return parseAuthJson(text, name)
  const { account, problem } = entry.account
  if (account) return account
  const why = problem ?? 'It has only a refresh token. Use “Import from another tool”, which exchanges it.'
  throw new AppError('invalid_auth_json', {
    message: `${name} is from ${FORMAT_NAMES[entry.format]}. ${why}`,
    param: name,
  })
}

/** Stores them in order. Two files of one account give two rows; see `mergeByAccount`. */
export const importAccounts = (tx: Tx, accounts: readonly ImportedAccount[], doing: TakingIn): Promise<ImportedRow[]> =>
  mapInOrder(accounts, (account) => importAccount(tx, account, doing))

/** Merges rows of the same account, keeping the last state; its tokens were kept if neither file is newer. */
export const mergeByAccount = (rows: readonly ImportedRow[]): ImportedRow[] => {
  const seats = new Map<string, ImportedRow>()
  for (const row of rows) {
    const tokensKept = row.tokensKept && (seats.get(row.id)?.tokensKept ?? true)
    seats.set(row.id, { ...row, tokensKept })
  }
  return [...seats.values()]
}
