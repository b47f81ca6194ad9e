/** The preview of an import, file by file, before anything is written; and the files kept until the user decides. */

import type { Db } from '../../../db/commit.ts'
import type { Clock } from '../../lib/clock.ts'
import { Drafts, type Draft as MemoryDraft } from '../../lib/drafts.ts'
import { MINUTE_MS } from '../../lib/durations.ts'
import { mapInOrder } from '../../lib/in-order.ts'
import type { Random } from '../../lib/random.ts'
import type { Sealer } from '../../lib/seal.ts'
import { inSlices } from '../../lib/slices.ts'
import { type AuthFile, type ImportFailure, readAuthFiles } from './account-import.ts'
import { findMatchingAccount, isNewer } from './account-intake.ts'
import { getStatusUnderPause } from './account-state.ts'
import { openTokens } from './account-tokens.ts'
import { type AccountRow, displayName } from './accounts.ts'
import type { AccountIdentity, ImportedAccount } from './auth-json.ts'

/** `newer` replaces what is stored; `same`, `older` and `undated` (unknown age) change nothing. */
export type Verdict = 'new' | 'newer' | 'same' | 'older' | 'undated' | 'broken'

export interface PreflightEntry {
  /** Identifies the file when the user selects it. */
  id: string
  file: string
  verdict: Verdict
  /** A sentence, if the verdict is not enough. */
  reason: string | null
  /** null for a broken file. */
  account: ImportedAccount | null
  /** The account it would update. */
  existing: { accountId: string; displayName: string } | null
}

/**
 * Compares all files with the database and with each other: of two for the same account only the newest counts. Writes
 * nothing.
 */
export const checkFiles = async (
  db: Db,
  files: readonly AuthFile[],
  { sealer, clock, failures }: { sealer: Sealer; clock: Clock; failures: readonly ImportFailure[] },
): Promise<PreflightEntry[]> => {
  const now = clock.now()
  const entries = await inSlices(clock, files, (slice) => mapInOrder(slice, (file) => judge(db, file, { sealer, now })))
  const broken = failures.map(({ file, message }) => brokenEntry(file, message))
  for (const rivals of getSeats(entries)) markOutdated(rivals)
  return [...entries, ...broken].map((entry, index) => ({ ...entry, id: String(index) }))
}

const judge = async (
  db: Db,
  file: AuthFile,
  { sealer, now }: { sealer: Sealer; now: number },
): Promise<PreflightEntry> => {
  const { accounts, failures } = readAuthFiles([file])
  const account = accounts[0]
  if (!account) return brokenEntry(file.name, failures[0]?.message ?? 'cannot be read.')
  const row = await findMatchingAccount(db, account.identity)
  const existing = row ? { accountId: row.id, displayName: displayName(row) } : null
  return { id: '', file: file.name, account, existing, ...judgeTokens(account, row ?? null, { sealer, now }) }
}

/** The effect of importing `account` on `row`, the stored account of the same seat. `row` is null if there is none. */
export const judgeTokens = (
  account: ImportedAccount,
  row: AccountRow | null,
  { sealer, now }: { sealer: Sealer; now: number },
): { verdict: Verdict; reason: string | null } => {
  if (row === null) return { verdict: 'new', reason: null }
  const isSame = openTokens(sealer, row).refreshToken === account.tokens.refreshToken
  if (isNewer(account, row, { sealer, now })) {
    const why = isSame ? 'these are the same tokens, so importing them only tries them again' : 'these tokens may work'
    const reason = getStatusUnderPause(row) === 'reauth_required' ? `The account needs sign-in, and ${why}.` : null
    return { verdict: 'newer', reason }
  }
  if (isSame) return { verdict: 'same', reason: 'These tokens are already stored.' }
  return account.lastRefreshAt === null
    ? {
        verdict: 'undated',
        reason: 'The file does not say when its tokens were refreshed, so the stored ones are kept.',
      }
    : { verdict: 'older', reason: 'The stored tokens are newer, so these no longer work.' }
}

/** Removes the file name, which the table shows separately. */
const brokenEntry = (file: string, message: string): PreflightEntry => {
  const why = message.startsWith(`${file} `) ? message.slice(file.length + 1) : message
  return { id: '', file, verdict: 'broken', reason: `The file ${why}`, account: null, existing: null }
}

const getSeats = (entries: readonly PreflightEntry[]): Iterable<PreflightEntry[]> =>
  Map.groupBy(entries, ({ account }) => getSeat(account?.identity)).values()

const getSeat = (identity: AccountIdentity | undefined): string =>
  JSON.stringify([identity?.email.toLowerCase(), identity?.chatgptAccountId, identity?.chatgptUserId])

/** Keeps the newest of several files for one account, or the last of equally new ones, and skips the others. Broken files stay. */
const markOutdated = (rivals: readonly PreflightEntry[]): void => {
  if (rivals.length < 2) return
  const at = ({ account }: PreflightEntry) => account?.lastRefreshAt ?? Number.NEGATIVE_INFINITY
  const best = rivals.reduce((a, b) => (at(b) >= at(a) ? b : a))
  for (const entry of rivals)
    if (entry !== best && isWorthwhile(entry)) {
      entry.verdict = 'older'
      entry.reason = `${best.file} is for the same account and at least as new.`
    }
}

export const isWorthwhile = ({ verdict }: Pick<PreflightEntry, 'verdict'>): boolean =>
  verdict === 'new' || verdict === 'newer'

/** The result for one selected file. */
export interface ImportOutcome {
  accountId: string
  displayName: string
  planType: string
  tokensKept: boolean
  /** Whether it was paused and therefore still is. */
  isPaused: boolean
}

/** The files of an import between preview and import. */
export interface ImportPreview {
  entries: readonly PreflightEntry[]
  /** Set after the import, when the tokens are dropped. A repeated request returns it instead of importing again. */
  outcome: readonly ImportOutcome[] | null
}

export type Draft = MemoryDraft<ImportPreview>

/** Limits the number of tokens in memory. */
export const importDrafts = (clock: Clock, random: Random): Drafts<ImportPreview> =>
  new Drafts(clock, random, { prefix: 'imp', ttlMs: 15 * MINUTE_MS, max: 8 })
