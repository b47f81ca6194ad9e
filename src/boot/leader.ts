/** Runs the jobs in one process at a time. */
import { type FolderLock, JOBS_LOCK, type Locks } from '../../db/lock.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'

interface LeaderDeps {
  locks: Locks
  clock: Clock
  log: Log
  /** Called when this process has the lock. */
  lead: () => Promise<unknown>
  /** Called when this process loses the lock while running. Another process may already have it. */
  resign: () => Promise<unknown>
}

const BEAT_MS = 200
const RETRY_MS = 1000

export class Leader {
  readonly #deps: LeaderDeps
  #lock: FolderLock | null = null
  #cancel = () => {}
  #isStopped = true
  /** Logged once. */
  #isFailing = false

  constructor(deps: LeaderDeps) {
    this.#deps = deps
  }

  get isLeading(): boolean {
    return this.#lock !== null
  }

  /** Leads now, or as soon as the other process no longer does, even if it was killed. */
  async start(): Promise<void> {
    this.#isStopped = false
    await this.#try()
  }

  /** Call when the jobs have ended. */
  stop(): void {
    this.#isStopped = true
    this.#cancel()
    this.#lock?.release()
    this.#lock = null
  }

  async #try(): Promise<void> {
    const { locks, clock, log, lead } = this.#deps
    let lock: FolderLock | null = null
    try {
      lock = await locks.tryLock(JOBS_LOCK, () => this.#lose())
    } catch (err) {
      if (!this.#isFailing) log.error('could not use the lock for the jobs', { err })
      this.#isFailing = true
    }
    if (this.#isStopped) return lock?.release()
    if (!lock) {
      this.#cancel = clock.after(BEAT_MS, () => this.#try())
      return
    }
    this.#lock = lock
    try {
      await lead()
      this.#isFailing = false
    } catch (err) {
      if (!this.#isFailing) log.error('the jobs could not be started', { err })
      this.#isFailing = true
      if (this.#lock === lock) await this.#giveUp(lock)
    }
  }

  /** Releases the lock so that another process can start the jobs. This one tries again later. */
  async #giveUp(lock: FolderLock): Promise<void> {
    const { clock, resign } = this.#deps
    this.#lock = null
    await resign()
    lock.release()
    if (!this.#isStopped) this.#cancel = clock.after(RETRY_MS, () => this.#try())
  }

  /** Tries to get the lock again after the jobs have ended here. */
  async #lose(): Promise<void> {
    if (!this.#lock) return // this process does not have the lock yet
    const { clock, log, resign } = this.#deps
    log.warn('lost the lock for the jobs: this process stops running them')
    this.#lock = null
    await resign()
    if (!this.#isStopped) this.#cancel = clock.after(BEAT_MS, () => this.#try())
  }
}
