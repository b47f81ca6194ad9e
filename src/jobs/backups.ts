/** Makes a backup when the newest is older than the setting, and deletes those beyond the number to keep. */
import type { Clock } from '../lib/clock.ts'
import { HOUR_MS } from '../lib/durations.ts'
import type { Log } from '../lib/log.ts'
import type { Backup } from '../ops/backups.ts'
import type { Settings } from '../settings/schema.ts'

/** How often to check whether one is due; also the retry interval. */
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
 * Measured by the newest backup's age, so restarts neither skip nor add one. Backups dated in the future and manual
 * ones do not count.
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
