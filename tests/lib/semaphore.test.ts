/** Places are handed out in order, waiting is bounded in length and time, and nothing leaks. */
import { expect, test } from 'bun:test'
import { type Release, Semaphore } from '../../src/lib/semaphore.ts'
import { ManualClock } from '../support/clock.ts'

const { signal } = new AbortController()

const aSemaphore = (places: number, maxWaiting = 10) => {
  const clock = new ManualClock()
  return { clock, semaphore: new Semaphore(clock, { places, maxWaiting }) }
}

test('who comes first is served first, and a place is given back once', async () => {
  const { clock, semaphore } = aSemaphore(1)
  const first = await semaphore.acquire(signal, 0)
  const served: string[] = []
  const wait = async (name: string) => {
    const release = await semaphore.acquire(signal, 1000)
    served.push(name)
    return release
  }
  const second = wait('second')
  const third = wait('third')
  expect([semaphore.held, semaphore.waiting]).toEqual([1, 2])
  first?.()
  first?.()
  const release = await second
  expect(served).toEqual(['second'])
  release?.()
  ;(await third)?.()
  expect(served).toEqual(['second', 'third'])
  expect([semaphore.held, semaphore.waiting, clock.pending]).toEqual([0, 0, 0])
})

test('a full line and a wait of zero are turned away at once', async () => {
  const { semaphore } = aSemaphore(1, 1)
  await semaphore.acquire(signal, 0)
  expect(await semaphore.acquire(signal, 0)).toBeNull()
  void semaphore.acquire(signal, 1000)
  expect(await semaphore.acquire(signal, 1000)).toBeNull()
  expect(semaphore.waiting).toBe(1)
})

test('each waiter has its own deadline', async () => {
  const { clock, semaphore } = aSemaphore(1)
  const held = await semaphore.acquire(signal, 0)
  const short = semaphore.acquire(signal, 100)
  const long = semaphore.acquire(signal, 200)
  await clock.advance(100)
  expect(await short).toBeNull()
  expect(semaphore.waiting).toBe(1)
  held?.()
  expect(await long).toBeFunction()
  expect(clock.pending).toBe(0)
})

test('a caller that gives up leaves the line and never holds a place', async () => {
  const { clock, semaphore } = aSemaphore(1)
  const held = await semaphore.acquire(signal, 0)
  const abort = new AbortController()
  const waiting = semaphore.acquire(abort.signal, 1000)
  abort.abort(new Error('gone'))
  await expect(waiting).rejects.toThrow('gone')
  held?.()
  expect([semaphore.held, semaphore.waiting, clock.pending]).toEqual([0, 0, 0])
  await expect(semaphore.acquire(abort.signal, 0)).rejects.toThrow('gone')
})

test('resizing admits waiters at once or lets holders finish', async () => {
  const { semaphore } = aSemaphore(1)
  const releases: (Release | null)[] = [await semaphore.acquire(signal, 0)]
  const waiting = [semaphore.acquire(signal, 1000), semaphore.acquire(signal, 1000)]
  semaphore.resize({ places: 3, maxWaiting: 10 })
  releases.push(...(await Promise.all(waiting)))
  expect(semaphore.held).toBe(3)
  semaphore.resize({ places: 1, maxWaiting: 10 })
  releases[0]?.()
  releases[1]?.()
  expect(await semaphore.acquire(signal, 0)).toBeNull()
  releases[2]?.()
  expect(await semaphore.acquire(signal, 0)).toBeFunction()
})
