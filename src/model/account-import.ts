/** Takes in several `auth.json` files at once: the good ones are kept, the others are named with their reason. */
import type { Tx } from '../../db/commit.ts'
import { AppError } from '../errors.ts'
import type { Random } from '../lib/random.ts'
import type { Sealer } from '../lib/seal.ts'
import { type ImportedRow, importAccount } from './accounts.ts'
import type { Actor } from './audit.ts'
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

export interface ReadAuthFiles {
  accounts: ImportedAccount[]
  failures: ImportFailure[]
}

/** Reads all files; nothing is stored yet. */
export const readAuthFiles = (files: readonly AuthFile[]): ReadAuthFiles => {
  const read: ReadAuthFiles = { accounts: [], failures: [] }
  for (const { name, text } of files) {
    try {
      read.accounts.push(parseAuthJson(text, name))
    } catch (err) {
      if (!(err instanceof AppError)) throw err
      read.failures.push({ file: name, message: err.message })
    }
  }
  return read
}

/** Stores them in one commit, in their order; two files of one seat are one account, whose tokens are kept if neither is newer. */
export const importAccounts = (
  tx: Tx,
  accounts: readonly ImportedAccount[],
  doing: { sealer: Sealer; random: Random; actor: Actor },
): ImportedRow[] => {
  const rows = new Map<string, ImportedRow>()
  for (const account of accounts) {
    const row = importAccount(tx, account, doing)
    rows.set(row.id, { ...row, tokensKept: row.tokensKept && (rows.get(row.id)?.tokensKept ?? true) })
  }
  return [...rows.values()]
}
