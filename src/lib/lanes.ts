/** Processes many items with limited concurrency. */

/**
 * Runs `work` on each item in order, `lanes` at a time. Rejects with the first error, when the other lanes have ended
 * their item.
 */
export const inLanes = async <T>(
  items: Iterable<T>,
  lanes: number,
  work: (item: T) => Promise<void>,
): Promise<void> => {
  const queue = oneByOne(items)
  const lane = async () => {
    for (const item of queue) await work(item)
  }
  const running = Array.from({ length: lanes }, lane)
  try {
    await Promise.all(running)
  } finally {
    await Promise.allSettled(running)
  }
}

/** A generator, because an error in one loop closes it for all; an array iterator would continue. */
function* oneByOne<T>(items: Iterable<T>): Generator<T> {
  yield* items
}

/** A queue that runs `lanes` jobs at a time and the rest in order. */
export const getQueue = (lanes: number) => {
  let running = 0
  const waiting: (() => void)[] = []
  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (running >= lanes) await new Promise<void>((resolve) => waiting.push(resolve))
    else running++
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else running--
    }
  }
}
