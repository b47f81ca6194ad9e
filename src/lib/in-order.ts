/** Array methods for functions that are awaited: one call after another, in order. */

export const mapInOrder = async <T, R>(
  items: Iterable<T>,
  work: (item: T, at: number) => Promise<R> | R,
): Promise<R[]> => {
  const results: R[] = []
  for (const item of items) results.push(await work(item, results.length))
  return results
}

export const flatMapInOrder = async <T, R>(
  items: Iterable<T>,
  work: (item: T, at: number) => Promise<R | readonly R[]> | R | readonly R[],
): Promise<R[]> => (await mapInOrder(items, work)).flat() as R[] // as: flat() of a type parameter is not resolved

export const eachInOrder = async <T>(
  items: Iterable<T>,
  work: (item: T) => Promise<unknown> | unknown,
): Promise<void> => {
  for (const item of items) await work(item)
}

export const filterInOrder = async <T>(
  items: Iterable<T>,
  test: (item: T) => Promise<boolean> | boolean,
): Promise<T[]> => {
  const kept: T[] = []
  for (const item of items) if (await test(item)) kept.push(item)
  return kept
}

export const findInOrder = async <T>(
  items: Iterable<T>,
  test: (item: T) => Promise<boolean> | boolean,
): Promise<T | undefined> => {
  for (const item of items) if (await test(item)) return item
  return undefined
}

export const someInOrder = async <T>(
  items: Iterable<T>,
  test: (item: T) => Promise<boolean> | boolean,
): Promise<boolean> => {
  for (const item of items) if (await test(item)) return true
  return false
}

export const everyInOrder = async <T>(
  items: Iterable<T>,
  test: (item: T) => Promise<boolean> | boolean,
): Promise<boolean> => {
  for (const item of items) if (!(await test(item))) return false
  return true
}
