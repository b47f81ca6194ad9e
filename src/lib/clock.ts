/** The only source of time: everything that waits or needs the time takes a `Clock`, so that tests can control it. */

/** What a timer runs. If it returns a promise, its rejection is an uncaught error, as an exception is. */
export type Task = () => unknown

export interface Clock {
  /** Wall time, integer milliseconds since epoch. It can jump when the machine's clock is set. */
  now(): number
  /** Milliseconds as a float from an arbitrary start; never goes back. For durations. */
  monotonic(): number
  /**
   * Resolves after `ms`; rejects with `signal.reason` on abort, immediately when already aborted. Keeps the process
   * alive.
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /**
   * Runs `run` once after `ms`. Returns the cancel function. Does not keep the process alive. What `run` resolves to is
   * not waited for.
   */
  after(ms: number, run: Task): () => void
  /** Runs `run` every `ms` until the returned function is called. Does not keep the process alive. */
  every(ms: number, run: Task): () => void
}

/** The real clock. A callback that throws is an uncaught exception, as with any timer. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep,
  after,
  every: (ms, run) => {
    const timer = setInterval(run, Math.min(ms, LONGEST_TIMER_MS))
    timer.unref()
    return () => clearInterval(timer)
  },
}

/** A longer timer overflows the runtime's 32-bit integer and would fire immediately. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.reject(signal.reason)
  return new Promise((resolve, reject) => {
    const stop = () => {
      cancel()
      reject(signal?.reason)
    }
    const cancel = startTimer(ms, true, () => {
      signal?.removeEventListener('abort', stop)
      resolve()
    })
    signal?.addEventListener('abort', stop, { once: true })
  })
}

/** Blocks the whole process for `ms`, for commands with nothing else to do. */
export const sleepSync = (ms: number): void => Bun.sleepSync(ms)

function after(ms: number, run: Task): () => void {
  return startTimer(ms, false, run)
}

function startTimer(ms: number, keepsProcessAlive: boolean, run: Task): () => void {
  const timer = setTimeout(run, Math.min(ms, LONGEST_TIMER_MS))
  if (!keepsProcessAlive) timer.unref()
  return () => clearTimeout(timer)
}
