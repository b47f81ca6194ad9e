/** The preview of an import, file by file, before anything is written; and the files kept until the user decides. */
import type { Db } from '../../../db/commit.ts'
import { AppError } from '../../errors.ts'
import type { Clock } from '../../lib/clock.ts'
import { MINUTE_MS } from '../../lib/durations.ts'
import type { Random } from '../../lib/random.ts'
import type { Sealer } from '../../lib/seal.ts'
import { inSlices } from '../../lib/slices.ts'
import { type AuthFile, type ImportFailure, readAuthFiles } from './account-import.ts'
import { findMatchingAccount, isNewer } from './account-intake.ts'
import { getStatusUnderPause } from './account-state.ts'
import { openTokens } from './account-tokens.ts'
import { displayName } from './accounts.ts'
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
  const entries = await inSlices(clock, files, (slice) => slice.map((file) => judge(db, file, { sealer, now })))
  const broken = failures.map(({ file, message }) => brokenEntry(file, message))
  for (const rivals of getSeats(entries)) markOutdated(rivals)
  return [...entries, ...broken].map((entry, index) => ({ ...entry, id: String(index) }))
}

const judge = (db: Db, file: AuthFile, { sealer, now }: { sealer: Sealer; now: number }): PreflightEntry => {
  const { accounts, failures } = readAuthFiles([file])
  const account = accounts[0]
  if (!account) return brokenEntry(file.name, failures[0]?.message ?? 'cannot be read.')
  const row = findMatchingAccount(db, account.identity)
  const entry = { id: '', file: file.name, account }
  if (!row) return { ...entry, verdict: 'new', reason: null, existing: null }
  const existing = { accountId: row.id, displayName: displayName(row) }
  const isSame = openTokens(sealer, row).refreshToken === account.tokens.refreshToken
  if (isNewer(account, row, { sealer, now })) {
    const why = isSame ? 'these are the same tokens, so importing them only tries them again' : 'these tokens may work'
    const reason = getStatusUnderPause(row) === 'reauth_required' ? `The account needs sign-in, and ${why}.` : null
    return { ...entry, verdict: 'newer', reason, existing }
  }
  if (isSame) return { ...entry, verdict: 'same', reason: 'These tokens are already stored.', existing }
  return account.lastRefreshAt === null
    ? {
        ...entry,
        verdict: 'undated',
        reason: 'The file does not say when its tokens were refreshed, so the stored ones are kept.',
        existing,
      }
    : { ...entry, verdict: 'older', reason: 'The stored tokens are newer, so these no longer work.', existing }
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

export interface Draft {
  id: string
  /** The user who uploaded the files; other users cannot continue. */
  owner: string
  entries: readonly PreflightEntry[]
  /** ms since epoch. */
  expiresAt: number
  /** Set after the import, so that sending it twice imports once. */
  outcome: readonly ImportOutcome[] | null
}

const TTL_MS = 15 * MINUTE_MS
/** Per owner. Limits the number of tokens in memory; the oldest drafts are dropped. */
const MAX_DRAFTS = 8

/** Files between preview and import, in memory only. */
export class ImportDrafts {
  readonly #clock: Clock
  readonly #random: Random
  readonly #drafts = new Map<string, Draft>()
  /** Running imports. */
  readonly #underWay = new Map<string, Promise<void>>()

  constructor(clock: Clock, random: Random) {
    this.#clock = clock
    this.#random = random
  }

  keep(owner: string, entries: readonly PreflightEntry[]): Draft {
    this.#forgetOld()
    const id = this.#random.id('imp')
    const draft: Draft = { id, owner, entries, expiresAt: this.#clock.now() + TTL_MS, outcome: null }
    this.#drafts.set(id, draft)
    const theirs = [...this.#drafts.values()].filter((other) => other.owner === owner)
    for (const old of theirs.slice(0, -MAX_DRAFTS)) this.#drafts.delete(old.id)
    return draft
  }

  /** Throws `import_not_found`, also for another user's draft. */
  get(id: string, owner: string): Draft {
    this.#forgetOld()
    const draft = this.#drafts.get(id)
    if (draft?.owner !== owner) throw new AppError('import_not_found')
    return draft
  }

  /**
   * Imports `draft` once, also for parallel calls. Drops the tokens and keeps the result. If `run` fails, it can be
   * retried.
   */
  finish(draft: Draft, run: () => Promise<readonly ImportOutcome[]>): Promise<void> {
    const running = this.#underWay.get(draft.id) ?? this.#finish(draft, run)
    this.#underWay.set(draft.id, running)
    return running
  }

  async #finish(draft: Draft, run: () => Promise<readonly ImportOutcome[]>): Promise<void> {
    try {
      const outcome = await run()
      const entries = draft.entries.map((entry) => ({ ...entry, account: null }))
      if (this.#drafts.has(draft.id)) this.#drafts.set(draft.id, { ...draft, entries, outcome })
    } finally {
      this.#underWay.delete(draft.id)
    }
  }

  #forgetOld(): void {
    const now = this.#clock.now()
    for (const [id, { expiresAt }] of this.#drafts) if (expiresAt <= now) this.#drafts.delete(id)
  }
}
