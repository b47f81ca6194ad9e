/** Work on many things, a few at a time. */

/** Runs `work` on each item in order, `lanes` at once. Rejects with the first error; the other lanes end after their item. */
export const inLanes = async <T>(
  items: Iterable<T>,
  lanes: number,
  work: (item: T) => Promise<void>,
): Promise<void> => {
  const queue = [...items].values()
  const lane = async () => {
    for (const item of queue) await work(item)
  }
  await Promise.all(Array.from({ length: lanes }, lane))
}
