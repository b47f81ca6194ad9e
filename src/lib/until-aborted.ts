/** Stops waiting for work that others share and that goes on without us. */
import type { StopSignal } from './stopper.ts'

/** What `work` gives, or `signal.reason` as soon as it is aborted; `work` itself runs to its end. Not a promise: returned as it is. */
export const untilAborted = <T>(work: T | Promise<T>, signal: StopSignal): T | Promise<T> => {
  if (!(work instanceof Promise)) return work
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    work.finally(() => signal.removeEventListener('abort', stop)).then(resolve, reject)
  })
}
