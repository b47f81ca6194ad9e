/** Where reads go that can take long: to a worker of its own, so that no stream waits for a report. */
import type { Db } from '../db/commit.ts'
import { AppError } from './errors.ts'
import type { Clock } from './lib/clock.ts'
import type { Log } from './lib/log.ts'
import { READS, type ReadArgs, type ReadName, type Reads, read } from './model/reads.ts'
import type { FromWorker, ToWorker } from './reader-worker.ts'

/** Each read of `model/reads.ts` by its name. They throw `busy` when the answer takes over two seconds. */
export type Reader = {
  [Name in ReadName]: (...args: ReadArgs<Name>) => Promise<ReturnType<Reads[Name]>>
} & {
  /** Ends the worker; what is under way fails with `busy`. */
  stop(): void
}

export interface ReaderDeps {
  /** Of the database file, which must exist; the worker sees every commit made on it. */
  path: string
  clock: Clock
  log: Log
  /** For tests: another worker that speaks the same protocol. */
  newWorker?: () => Worker
}

export const DEADLINE_MS = 2000

/** The reader of a running server. Its worker starts with the first call, and again after a deadline or a crash. */
export const createReader = (deps: ReaderDeps): Reader => {
  const thread = new ReaderThread(deps)
  return readerOf(
    (name, args) => thread.call(name, args),
    () => thread.stop(),
  )
}

/** Answers on the calling thread: for tests with a database in memory, and for commands. */
export const createInlineReader = (db: Db): Reader =>
  readerOf(
    async (name, args) => read(db, name, args),
    () => {},
  )

type Ask = (name: ReadName, args: ReadArgs<ReadName>) => Promise<unknown>

const readerOf = (ask: Ask, stop: () => void): Reader => {
  const names = Object.keys(READS) as ReadName[] // as: Object.keys forgets the literal types
  const calls = names.map((name) => [name, (...args: ReadArgs<ReadName>) => ask(name, args)])
  return { ...Object.fromEntries(calls), stop } as Reader // as: `read` pairs each name with its own types
}

/** The address must be written like this for the compiled binary to find its entry. */
const realWorker = (): Worker => new Worker(new URL('./reader-worker.ts', import.meta.url).href, { ref: false })

interface Call {
  message: Extract<ToWorker, { kind: 'call' }>
  resolve: (value: unknown) => void
  reject: (error: AppError) => void
  cancelDeadline: () => void
}

class ReaderThread {
  readonly #deps: ReaderDeps
  #worker: Worker | null = null
  #lastId = 0
  /** In the order in which they were made and will be answered. */
  readonly #calls = new Map<number, Call>()

  constructor(deps: ReaderDeps) {
    this.#deps = deps
  }

  call(name: ReadName, args: ReadArgs<ReadName>): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const message = { kind: 'call', id: ++this.#lastId, name, args } as const
    const cancelDeadline = this.#deps.clock.after(DEADLINE_MS, () => this.#giveUp(message.id))
    this.#calls.set(message.id, { message, resolve, reject, cancelDeadline })
    this.#worker ??= this.#startWorker()
    this.#post(message)
    return promise
  }

  stop(): void {
    this.#endWorker()
    for (const id of [...this.#calls.keys()]) this.#refuse(id, new AppError('busy'))
  }

  #startWorker(): Worker {
    const { newWorker = realWorker } = this.#deps
    const worker = newWorker()
    worker.addEventListener('message', ({ data }: MessageEvent<FromWorker>) => this.#settle(data))
    worker.addEventListener('error', ({ message }) => this.#crashed(worker, message))
    worker.postMessage({ kind: 'open', path: this.#deps.path } satisfies ToWorker)
    return worker
  }

  #post(message: ToWorker): void {
    this.#worker?.postMessage(message)
  }

  #endWorker(): void {
    this.#worker?.terminate()
    this.#worker = null
  }

  #settle(answer: FromWorker): void {
    const call = this.#take(answer.id)
    if (!call) return
    if ('error' in answer) call.reject(new AppError('internal_error', { cause: answer.error }))
    else call.resolve(answer.value)
  }

  /** A query cannot be interrupted, so its thread is left to end by itself. Those waiting behind it are asked anew. */
  #giveUp(id: number): void {
    const name = this.#calls.get(id)?.message.name
    this.#deps.log.warn('A read of the database took too long and was given up.', { name, afterMs: DEADLINE_MS })
    this.#refuse(id, new AppError('busy', { message: 'Reading this takes too long; narrow the filters.' }))
    this.#endWorker()
    if (this.#calls.size === 0) return
    this.#worker = this.#startWorker()
    for (const { message } of this.#calls.values()) this.#post(message)
  }

  #crashed(worker: Worker, reason: string): void {
    if (worker !== this.#worker) return
    this.#deps.log.error('The reader of the database ended unexpectedly.', { reason })
    this.stop()
  }

  #refuse(id: number, error: AppError): void {
    this.#take(id)?.reject(error)
  }

  #take(id: number): Call | undefined {
    const call = this.#calls.get(id)
    call?.cancelDeadline()
    this.#calls.delete(id)
    return call
  }
}
