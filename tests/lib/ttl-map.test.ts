/** Entries expire by the time they are asked at, and the map never outgrows its bound. */
import { expect, test } from 'bun:test'
import { TtlMap } from '../../src/lib/ttl-map.ts'

const aMap = () => new TtlMap<string, number>({ maxEntries: 3, ttlMs: 100 })

test('an entry lives for less than its time, and reading does not prolong it', () => {
  const map = aMap()
  map.set('a', 1, 0)
  map.set('b', 2, 0, 10)
  expect(map.get('a', 99)).toBe(1)
  expect(map.get('b', 10)).toBeUndefined()
  expect(map.get('a', 100)).toBeUndefined()
  expect(map.size).toBe(0)
})

test('setting again renews, deleting removes', () => {
  const map = aMap()
  map.set('a', 1, 0)
  map.set('a', 2, 90)
  expect(map.get('a', 150)).toBe(2)
  expect(map.delete('a')).toBe(true)
  expect(map.delete('a')).toBe(false)
  expect(map.get('a', 150)).toBeUndefined()
})

test('the entry used longest ago makes room', () => {
  const map = aMap()
  for (const key of ['a', 'b', 'c']) map.set(key, 1, 0)
  map.get('a', 1)
  map.set('d', 1, 2)
  expect(['a', 'b', 'c', 'd'].filter((key) => map.get(key, 3) !== undefined)).toEqual(['a', 'c', 'd'])
  expect(map.size).toBe(3)
})

test('sweep drops what expired and tells how many', () => {
  const map = aMap()
  map.set('a', 1, 0)
  map.set('b', 1, 0, 200)
  map.set('c', 1, 0)
  expect(map.sweep(100)).toBe(2)
  expect(map.size).toBe(1)
  map.clear()
  expect(map.size).toBe(0)
})
