/** Has the write-ahead log carried over by a thread of its own, so that the loop does not wait for the disk each time. */
import type { Clock } from './lib/clock.ts'
import type { Log } from './lib/log.ts'

interface CheckpointerDeps {
  /** Of the database file. */
  path: string
  /** Whether that is still the file the server works on: no other is touched. */
  isNamed: () => boolean
  clock: Clock
  log: Log
  /** For tests: another worker that speaks the same protocol. */
  newWorker?: () => Worker
}

/** About so many pages in the log, and they are carried over: SQLite's own number. */
const ENOUGH_PAGES = 1000
/** A batch of the ledger writes the ends of its B-trees, and about one page more for each turn (measured). */
const PAGES_OF_A_BATCH = 20
/** A checkpoint takes 5 to 30 ms; a disk that needs longer is not waited for. */
const LONGEST_STOP_MS = 1000

/** The thread starts with the first checkpoint; a server that rests never has it. */
export class Checkpointer {
  readonly #deps: CheckpointerDeps
  #worker: Worker | null = null
  #running: PromiseWithResolvers<void> | null = null
  #pages = 0
  #hasFailed = false

  constructor(deps: CheckpointerDeps) {
    this.#deps = deps
  }

  /** Of each batch that the ledger has written, with so many turns. Where this thread fails, SQLite does it within a commit. */
  written(turns: number): void {
    this.#pages += PAGES_OF_A_BATCH + turns
    if (this.#pages < ENOUGH_PAGES || this.#running || !this.#deps.isNamed()) return
    this.#pages = 0
    this.#running = Promise.withResolvers()
    this.#worker ??= this.#startWorker()
    this.#worker.postMessage(this.#deps.path)
  }

  /** Waits for what is under way, so that whoever closes the database after it is the last to do so, and leaves no log behind. */
  async stop(): Promise<void> {
    const running = this.#running
    if (running) {
      const cancel = this.#deps.clock.after(LONGEST_STOP_MS, running.resolve)
      await running.promise
      cancel()
    }
    this.#worker?.terminate()
  }

  #startWorker(): Worker {
    const worker = (this.#deps.newWorker ?? newWorker)()
    worker.addEventListener('message', ({ data }: MessageEvent<string | null>) => this.#ended(data))
    worker.addEventListener('error', ({ message }) => this.#ended(message))
    worker.addEventListener('close', () => {
      this.#worker = null
      this.#ended(null)
    })
    return worker
  }

  #ended(failure: string | null): void {
    this.#running?.resolve()
    this.#running = null
    if (failure !== null && !this.#hasFailed)
      this.#deps.log.warn('The log of the database could not be carried over by its thread.', { why: failure })
    this.#hasFailed = failure !== null
  }
}

/** The address must be written like this for the compiled binary to find its entry. */
const newWorker = (): Worker => new Worker(new URL('./checkpoint-worker.ts', import.meta.url).href, { ref: false })
