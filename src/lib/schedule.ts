/** Named periodic jobs: a job never overlaps itself; a failed run is logged and retried at the next interval. */
import type { Clock } from './clock.ts'
import type { Random } from './random.ts'

/** `signal` aborts when the schedule stops. */
export type Work = (signal: AbortSignal) => Promise<void> | void

interface JobOptions {
  /** Varies each pause by up to this fraction, so that jobs and processes spread out. 0 to 1; default 0. */
  jitter?: number
  /** Run immediately when the schedule starts; otherwise after one period. */
  runAtStart?: boolean
}

interface ScheduleContext {
  clock: Clock
  random: Random
  onError: (job: string, error: unknown) => void
}

interface Job {
  name: string
  everyMs: number
  work: Work
  options: JobOptions
  run: Promise<void> | null
  cancelTimer: () => void
}

export class Schedule {
  readonly #jobs = new Map<string, Job>()
  readonly #stop = new AbortController()
  readonly #context: ScheduleContext
  #isStarted = false

  constructor(context: ScheduleContext) {
    this.#context = context
  }

  /** Adds a job before the start; `everyMs` is the pause between runs. Throws when the name is taken. */
  add(name: string, everyMs: number, work: Work, options: JobOptions = {}): void {
    if (this.#jobs.has(name)) throw new Error(`There is already a job called ${name}.`)
    this.#jobs.set(name, { name, everyMs, work, options, run: null, cancelTimer: () => {} })
  }

  get isRunning(): boolean {
    return this.#isStarted && !this.#stop.signal.aborted
  }

  start(): void {
    this.#isStarted = true
    for (const job of this.#jobs.values()) {
      if (job.options.runAtStart) void this.#turn(job)
      else this.#arm(job)
    }
  }

  /** Aborts running jobs and waits for them. A stopped schedule cannot be restarted. */
  async stop(): Promise<void> {
    this.#stop.abort(new Error('The schedule was stopped.'))
    for (const job of this.#jobs.values()) job.cancelTimer()
    await Promise.all([...this.#jobs.values()].map((job) => job.run))
  }

  /** Runs a job now, or joins its current run. Resolves at its end, even if it failed. */
  async runNow(name: string): Promise<void> {
    const job = this.#jobs.get(name)
    if (!job) throw new Error(`There is no job called ${name}.`)
    await this.#run(job)
  }

  /** Waits for the current run, which may have missed the change, then runs the job again. */
  async runAgain(name: string): Promise<void> {
    await this.#jobs.get(name)?.run
    await this.runNow(name)
  }

  #arm(job: Job): void {
    if (this.#stop.signal.aborted) return
    const { clock, random } = this.#context
    const spread = (job.options.jitter ?? 0) * (random.float() * 2 - 1)
    job.cancelTimer = clock.after(Math.max(1, Math.round(job.everyMs * (1 + spread))), () => void this.#turn(job))
  }

  async #turn(job: Job): Promise<void> {
    await this.#run(job)
    this.#arm(job)
  }

  #run(job: Job): Promise<void> {
    if (this.#stop.signal.aborted) return Promise.resolve()
    job.run ??= this.#attempt(job).finally(() => {
      job.run = null
    })
    return job.run
  }

  async #attempt(job: Job): Promise<void> {
    const { signal } = this.#stop
    try {
      await job.work(signal)
    } catch (error) {
      if (!signal.aborted) this.#context.onError(job.name, error)
    }
  }
}
