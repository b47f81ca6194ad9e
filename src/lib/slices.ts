/** Long work a few items at a time, so that whoever else needs the loop gets it in between. */
import type { Clock } from './clock.ts'

const SLICE = 10
const PAUSE_MS = 5

/** Calls `work` with `size` items at most, in their order, and pauses between two calls. Returns all it returned. */
export const inSlices = async <T, R>(
  clock: Pick<Clock, 'sleep'>,
  items: readonly T[],
  work: (slice: readonly T[]) => readonly R[],
  size = SLICE,
): Promise<R[]> => {
  const results: R[] = []
  for (let at = 0; at < items.length; at += size) {
    if (at > 0) await clock.sleep(PAUSE_MS)
    results.push(...work(items.slice(at, at + size)))
  }
  return results
}
