/** Work on many things, a few at a time. */

/** Runs `work` on each item in order, `lanes` at once. Rejects with the first error; the other lanes end after their item. */
export const inLanes = async <T>(
  items: Iterable<T>,
  lanes: number,
  work: (item: T) => Promise<void>,
): Promise<void> => {
  const queue = oneByOne(items)
  const lane = async () => {
    for (const item of queue) await work(item)
  }
  await Promise.all(Array.from({ length: lanes }, lane))
}

/** A generator, which an error in one of its loops closes for all of them; the iterator of an array would go on. */
function* oneByOne<T>(items: Iterable<T>): Generator<T> {
  yield* items
}

/** What runs work as it comes: `lanes` at once, the rest when one of them has ended, in order. */
export const queueOf = (lanes: number) => {
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
