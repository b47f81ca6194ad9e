/** A set for members that come and go with every request. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { Roster } from '../../src/lib/roster.ts'

test('behaves like a set', () => {
  const steps = fc.array(fc.record({ isAdded: fc.boolean(), item: fc.nat(6) }), { maxLength: 40 })
  fc.assert(
    fc.property(steps, (taken) => {
      const roster = new Roster<number>()
      const set = new Set<number>()
      for (const { isAdded, item } of taken) {
        if (isAdded) {
          roster.add(item)
          set.add(item)
        } else {
          roster.delete(item)
          set.delete(item)
        }
        expect([roster.size, [...roster].sort()]).toEqual([set.size, [...set].sort()])
      }
    }),
  )
})

test('iterates over the original members, even if each removes itself and its neighbor', () => {
  const roster = new Roster<number>()
  for (const item of [1, 2, 3, 4]) roster.add(item)
  const met: number[] = []
  for (const item of roster) {
    met.push(item)
    roster.delete(item)
    roster.delete(item + 1)
    roster.add(item + 10)
  }
  expect(met).toEqual([1, 2, 3, 4])
  expect([...roster].sort()).toEqual([11, 12, 13, 14])
})
