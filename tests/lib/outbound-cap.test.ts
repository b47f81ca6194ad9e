/** Which limits of requests the runtime accepts, and how many model requests fit under one. */
import { describe, expect, test } from 'bun:test'
import { outboundCap, turnsUnder } from '../../src/lib/outbound-cap.ts'

describe('the runtime’s limit of parallel requests', () => {
  test.each([
    ['300', 300],
    ['+300', 300],
    ['0300', 300],
    ['1', 1],
    ['1_000', 1000],
    ['65535', 65535],
  ])('%p is a limit', (text, cap) => expect(outboundCap(text)).toBe(cap))

  test.each([undefined, '', '0', '-1', '65536', '3e2', '300x', ' 300', '300 ', 'many'])('%p is no limit', (text) =>
    expect(outboundCap(text)).toBeNull(),
  )

  test('leaves room for requests other than model requests, and for at least one of those', () => {
    expect([1, 2, 8, 256, 16384].map(turnsUnder)).toEqual([1, 1, 6, 200, 12800])
  })
})
