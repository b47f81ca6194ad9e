/** `sluice reload`: replaces the running server by the program on disk, without ending a request. */
import { acquireFolderLock, FolderLockedError, tryLock } from '../../db/lock.ts'
import { getDataDir } from '../boot/env.ts'
import { type ReloadReport, readReport } from '../boot/reload-report.ts'
import { systemClock } from '../lib/clock.ts'
import { getUserCommand } from '../ops/own-command.ts'
import type { Run } from './command.ts'

const BEAT_MS = 100
/** A supervisor that does not begin within this time is stuck. */
const PATIENCE_MS = 10_000

/** 0 when the new process serves, otherwise 1: then the running one goes on. */
export const reload: Run<object> = async (io) => {
  const folder = getDataDir(io.environment) // the rest of the environment may be what the new process rejects
  const before = readReport(folder)
  if (!before || before.pid !== serverOf(folder)) {
    io.stderr(
      `sluice: No server is running with the data folder ${folder}. Start it with "${getUserCommand()} serve".\n`,
    )
    return 1
  }
  const lock = tryLock(folder, 'reload')
  if (!lock || before.state === 'running') {
    lock?.release()
    io.stderr('sluice: Another reload is already running. Wait until it has ended.\n')
    return 1
  }
  try {
    process.kill(before.pid, 'SIGUSR2')
    const { state, message } = await outcome(folder, before)
    if (state === 'done') io.stdout(`Reloaded. ${message}\n`)
    else if (state === 'stopping') io.stderr(`sluice: The reload failed, and the server is stopping. ${message}\n`)
    else io.stderr(`sluice: The reload failed, and the running server goes on. ${message}\n`)
    return state === 'done' ? 0 : 1
  } finally {
    lock.release()
  }
}

/**
 * The process that holds the lock of the folder, or null. After a crash the report is still there, and its process id
 * may belong to another program.
 */
const serverOf = (folder: string): number | null => {
  try {
    acquireFolderLock(folder).release()
    return null
  } catch (err) {
    if (err instanceof FolderLockedError) return err.pid
    throw err
  }
}

const outcome = async (folder: string, before: ReloadReport): Promise<Pick<ReloadReport, 'state' | 'message'>> => {
  const deadline = systemClock.monotonic() + PATIENCE_MS
  for (;;) {
    const now = readReport(folder)
    const hasBegun = now !== null && now.count > before.count
    if (hasBegun && now.state !== 'running') return now
    if (!isAlive(before.pid)) return { state: 'stopping', message: 'It has ended.' }
    if (!hasBegun && systemClock.monotonic() > deadline)
      return { state: 'failed', message: 'The server did not respond. It may be starting or stopping.' }
    await systemClock.sleep(BEAT_MS)
  }
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (err) {
    return (err as NodeJS.ErrnoException).code === 'EPERM' // as: `kill` throws nothing else
  }
}
