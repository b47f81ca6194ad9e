/** `sluice doctor`: the checks of the doctor page from a shell, also when the server does not start. */
import { existsSync } from 'node:fs'
import type { Db } from '../../db/commit.ts'
import { readerDatabase } from '../../db/open.ts'
import { openPostgres } from '../../db/postgres/open.ts'
import { systemClock } from '../lib/clock.ts'
import { iso } from '../lib/iso.ts'
import { systemRandom } from '../lib/random.ts'
import { getEncryptionKeyId } from '../model/encryption-key-id.ts'
import { Backups } from '../ops/backups.ts'
import type { Finding, Verdict } from '../ops/checks.ts'
import { readThrough } from '../ops/database-check.ts'
import { runDoctor } from '../ops/doctor.ts'
import type { FolderFacts } from '../ops/folder-checks.ts'
import { type FolderPaths, getFolderPaths } from '../ops/folder-paths.ts'
import { readPostgresFacts } from '../ops/postgres-facts.ts'
import { DEFAULTS } from '../settings/schema.ts'
import { readSettings } from '../settings/store.ts'
import { createDial } from '../upstream/dial.ts'
import { getConfig, printJson, type Run, yieldToTurns } from './command.ts'

/** Exit code 1 when there is a problem. Creates, migrates and changes nothing. */
export const doctor: Run = async (io, _args, { json }) => {
  const config = getConfig(io)
  yieldToTurns()
  const report = await runDoctor({
    clock: systemClock,
    folder: () => folderFacts(getFolderPaths(config)),
    upstream: {
      dial: createDial(config.raw, io.fetch, {
        trustsSocketEnvironment: config.UPSTREAM_WEBSOCKET_TRUST_ENV,
        random: systemRandom,
      }),
      clock: systemClock,
      baseUrl: config.UPSTREAM_BASE_URL,
      authBaseUrl: config.AUTH_BASE_URL,
    },
  })
  if (json) printJson(io, { ...report, at: iso(report.at) })
  else io.stdout(report.findings.map(getLine).join(''))
  return report.verdict === 'problem' ? 1 : 0
}

const folderFacts = async (places: FolderPaths): Promise<FolderFacts> => {
  const { dir } = places
  const backups = new Backups({ dir, clock: systemClock, write: async () => 'this command makes none' })
  const facts = { ...places, backups: () => backups.list(), now: systemClock.now() }
  const url = places.databaseUrl
  if (url === null) return { ...facts, ...(await storedFacts(places)) }
  return { ...facts, ...(await factsInPostgres(url)), postgres: () => readPostgresFacts(url, systemClock) }
}

type StoredFacts = Pick<FolderFacts, 'keyFingerprint' | 'backupIntervalHours' | 'databaseFinding'>

const storedFacts = async ({ databasePath }: FolderPaths): Promise<StoredFacts> => {
  const { backupIntervalHours } = DEFAULTS
  if (!existsSync(databasePath)) return { keyFingerprint: null, backupIntervalHours, databaseFinding: null }
  return {
    keyFingerprint: undefined,
    backupIntervalHours,
    ...(await readableFacts(databasePath)),
    databaseFinding: readThrough(databasePath),
  }
}

/** `postgresChecks` reports if it cannot be read. */
const factsInPostgres = async (url: string): Promise<StoredFacts> => {
  const opened = openPostgres(url, { clock: systemClock, node: 'doctor', onListenerError: () => {} })
  const unread = { keyFingerprint: undefined, backupIntervalHours: DEFAULTS.backupIntervalHours }
  try {
    return { ...(await factsIn(opened.db)), databaseFinding: null }
  } catch {
    return { ...unread, databaseFinding: null }
  } finally {
    await opened.close()
  }
}

const factsIn = async (db: Db): Promise<Omit<StoredFacts, 'databaseFinding'>> => ({
  keyFingerprint: await getEncryptionKeyId(db),
  backupIntervalHours: (await readSettings(db)).values.backupIntervalHours,
})

/** Empty when the database cannot be read; `readThrough` reports why. */
const readableFacts = async (databasePath: string): Promise<Partial<StoredFacts>> => {
  try {
    const { sqlite, db } = readerDatabase(databasePath)
    try {
      return await factsIn(db)
    } finally {
      sqlite.close()
    }
  } catch {
    return {}
  }
}

const MARKS: Record<Verdict, string> = { ok: 'OK     ', unknown: 'Unknown', warning: 'Warning', problem: 'Problem' }

const getLine = ({ verdict, title, says, advice }: Finding): string =>
  `${MARKS[verdict]}  ${title}: ${says}\n${advice === null ? '' : `         -> ${advice}\n`}`
