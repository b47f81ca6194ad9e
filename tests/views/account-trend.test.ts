/** The lines of the trend: they have gaps without data, and a single hour is a dot. */
import { expect, test } from 'bun:test'
import { dotsPath, linePath } from '../../views/accounts/trend.tsx'

test('consecutive hours are one line, from the top down', () => {
  expect(linePath([0, 50, 100])).toBe('M0.5 100L1.5 50L2.5 0')
})

test('a gap breaks the line', () => {
  expect(linePath([10, 20, null, 30, 40])).toBe('M0.5 90L1.5 80M3.5 70L4.5 60')
})

test('an hour between two gaps is a dot and not a line', () => {
  expect([linePath([null, 10, null]), dotsPath([null, 10, null])]).toEqual(['', 'M1.5 90h.01'])
  expect(dotsPath([10, 20, null, 30, 40])).toBe('')
})

test('unknown values draw nothing', () => {
  expect([linePath([null, null]), dotsPath([null, null])]).toEqual(['', ''])
})
