/** What the running server keeps about itself: counts of turns, the lag of its loop, its backups, and its doctor. */
import type { Config } from '../env.ts'
import type { Clock } from '../lib/clock.ts'
import type { Settings } from '../settings/schema.ts'
import type { Dial } from '../upstream/dial.ts'
import { Backups, writeInChild } from './backups.ts'
import { Doctor } from './doctor.ts'
import { LoopLag } from './loop-lag.ts'
import { placesOf } from './places.ts'
import { TurnCounts } from './turn-counts.ts'

export interface Ops {
  turns: TurnCounts
  loopLag: LoopLag
  backups: Backups
  doctor: Doctor
}

interface OpsDeps {
  config: Config
  keyFingerprint: () => string | null
  clock: Clock
  dial: Dial
  settings: () => Readonly<Settings>
  isKnownModel: (model: string) => boolean
}

/** Nothing is started or touched yet. */
export const createOps = (deps: OpsDeps): Ops => {
  const { config, keyFingerprint, clock, dial, settings } = deps
  const places = placesOf(config)
  const backups = new Backups({ dir: places.dir, clock, write: writeInChild(config.raw) })
  const folder = () => ({
    ...places,
    keyFingerprint: keyFingerprint(),
    databaseFinding: null,
    backups: () => backups.list(),
    backupIntervalHours: settings().backupIntervalHours,
    now: clock.now(),
  })
  const upstream = { dial, clock, baseUrl: config.UPSTREAM_BASE_URL, authBaseUrl: config.AUTH_BASE_URL }
  return {
    turns: new TurnCounts(deps.isKnownModel),
    loopLag: new LoopLag(clock),
    backups,
    doctor: new Doctor({ clock, folder, upstream }),
  }
}
