/** A thread for reads and its queue: one read at a time, callers taking turns, with time limits. */
import { AppError } from '../errors.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { ReadArgs, ReadName } from '../model/reads.ts'
import type { Answer, FromWorker, ToWorker } from './reader-worker.ts'

export interface LaneDeps {
  /** Path of the existing database file; the worker sees every commit. */
  path: string
  clock: Clock
  log: Log
  newWorker: () => Worker
}

/** Limits for a read, for waiting in the queue, and for starting a thread. */
export const DEADLINE_MS = 2000
export const WAIT_MS = 10_000
export const START_MS = 10_000
/** How long a stop waits for a running query, which cannot be interrupted. */
export const CLOSE_MS = 1000
/** Waiting reads, in total and per caller. */
export const MAX_WAITING = 64
const MAX_WAITING_EACH = 16
/** A query cannot be interrupted: an abandoned thread runs until its query ends. */
const MAX_ABANDONED = 3

interface Limit {
  ms: number
  /** For the log, when the thread is abandoned. */
  why: string
  error: () => AppError
}

const READING: Limit = {
  ms: DEADLINE_MS,
  why: 'A database query took too long and was stopped.',
  error: () => new AppError('busy', { message: 'This query takes too long. Narrow the filters.' }),
}

/** Applies to a starting thread, which is not the read's fault. */
const STARTING: Limit = {
  ms: START_MS,
  why: 'A database thread did not start in time.',
  error: () => new AppError('busy'),
}

interface Call {
  who: string
  message: Extract<ToWorker, { kind: 'call' }>
  resolve: (value: unknown) => void
  reject: (error: Error) => void
  cancelTimer: () => void
}

export class ReaderLane {
  readonly #deps: LaneDeps
  #worker: Worker | null = null
  #lastId = 0
  #turn = 0
  /** In order of arrival. */
  #waiting: Call[] = []
  #running: Call | null = null
  /** Abandoned threads that are still running, with their callers. */
  readonly #abandoned = new Map<Worker, string>()
  /** When each caller last had a turn; unknown callers come first. */
  readonly #turns = new Map<string, number>()

  constructor(deps: LaneDeps) {
    this.#deps = deps
  }

  /**
   * The caller waiting longest since its last turn is next, so that many reads of one cannot block others. Rejects with
   * `busy`.
   */
  ask(who: string, name: ReadName, args: ReadArgs<ReadName>): Promise<unknown> {
    const theirs = this.#waiting.filter((call) => call.who === who).length
    if (this.#waiting.length >= MAX_WAITING || theirs >= MAX_WAITING_EACH) return Promise.reject(tooMany())
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const message = { kind: 'call', id: ++this.#lastId, name, args } as const
    const call: Call = { who, message, resolve, reject, cancelTimer: () => {} }
    call.cancelTimer = this.#deps.clock.after(WAIT_MS, () => this.#leave(call))
    this.#waiting.push(call)
    this.#next()
    return promise
  }

  /** Running and waiting reads fail with `busy`. Resolves when the thread has closed the database. */
  async stop(): Promise<void> {
    const worker = this.#worker
    this.#worker = null
    this.#fail(new AppError('busy'))
    if (worker) await this.#close(worker)
  }

  /** A connection that is not closed would leave the write-ahead log behind. */
  async #close(worker: Worker): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    worker.addEventListener('message', ({ data }: MessageEvent<FromWorker>) => {
      if ('kind' in data && data.kind === 'closed') resolve()
    })
    worker.addEventListener('close', () => resolve())
    const cancelTimer = this.#deps.clock.after(CLOSE_MS, resolve)
    worker.postMessage({ kind: 'close' } satisfies ToWorker)
    await promise
    cancelTimer()
    worker.terminate()
  }

  #end(error: Error): void {
    this.#endWorker()
    this.#fail(error)
  }

  #fail(error: Error): void {
    const calls = [...(this.#running ? [this.#running] : []), ...this.#waiting]
    this.#running = null
    this.#waiting = []
    for (const call of calls) refuse(call, error)
  }

  #leave(call: Call): void {
    this.#waiting = this.#waiting.filter((other) => other !== call)
    refuse(call, tooMany())
  }

  #next(): void {
    if (this.#running || this.#abandoned.size >= MAX_ABANDONED) return
    const call = this.#chosen()
    if (!call) return
    this.#waiting = this.#waiting.filter((other) => other !== call)
    this.#running = call
    this.#turns.delete(call.who) // set() alone keeps the old order
    this.#turns.set(call.who, ++this.#turn)
    if (this.#turns.size > MAX_WAITING) this.#turns.delete(this.#turns.keys().next().value ?? '')
    this.#limit(call, this.#worker ? READING : STARTING)
    this.#worker ??= this.#startWorker()
    this.#worker.postMessage(call.message)
  }

  #limit(call: Call, limit: Limit): void {
    call.cancelTimer()
    call.cancelTimer = this.#deps.clock.after(limit.ms, () => this.#giveUp(call, limit))
  }

  /** Skips callers whose last read still runs in an abandoned thread. */
  #chosen(): Call | undefined {
    const held = new Set(this.#abandoned.values())
    const getTurn = ({ who }: Call) => this.#turns.get(who) ?? 0
    return this.#waiting.filter(({ who }) => !held.has(who)).toSorted((a, b) => getTurn(a) - getTurn(b))[0]
  }

  #startWorker(): Worker {
    const worker = this.#deps.newWorker()
    worker.addEventListener('message', ({ data }: MessageEvent<FromWorker>) => {
      if (!('kind' in data)) this.#settle(worker, data)
      else if (data.kind === 'ready') this.#begin(worker)
      else if (data.kind === 'unopened')
        this.#crashed(worker, data.error.message, Object.assign(data.error, { code: data.code }))
    })
    worker.addEventListener('error', ({ message }) => this.#crashed(worker, message))
    worker.addEventListener('close', () => {
      if (this.#abandoned.delete(worker)) this.#next()
      else this.#crashed(worker, 'it closed')
    })
    worker.postMessage({ kind: 'open', path: this.#deps.path } satisfies ToWorker)
    return worker
  }

  #endWorker(): void {
    this.#worker?.terminate()
    this.#worker = null
  }

  #begin(worker: Worker): void {
    if (worker === this.#worker && this.#running) this.#limit(this.#running, READING)
  }

  #settle(worker: Worker, answer: Answer): void {
    const call = this.#running
    if (worker !== this.#worker || call?.message.id !== answer.id) return
    this.#running = null
    call.cancelTimer()
    if ('refusal' in answer) call.reject(new AppError(answer.refusal.code, answer.refusal.extra))
    else if ('error' in answer) call.reject(Object.assign(answer.error, { code: answer.code }))
    else call.resolve(answer.value)
    this.#next()
  }

  #giveUp(call: Call, { ms, why, error }: Limit): void {
    this.#deps.log.warn(why, { name: call.message.name, afterMs: ms })
    this.#running = null
    if (this.#worker) this.#abandoned.set(this.#worker, call.who)
    this.#endWorker()
    refuse(call, error())
    this.#next()
  }

  #crashed(worker: Worker, reason: string, error: Error = new AppError('busy')): void {
    if (worker !== this.#worker) return
    this.#deps.log.error('the database reader thread ended', { reason })
    this.#end(error)
  }
}

const refuse = ({ cancelTimer, reject }: Call, error: Error): void => {
  cancelTimer()
  reject(error)
}

const tooMany = (): AppError =>
  new AppError('busy', { message: 'Too many reports are loading. Try again shortly.', retryAfterSeconds: 5 })
