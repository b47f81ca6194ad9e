/** Keeps memory views up to date: each is reloaded after its rows change, and retried until that succeeds. */
import type { Clock } from '../src/lib/clock.ts'
import type { Log } from '../src/lib/log.ts'
import type { Topic } from './commit.ts'

export interface MemoryView {
  /** For the log. */
  name: string
  topics: readonly Topic[]
  /** Reloads the view. Resolves to false if it must be tried again later. */
  reload: () => Promise<unknown>
}

const RETRY_MS = 1000

export class MemoryViews {
  readonly #views: readonly MemoryView[]
  readonly #deps: { clock: Clock; log: Log }
  readonly #stale = new Set<MemoryView>()
  readonly #failing = new Set<MemoryView>()
  /** Views are reloaded one after another: otherwise a slow earlier read could overwrite newer rows. */
  #reading: Promise<void> = Promise.resolve()
  #cancelRetry: (() => void) | null = null
  #isStopped = false

  /** Reloaded in this order, so a view may depend on earlier ones. */
  constructor(views: readonly MemoryView[], deps: { clock: Clock; log: Log }) {
    this.#views = views
    this.#deps = deps
  }

  /**
   * Resolves when the views of `topics` are reloaded. Never rejects: a view that fails is logged, does not block the
   * others, and is retried every second.
   */
  changed(topics: ReadonlySet<Topic>): Promise<void> {
    for (const view of this.#views) if (view.topics.some((topic) => topics.has(topic))) this.#stale.add(view)
    return this.#readStale()
  }

  /** Resolves when nothing is read any more. */
  stop(): Promise<void> {
    this.#isStopped = true
    this.#cancelRetry?.()
    this.#cancelRetry = null
    return this.#reading
  }

  #readStale(): Promise<void> {
    this.#reading = this.#reading.then(() => this.#readNow())
    return this.#reading
  }

  async #readNow(): Promise<void> {
    const failed: MemoryView[] = []
    for (const view of this.#views) {
      if (this.#isStopped) return
      if (!this.#stale.delete(view)) continue // before the read: what changes during it is read again
      if (!(await this.#read(view))) failed.push(view)
    }
    for (const view of failed) this.#stale.add(view)
    if (failed.length === 0 || this.#isStopped) return
    this.#cancelRetry ??= this.#deps.clock.after(RETRY_MS, () => {
      this.#cancelRetry = null
      return this.#readStale()
    })
  }

  async #read(view: MemoryView): Promise<boolean> {
    const { log } = this.#deps
    try {
      if ((await view.reload()) === false) return false
    } catch (err) {
      if (!this.#failing.has(view))
        log.error('a memory view could not be read and is out of date', { view: view.name, err })
      this.#failing.add(view)
      return false
    }
    if (this.#failing.delete(view)) log.info('a memory view is up to date again', { view: view.name })
    return true
  }
}
