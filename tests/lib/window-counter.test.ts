/** No span of the window ever holds more than the limit, and a refused caller is told how long to wait. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { WindowCounter } from '../../src/lib/window-counter.ts'

test('the limit holds within the window and frees one place as each hit leaves it', () => {
  const counter = new WindowCounter({ limit: 2, windowMs: 100, maxKeys: 10 })
  expect(counter.hit('a', 0)).toEqual({ allowed: true, retryAfterMs: 0 })
  expect(counter.hit('a', 40)).toEqual({ allowed: true, retryAfterMs: 0 })
  expect(counter.hit('a', 60)).toEqual({ allowed: false, retryAfterMs: 40 })
  expect(counter.hit('b', 60).allowed).toBe(true)
  expect(counter.hit('a', 99).allowed).toBe(false)
  expect(counter.hit('a', 100).allowed).toBe(true)
  expect(counter.hit('a', 101)).toEqual({ allowed: false, retryAfterMs: 39 })
})

test('hits at the same instant are counted one by one', () => {
  const counter = new WindowCounter({ limit: 8, windowMs: 60_000, maxKeys: 10 })
  const allowed = Array.from({ length: 50 }, () => counter.hit('a', 5).allowed)
  expect(allowed.filter(Boolean)).toHaveLength(8)
})

test('agrees with a count over all allowed hits', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 4 }), fc.array(fc.nat(30), { maxLength: 80 }), (limit, gaps) => {
      const counter = new WindowCounter({ limit, windowMs: 50, maxKeys: 1 })
      const allowed: number[] = []
      let now = 0
      for (const gap of gaps) {
        now += gap
        const recent = allowed.filter((time) => time > now - 50).length
        const hit = counter.hit('a', now)
        expect(hit.allowed).toBe(recent < limit)
        if (hit.allowed) allowed.push(now)
        const within = (time: number) => allowed.filter((past) => past > time - 50).length
        if (!hit.allowed) {
          expect(within(now + hit.retryAfterMs)).toBeLessThan(limit)
          expect(within(now + hit.retryAfterMs - 1)).toBe(limit)
        }
      }
    }),
    { seed: 1, numRuns: 200 },
  )
})

test('keys are bounded; the one seen longest ago is forgotten first, a refused one is seen', () => {
  const counter = new WindowCounter({ limit: 1, windowMs: 100, maxKeys: 2 })
  counter.hit('a', 0)
  counter.hit('b', 1)
  expect(counter.hit('a', 2).allowed).toBe(false)
  counter.hit('c', 3)
  expect(counter.size).toBe(2)
  expect(counter.hit('a', 4).allowed).toBe(false)
  counter.forget('a')
  expect(counter.hit('a', 5).allowed).toBe(true)
})

test('a limit of none refuses everybody', () => {
  const counter = new WindowCounter({ limit: 0, windowMs: 100, maxKeys: 2 })
  expect(counter.hit('a', 0)).toEqual({ allowed: false, retryAfterMs: 100 })
})
