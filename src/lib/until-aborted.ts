/** Stops waiting for shared work, which continues. */

/**
 * The result of `work`, or a rejection with `signal.reason` on abort; `work` continues. A plain value is returned as it
 * is.
 */
export const untilAborted = <T>(work: T | Promise<T>, signal: AbortSignal): T | Promise<T> => {
  if (!(work instanceof Promise)) return work
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    work.finally(() => signal.removeEventListener('abort', stop)).then(resolve, reject)
  })
}
