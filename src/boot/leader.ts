/** Runs the jobs in one process of the data folder at a time. */
import { type FolderLock, JOBS_LOCK, tryLock } from '../../db/lock.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'

interface LeaderDeps {
  dir: string
  clock: Clock
  log: Log
  /** Called once, when this process has the lock. */
  lead: () => void
}

const BEAT_MS = 200

export class Leader {
  readonly #deps: LeaderDeps
  #lock: FolderLock | null = null
  #cancel = () => {}

  constructor(deps: LeaderDeps) {
    this.#deps = deps
  }

  get isLeading(): boolean {
    return this.#lock !== null
  }

  /** Leads now, or as soon as the other process no longer does, even if it was killed. */
  start(): void {
    this.#try()
    if (!this.#lock) this.#cancel = this.#deps.clock.every(BEAT_MS, () => this.#try())
  }

  /** Call when the jobs have ended. */
  stop(): void {
    this.#cancel()
    this.#lock?.release()
    this.#lock = null
  }

  #try(): void {
    const { dir, log, lead } = this.#deps
    try {
      this.#lock = tryLock(dir, JOBS_LOCK)
    } catch (err) {
      log.error('the lock of the jobs cannot be used', { err })
    }
    if (!this.#lock) return
    this.#cancel()
    lead()
  }
}
