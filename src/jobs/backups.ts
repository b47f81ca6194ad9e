/** Makes a backup when the newest is older than the settings say, and removes those beyond the number to keep. */
import type { Clock } from '../lib/clock.ts'
import { HOUR_MS } from '../lib/durations.ts'
import type { Log } from '../lib/log.ts'
import type { Backup } from '../ops/backups.ts'
import type { Settings } from '../settings/schema.ts'

/** How often to look whether one is due; a failed one is tried again as soon. */
export const BACKUPS_BEAT_MS = 600_000

export interface BackupJobDeps {
  backups: {
    list(): Promise<Backup[]>
    make(kind: 'scheduled', signal?: AbortSignal): Promise<Backup>
    keepNewest(count: number): Promise<string[]>
  }
  settings: { current(): Pick<Settings, 'backupIntervalHours' | 'backupKeep'> }
  clock: Clock
  log: Log
}

/**
 * The age counts, not when the process started: restarts neither skip one nor make one more. One of a time to come has none,
 * and one that somebody asked for puts off no other.
 */
export const backUp = async ({ backups, settings, clock, log }: BackupJobDeps, signal: AbortSignal): Promise<void> => {
  const { backupIntervalHours, backupKeep } = settings.current()
  if (backupIntervalHours === 0) return
  const now = clock.now()
  const newest = (await backups.list()).find(({ at, kind }) => at <= now && kind === 'scheduled')
  if (newest && now - newest.at < backupIntervalHours * HOUR_MS) return
  const { name, bytes } = await backups.make('scheduled', signal)
  const removed = await backups.keepNewest(backupKeep)
  log.info('backup created', { name, bytes, removed: removed.length })
}
