/** `sluice accounts …`: the ChatGPT accounts of the pool, changed in the database. */
import { readFile } from 'node:fs/promises'
import { commit, type Tx } from '../../db/commit.ts'
import { systemClock } from '../lib/clock.ts'
import { isoOrNull } from '../lib/iso.ts'
import { systemRandom } from '../lib/random.ts'
import {
  type AuthFile,
  type ImportFailure,
  importAccounts,
  mergeByAccount,
  readAuthFiles,
} from '../model/accounts/account-import.ts'
import type { ImportedRow } from '../model/accounts/account-intake.ts'
import { accountNames } from '../model/accounts/account-names.ts'
import { nextState } from '../model/accounts/account-state.ts'
import {
  type AccountRow,
  deleteAccount,
  displayName,
  getState,
  getUsage,
  listAccounts,
  pauseAccount,
  reactivateAccount,
} from '../model/accounts/accounts.ts'
import { importBudget, type OpenedFiles, openFile } from '../model/accounts/auth-files.ts'
import { perWindow, type UsageSnapshot, usedNow } from '../model/accounts/usage-windows.ts'
import type { Actor } from '../model/audit/audit.ts'
import { STATE_WORDS } from '../model/overview/pool-words.ts'
import { cliActor, printJson, type Run, withNewFolder } from './command.ts'
import { commandForOne } from './find.ts'
import { listing } from './listing.ts'
import { shortTime } from './table.ts'

/** Imports the valid files even if others fail; the exit code is then 1. */
export const importFiles: Run = async (io, names, { json }) => {
  const { files, failures: unreadable } = await readFiles(names)
  const { accounts, failures: malformed } = readAuthFiles(files)
  const failures = [...unreadable, ...malformed]
  return withNewFolder(io, async ({ db, sealer }) => {
    const known = new Set((await listAccounts(db)).map(({ id }) => id))
    const doing = { sealer, random: systemRandom, actor: cliActor() }
    const rows = mergeByAccount(await commit(db, (tx) => importAccounts(tx, accounts, doing)))
    if (json) printJson(io, { accounts: rows.map(importedFacts), failures })
    else for (const row of rows) io.stdout(getOutcome(row, known.has(row.id)))
    for (const { message } of failures) io.stderr(`sluice: ${message}\n`)
    return failures.length === 0 ? 0 : 1
  })
}

const importedFacts = (row: ImportedRow) => ({ ...facts(row, null), tokensKept: row.tokensKept })

const getOutcome = ({ email, planType, tokensKept, status }: ImportedRow, wasKnown: boolean): string => {
  const name = `${email} (${planType})`
  const paused = status === 'paused' ? ' It is still paused.' : ''
  if (tokensKept) return `Kept ${name}: the stored tokens are as new as the ones in the file.${paused}\n`
  return `${wasKnown ? 'Updated' : 'Imported'} ${name}.${paused}\n`
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

export const listOfAccounts = listing({
  all: async (db) => {
    const usage = await getUsage(db)
    return (await listAccounts(db)).map((row) => facts(row, usage.get(row.id) ?? null))
  },
  getName: (account) => account.displayName,
  headings: ['ACCOUNT', 'PLAN', 'STATUS', 'UNTIL', '5H', 'WEEK', 'MONTH', 'ID'],
  cells: ({ accountId, displayName: name, planType, status, until, nextCheckAt, usedPercent }) => [
    name,
    planType,
    STATE_WORDS[status],
    nextCheckAt === null ? shortTime(timeOf(until)) : `check ${shortTime(timeOf(nextCheckAt))}`,
    percent(usedPercent.fiveHour),
    percent(usedPercent.weekly),
    percent(usedPercent.monthly),
    accountId,
  ],
  none: 'No accounts yet. To add one: sluice accounts add',
  document: (accounts) => ({ accounts }),
})

/** What the database knows of an account; only the server has its live state. Times are ISO 8601. */
const facts = (row: AccountRow, usage: UsageSnapshot | null) => {
  const now = systemClock.now()
  const { status, cause, evidence, until, nextCheckAt } = nextState(getState(row), { kind: 'tick', at: now })
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

export const ACCOUNT = {
  what: 'account',
  listedBy: 'accounts list',
  all: listAccounts,
  getNames: ({ email, alias }: AccountRow) => [email, alias],
}

/** A command that changes one account in one commit. */
const change = (verb: string, apply: (tx: Tx, id: string, actor: Actor) => Promise<unknown>): Run =>
  commandForOne(ACCOUNT, async (db, account) => {
    const name = (await accountNames(db, { hidesAccounts: false })).get(account.id) ?? displayName(account)
    await commit(db, async (tx) => void (await apply(tx, account.id, cliActor())))
    return `${verb} ${name}.`
  })

export const pause = change('Paused', pauseAccount)
export const resume = change('Resumed', reactivateAccount)
export const remove = change('Removed', deleteAccount)
