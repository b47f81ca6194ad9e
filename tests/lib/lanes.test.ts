/** Limited parallel work: never more, in order, and continuing after an error. */
import { expect, test } from 'bun:test'
import { getQueue, inLanes } from '../../src/lib/lanes.ts'

/** Work that ends on command. */
const ground = () => {
  const begun: number[] = []
  const ends = new Map<number, PromiseWithResolvers<void>>()
  const work = async (n: number): Promise<void> => {
    begun.push(n)
    const end = Promise.withResolvers<void>()
    ends.set(n, end)
    await end.promise
  }
  const settle = async (n: number, err?: Error): Promise<void> => {
    if (err) ends.get(n)!.reject(err)
    else ends.get(n)!.resolve()
    await Bun.sleep(0)
  }
  return { begun, work, settle }
}

test('items start in order, as many at the same time as there are lanes', async () => {
  const { begun, work, settle } = ground()
  const all = inLanes([1, 2, 3, 4, 5], 2, work)
  expect(begun).toEqual([1, 2])
  await settle(2)
  expect(begun).toEqual([1, 2, 3])
  for (const n of [1, 3, 4, 5]) await settle(n)
  await all
  expect(begun).toEqual([1, 2, 3, 4, 5])
})

test('the error comes when the other lanes have ended their item', async () => {
  const { work, settle } = ground()
  let isOver = false
  const failure = inLanes([1, 2], 2, work)
    .catch(() => {})
    .finally(() => {
      isOver = true
    })
  await settle(1, new Error('broken'))
  expect(isOver).toBe(false)
  await settle(2)
  await failure
  expect(isOver).toBe(true)
})

test('after an error no further item starts', async () => {
  const { begun, work, settle } = ground()
  const failure = inLanes([1, 2, 3, 4], 2, work).catch((err: unknown) => err)
  await settle(1, new Error('broken'))
  await settle(2)
  expect(await failure).toEqual(new Error('broken'))
  expect(begun).toEqual([1, 2])
})

test('a queue admits as many as it has lanes, and the next when one has ended, successfully or not', async () => {
  const { begun, work, settle } = ground()
  const queue = getQueue(2)
  const before = [1, 2, 3, 4].map((n) => queue(() => work(n)).catch((err: unknown) => err))
  expect(begun).toEqual([1, 2])
  await settle(1, new Error('broken'))
  expect(begun).toEqual([1, 2, 3])
  for (const n of [2, 3, 4]) await settle(n)
  expect(await Promise.all(before)).toEqual([new Error('broken'), undefined, undefined, undefined])
  const after = [5, 6, 7].map((n) => queue(() => work(n)))
  expect(begun).toEqual([1, 2, 3, 4, 5, 6])
  for (const n of [5, 6, 7]) await settle(n)
  await Promise.all(after)
})
