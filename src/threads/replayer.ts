/**
 * Runs replays in a thread of their own, one after the other, so that no stream and no page waits for them. A run whose
 * clients have all gone is stopped.
 */
import { AppError } from '../errors.ts'
import type { Clock } from '../lib/clock.ts'
import { MINUTE_MS } from '../lib/durations.ts'
import type { Log } from '../lib/log.ts'
import type { AnswerTo, Question, QuestionName } from '../proxy/replay/questions.ts'
import type { FromReplay, ToReplay } from './replay-worker.ts'

/** Starts to compute and returns how to stop it. Reports progress, and at the end a value or a failure. */
export type StartReplay = (call: Omit<ToReplay, 'path'>, report: (message: FromReplay) => void) => () => void

export type ReplayState<Name extends QuestionName> =
  | { kind: 'running'; share: number }
  | { kind: 'done'; value: AnswerTo<Name> }
  | { kind: 'failed' }

interface ReplayerDeps {
  start: StartReplay
  clock: Clock
  log: Log
}

interface Run {
  key: string
  call: Omit<ToReplay, 'path'>
  share: number
  result: Exclude<FromReplay, { share: number }> | null
  /** Requests that wait for the value. */
  waiting: number
  /** Monotonic time of the last `look`. */
  lookedAt: number
  settled: PromiseWithResolvers<unknown>
}

/** Pages request the progress every second. One that has not done so for this long is considered closed. */
const GONE_MS = 15_000
const KEPT_MS = 5 * MINUTE_MS
const MAX_QUEUED = 8

export class Replayer {
  readonly #deps: ReplayerDeps
  /** The first is running. */
  #queue: Run[] = []
  #stopRunning: (() => void) | null = null
  /** Results of finished runs, for pages that have not fetched them yet. */
  readonly #finished = new Map<string, Run>()

  constructor(deps: ReplayerDeps) {
    this.#deps = deps
  }

  /** The answer. Throws `busy` when too many wait or the thread fails, and the signal's reason when it is aborted. */
  async ask<Name extends QuestionName>(
    name: Name,
    question: Question<Name>,
    signal: AbortSignal,
  ): Promise<AnswerTo<Name>> {
    signal.throwIfAborted()
    const run = this.#runOf(name, question)
    run.waiting++
    const aborted = Promise.withResolvers<never>()
    const onAbort = () => aborted.reject(signal.reason)
    signal.addEventListener('abort', onAbort)
    try {
      return (await Promise.race([run.settled.promise, aborted.promise])) as AnswerTo<Name> // as: the run's own question
    } finally {
      signal.removeEventListener('abort', onAbort)
      run.waiting--
      this.#stopIfUnwanted(run)
    }
  }

  /** How far the answer is; the first call starts it. Throws `busy` when too many wait. */
  look<Name extends QuestionName>(name: Name, question: Question<Name>): ReplayState<Name> {
    const run = this.#runOf(name, question)
    run.lookedAt = this.#deps.clock.monotonic()
    if (!run.result) {
      this.#deps.clock.after(GONE_MS, () => this.#stopIfUnwanted(run))
      return { kind: 'running', share: run.share }
    }
    if ('failure' in run.result) return { kind: 'failed' }
    return { kind: 'done', value: run.result.value as AnswerTo<Name> } // as above
  }

  /** The answer of a recent run, or null; starts nothing. */
  recent<Name extends QuestionName>(name: Name, question: Question<Name>): AnswerTo<Name> | null {
    const result = this.#finished.get(toKey(name, question))?.result
    return result && 'value' in result ? (result.value as AnswerTo<Name>) : null // as above
  }

  /** Running and waiting questions fail with `busy`. */
  stop(): void {
    for (const run of [...this.#queue]) this.#finish(run, { failure: 'Sluice is stopping' })
  }

  #runOf<Name extends QuestionName>(name: Name, question: Question<Name>): Run {
    const key = toKey(name, question)
    const known = this.#finished.get(key) ?? this.#queue.find((run) => run.key === key)
    if (known) return known
    // Users cannot keep the planner out, which has one question at a time.
    if (name !== 'plan' && this.#queue.length >= MAX_QUEUED) throw new AppError('busy', { retryAfterSeconds: 5 })
    const settled = Promise.withResolvers<unknown>()
    settled.promise.catch(() => {}) // pages only look
    const lookedAt = Number.NEGATIVE_INFINITY
    const run: Run = { key, call: { name, question }, share: 0, result: null, waiting: 0, lookedAt, settled }
    this.#queue.push(run)
    if (this.#queue.length === 1) this.#startFirst()
    return run
  }

  #startFirst(): void {
    const [run] = this.#queue
    if (!run) return
    this.#stopRunning = this.#deps.start(run.call, (message) => {
      if (run.result) return
      if ('share' in message) run.share = message.share
      else this.#finish(run, message)
    })
  }

  #finish(run: Run, result: NonNullable<Run['result']>): void {
    run.result = result
    const isFirst = this.#queue[0] === run
    this.#queue = this.#queue.filter((other) => other !== run)
    if (isFirst) {
      this.#stopRunning?.()
      this.#stopRunning = null
    }
    if ('failure' in result) {
      this.#deps.log.warn('a replay failed', { name: run.call.name, why: result.failure })
      run.settled.reject(new AppError('busy'))
    } else run.settled.resolve(result.value)
    this.#finished.set(run.key, run)
    this.#deps.clock.after('failure' in result ? GONE_MS : KEPT_MS, () => this.#finished.delete(run.key))
    if (isFirst) this.#startFirst()
  }

  #stopIfUnwanted(run: Run): void {
    const { clock } = this.#deps
    if (run.result || run.waiting > 0 || clock.monotonic() - run.lookedAt < GONE_MS) return
    run.result = { failure: 'it is not needed any more' }
    const isFirst = this.#queue[0] === run
    this.#queue = this.#queue.filter((other) => other !== run)
    run.settled.reject(new AppError('busy'))
    if (!isFirst) return
    this.#stopRunning?.()
    this.#stopRunning = null
    this.#startFirst()
  }
}

/** The time of a question does not tell runs apart. */
const toKey = (name: QuestionName, question: Question<QuestionName>): string =>
  JSON.stringify([name, { ...question, now: null }])

/** Computes in a new thread for each question, which ends with it. */
export const replayThreads =
  (path: string): StartReplay =>
  (call, report) => {
    const worker = newWorker()
    worker.addEventListener('message', ({ data }: MessageEvent<FromReplay>) => report(data))
    worker.addEventListener('error', ({ message }) => report({ failure: message }))
    worker.addEventListener('close', () => report({ failure: 'the thread ended' }))
    worker.postMessage({ path, ...call } satisfies ToReplay)
    return () => worker.terminate()
  }

/** The URL must be written like this for the compiled executable to find its entry. */
const newWorker = (): Worker =>
  new Worker(new URL('./replay-worker.ts', import.meta.url).href, { name: 'replay', ref: false })
