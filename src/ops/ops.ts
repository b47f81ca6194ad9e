/** What the running server knows about itself: request counts, outages, event loop lag, backups, and the doctor. */
import { statSync } from 'node:fs'
import { type Db, holdWriter } from '../../db/commit.ts'
import type { Config } from '../boot/env.ts'
import type { Clock } from '../lib/clock.ts'
import type { LedgerEntry } from '../proxy/ledger/ledger.ts'
import type { Settings } from '../settings/schema.ts'
import type { Dial } from '../upstream/dial.ts'
import { copyThroughServer } from './backup-file.ts'
import { Backups, writeInChild } from './backups.ts'
import { problem } from './checks.ts'
import { type DatabaseProblem, lost, missingFolderProblem } from './database-problem.ts'
import { Doctor } from './doctor.ts'
import { getFolderPaths } from './folder-paths.ts'
import { LoopLag } from './loop-lag.ts'
import { OutageWatch } from './outage.ts'
import { readPostgresFacts } from './postgres-facts.ts'
import { TurnCounts } from './turn-counts.ts'

export interface Ops {
  /** Called for each ended request. */
  count: (entry: LedgerEntry) => void
  turns: TurnCounts
  outage: OutageWatch
  loopLag: LoopLag
  backups: Backups
  doctor: Doctor
  /** Advice when the database file was removed or replaced; otherwise null. */
  lostDatabase: () => DatabaseProblem | null
}

interface OpsDeps {
  config: Config
  /** The server's database. */
  database: { db: Db; isNamed: () => boolean }
  keyFingerprint: () => Promise<string | null>
  clock: Clock
  dial: Dial
  settings: () => Readonly<Settings>
  isKnownModel: (model: string) => boolean
}

/** Starts nothing yet. */
export const createOps = (deps: OpsDeps): Ops => {
  const { config, database, keyFingerprint, clock, dial, settings } = deps
  const places = getFolderPaths(config)
  const { databaseUrl } = places
  const writeNamed = writeInChild(config.raw)
  const write: typeof writeNamed = async (target, signal) =>
    database.isNamed()
      ? writeNamed(target, signal)
      : holdWriter(database.db, (writer) => copyThroughServer(writer, target))
  const backups = new Backups({ dir: places.dir, clock, write })
  const lostDatabase = () => {
    if (database.isNamed()) return null
    return isReplaced(places.dir) ? missingFolderProblem(places.dir) : lost(places.databasePath)
  }
  const databaseFinding = () => {
    const trouble = lostDatabase()
    return trouble && problem(trouble.says, trouble.advice)
  }
  const folder = async () => ({
    ...places,
    keyFingerprint: await keyFingerprint(),
    databaseFinding: databaseFinding(),
    backups: () => backups.list(),
    backupIntervalHours: settings().backupIntervalHours,
    now: clock.now(),
    ...(databaseUrl !== null && { postgres: () => readPostgresFacts(databaseUrl, clock) }),
  })
  const upstream = { dial, clock, baseUrl: config.UPSTREAM_BASE_URL, authBaseUrl: config.AUTH_BASE_URL }
  const turns = new TurnCounts(deps.isKnownModel)
  const outage = new OutageWatch(clock)
  return {
    count: (entry) => {
      turns.count(entry)
      outage.count(entry)
    },
    turns,
    outage,
    loopLag: new LoopLag(clock),
    backups,
    doctor: new Doctor({ clock, folder, upstream }),
    lostDatabase,
  }
}

/** Whether the folder or a parent was replaced by a file. A missing folder is recreated by the next backup. */
const isReplaced = (dir: string): boolean => {
  try {
    return !statSync(dir).isDirectory()
  } catch (err) {
    return (err as NodeJS.ErrnoException).code === 'ENOTDIR' // as: the file system throws nothing else
  }
}
