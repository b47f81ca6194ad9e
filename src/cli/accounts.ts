/** `sluice accounts …`: upstream accounts, written straight to the database. */
import { readFile } from 'node:fs/promises'
import { commit, type Tx } from '../../db/commit.ts'
import { systemClock } from '../lib/clock.ts'
import { isoOrNull } from '../lib/iso.ts'
import { systemRandom } from '../lib/random.ts'
import {
  type AuthFile,
  type ImportFailure,
  importAccounts,
  onePerSeat,
  readAuthFiles,
} from '../model/account-import.ts'
import type { ImportedRow } from '../model/account-intake.ts'
import { nextState } from '../model/account-state.ts'
import {
  type AccountRow,
  deleteAccount,
  displayName,
  listAccounts,
  pauseAccount,
  reactivateAccount,
  stateOf,
  usageOf,
} from '../model/accounts.ts'
import type { Actor } from '../model/audit.ts'
import { importBudget, type OpenedFiles, openFile } from '../model/auth-files.ts'
import { perWindow, type UsageSnapshot, usedNow } from '../model/usage-windows.ts'
import { type Command, cliActor, dispatch, printJson, readArgs, UsageError, withFolder } from './command.ts'
import { aboutOne } from './find.ts'
import { listing } from './listing.ts'
import { shortTime } from './table.ts'

/** The good files are kept also when others cannot be read; then the exit code is 1. */
const importFiles: Command = async (args, io) => {
  const { values, positionals } = readArgs(args, { json: { type: 'boolean' } })
  if (positionals.length === 0)
    throw new UsageError('Name the auth.json files or ZIP archives of them to import; - is standard input.')
  const { files, failures: unreadable } = await readFiles(positionals)
  const { accounts, failures: malformed } = readAuthFiles(files)
  const failures = [...unreadable, ...malformed]
  return withFolder(io, ({ db, sealer }) => {
    const known = new Set(listAccounts(db).map(({ id }) => id))
    const doing = { sealer, random: systemRandom, actor: cliActor() }
    const rows = onePerSeat(commit(db, (tx) => importAccounts(tx, accounts, doing)))
    if (values.json) printJson(io, { accounts: rows.map(importedFacts), failures })
    else for (const row of rows) io.stdout(outcomeOf(row, known.has(row.id)))
    for (const { message } of failures) io.stderr(`sluice: ${message}\n`)
    return failures.length === 0 ? 0 : 1
  })
}

const importedFacts = (row: ImportedRow) => ({ ...facts(row, null), tokensKept: row.tokensKept })

const outcomeOf = ({ id, email, planType, tokensKept, status }: ImportedRow, wasKnown: boolean): string => {
  const verb = tokensKept ? 'Kept' : wasKnown ? 'Renewed' : 'Imported'
  const why = tokensKept ? ": nothing says that the file's tokens are newer than the stored ones" : ''
  return `${verb} ${email} (${planType}) as ${id}${why}${status === 'paused' ? '; it is still paused' : ''}\n`
}

const readFiles = async (names: readonly string[]): Promise<OpenedFiles> => {
  const budget = importBudget()
  const files: AuthFile[] = []
  const failures: ImportFailure[] = []
  for (const name of names) {
    try {
      const opened = await openFile(name, name === '-' ? await Bun.stdin.bytes() : await readFile(name), budget)
      files.push(...opened.files)
      failures.push(...opened.failures)
    } catch (err) {
      const reason = err instanceof Error && 'code' in err ? String(err.code) : String(err)
      failures.push({ file: name, message: `${name}: cannot be read (${reason})` })
    }
  }
  return { files, failures }
}

const list = listing({
  all: (db) => {
    const usage = usageOf(db)
    return listAccounts(db).map((row) => facts(row, usage.get(row.id) ?? null))
  },
  headings: ['ID', 'ACCOUNT', 'PLAN', 'STATUS', 'UNTIL', '5H', 'WEEK', 'MONTH'],
  cells: ({ accountId, displayName: name, planType, status, until, nextCheckAt, usedPercent }) => [
    accountId,
    name,
    planType,
    status,
    nextCheckAt === null ? shortTime(timeOf(until)) : `check ${shortTime(timeOf(nextCheckAt))}`,
    percent(usedPercent.fiveHour),
    percent(usedPercent.weekly),
    percent(usedPercent.monthly),
  ],
  none: 'No accounts yet: sluice accounts import ~/.codex/auth.json',
  document: (accounts) => ({ accounts }),
})

/** What is known of an account without its live part, which only the server has. Times are ISO 8601, as on the wire. */
const facts = (row: AccountRow, usage: UsageSnapshot | null) => {
  const now = systemClock.now()
  const { status, cause, evidence, until, nextCheckAt } = nextState(stateOf(row), { kind: 'tick', at: now })
  return {
    accountId: row.id,
    email: row.email,
    alias: row.alias,
    displayName: displayName(row),
    planType: row.planType,
    routingPolicy: row.routingPolicy,
    status,
    cause,
    evidence,
    until: isoOrNull(until),
    nextCheckAt: isoOrNull(nextCheckAt),
    usedPercent: perWindow((length) => usedNow(usage?.windows[length] ?? null, now)),
    lastRefreshAt: isoOrNull(row.lastRefreshAt),
  }
}

const timeOf = (text: string | null): number | null => (text === null ? null : Date.parse(text))

const percent = (used: number | null): string => (used === null ? '-' : `${Math.round(used)}%`)

const ACCOUNT = {
  what: 'account',
  foundBy: 'its id, the beginning of it, or its e-mail',
  all: listAccounts,
  namesOf: ({ email, alias }: AccountRow) => [email, alias],
}

/** A command that changes one account in one commit, then says so. */
const change = (verb: string, apply: (tx: Tx, id: string, actor: Actor) => unknown): Command =>
  aboutOne(ACCOUNT, (db, account) => {
    commit(db, (tx) => void apply(tx, account.id, cliActor()))
    return `${verb} ${displayName(account)} (${account.id})`
  })

export const accounts: Command = dispatch('accounts', {
  import: importFiles,
  list,
  pause: change('Paused', pauseAccount),
  resume: change('Resumed', reactivateAccount),
  remove: change('Removed', deleteAccount),
})
