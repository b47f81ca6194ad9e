/** Checkpoints the write-ahead log in a separate thread, so that the event loop does not wait for the disk. */
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'

interface CheckpointerDeps {
  /** Path of the database file. */
  path: string
  /** Pages that are only in the log (`pagesBehind`). */
  pagesBehind: () => number
  /** Whether the path still names the server's file; no other is touched. */
  isNamed: () => boolean
  clock: Clock
  log: Log
  /** For tests: another worker that speaks the same protocol. */
  newWorker?: () => Worker
}

/** SQLite's own default. */
const ENOUGH_PAGES = 1000
/** A checkpoint takes 5 to 30 ms; slower disks are not waited for. */
const LONGEST_STOP_MS = 1000

/** The thread starts with the first checkpoint, so an idle server never has it. */
export class Checkpointer {
  readonly #deps: CheckpointerDeps
  #worker: Worker | null = null
  #running: PromiseWithResolvers<void> | null = null
  #hasFailed = false
  #hasStopped = false

  constructor(deps: CheckpointerDeps) {
    this.#deps = deps
  }

  /** Call after each ledger batch; never throws. If the thread fails, SQLite checkpoints within a commit. */
  written(): void {
    if (this.#running || this.#hasStopped) return
    try {
      if (this.#deps.pagesBehind() < ENOUGH_PAGES || !this.#deps.isNamed()) return
      this.#worker ??= this.#startWorker()
      this.#worker.postMessage(this.#deps.path)
      this.#running = Promise.withResolvers()
    } catch (error) {
      this.#ended(String(error))
    }
  }

  /** Waits for a running checkpoint, so that the database's last connection is closed after it and leaves no log. */
  async stop(): Promise<void> {
    this.#hasStopped = true
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
      if (this.#running && !this.#hasStopped) this.#ended('it ended')
    })
    return worker
  }

  #ended(failure: string | null): void {
    this.#running?.resolve()
    this.#running = null
    if (failure !== null && !this.#hasFailed)
      this.#deps.log.warn('the checkpoint thread could not write the database log back', { why: failure })
    this.#hasFailed = failure !== null
  }
}

/** The URL must be written like this for the compiled executable to find its entry. */
const newWorker = (): Worker =>
  new Worker(new URL('./checkpoint-worker.ts', import.meta.url).href, { name: 'checkpointer' })
