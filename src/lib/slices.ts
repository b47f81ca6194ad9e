/** Runs long work in small slices with pauses, so that other work can use the event loop. */
import type { Clock } from './clock.ts'

const SLICE = 10
const PAUSE_MS = 5

/** Calls `work` with at most `size` items at a time, in order, with pauses. Returns all results. */
export const inSlices = async <T, R>(
  clock: Pick<Clock, 'sleep'>,
  items: readonly T[],
  work: (slice: readonly T[]) => Promise<readonly R[]>,
  size = SLICE,
): Promise<R[]> => {
  const results: R[] = []
  for (let at = 0; at < items.length; at += size) {
    if (at > 0) await clock.sleep(PAUSE_MS)
    results.push(...(await work(items.slice(at, at + size))))
  }
  return results
}
