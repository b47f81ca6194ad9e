/** Keeps memory views up to date: each is reloaded after its rows change, and retried until that succeeds. */
import type { Clock } from '../src/lib/clock.ts'
import type { Log } from '../src/lib/log.ts'
import type { Topic } from './commit.ts'

export interface MemoryView {
  /** For the log. */
  name: string
  topics: readonly Topic[]
  /** False: not now, try later. */
  canReload?: () => boolean
  reload: () => void
}

const RETRY_MS = 1000

export class MemoryViews {
  readonly #views: readonly MemoryView[]
  readonly #deps: { clock: Clock; log: Log }
  #stale = new Set<MemoryView>()
  readonly #failing = new Set<MemoryView>()
  #cancelRetry: (() => void) | null = null
  #isStopped = false

  /** Reloaded in this order, so a view may depend on earlier ones. */
  constructor(views: readonly MemoryView[], deps: { clock: Clock; log: Log }) {
    this.#views = views
    this.#deps = deps
  }

  /** Never throws: a view that fails is logged, does not block the others, and is retried every second. */
  changed(topics: ReadonlySet<Topic>): void {
    for (const view of this.#views) if (view.topics.some((topic) => topics.has(topic))) this.#stale.add(view)
    this.#readStale()
  }

  stop(): void {
    this.#isStopped = true
    this.#cancelRetry?.()
    this.#cancelRetry = null
  }

  #readStale(): void {
    for (const view of this.#views) if (this.#stale.has(view) && this.#read(view)) this.#stale.delete(view)
    if (this.#stale.size === 0 || this.#isStopped) return
    this.#cancelRetry ??= this.#deps.clock.after(RETRY_MS, () => {
      this.#cancelRetry = null
      this.#readStale()
    })
  }

  #read(view: MemoryView): boolean {
    const { log } = this.#deps
    try {
      if (view.canReload?.() === false) return false
      view.reload()
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
