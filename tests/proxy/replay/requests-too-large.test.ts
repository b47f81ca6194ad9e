/** Routing and the replay agree on which requests an account can serve. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { capacityCredits } from '../../../src/model/accounts/usage-windows.ts'
import { isWithinRest, movePays, percentOfRest } from '../../../src/proxy/pool/move-price.ts'
import { SimulatedWindow } from '../../../src/proxy/replay/simulated-window.ts'
import { holds } from '../../support/property.ts'
import { aContext, anAccount, used } from '../candidates.ts'

const CREDITS = capacityCredits('plus', 'fiveHour')

/** Whether either serves a request of so many credits when so many percent are used. */
const serves = (usedPercent: number, credits: number) => {
  const usedCredits = (CREDITS * usedPercent) / 100
  const window = { credits: CREDITS, lengthMs: 18_000_000, usedCredits, resetAt: null }
  const total = { credits: 0, unused: 0 }
  const replay = new SimulatedWindow(window, null, total).hasRoom(credits)
  const price = percentOfRest(anAccount('a', { usage: used(usedPercent, 0) }), credits, aContext())
  return { replay, routing: isWithinRest(price) }
}

test.each([
  [0, 10_000, true],
  [96, 8, true],
  [96, 10, false],
  [100, 1, false],
  [50, 112, true],
  [50, 300, false],
])('with %d %% used, a request of %d credits can be served: %p', (usedPercent, credits, expected) => {
  expect(serves(usedPercent, credits)).toEqual({ replay: expected, routing: expected })
})

test('in any window', () => {
  holds(
    fc.property(fc.integer({ min: 0, max: 100 }), fc.integer({ min: 1, max: 500 }), (usedPercent, credits) => {
      fc.pre(Math.abs(credits - (CREDITS * (100 - usedPercent)) / 100) > 1e-6) // equal up to rounding
      const { replay, routing } = serves(usedPercent, credits)
      expect(routing).toBe(replay)
    }),
  )
})

test('a conversation leaves an account for which its next request is too large, unless no other can read its cache', () => {
  expect(movePays(100, 101)).toBe(true)
  expect(movePays(100, 100)).toBe(false)
  expect(movePays(300, 600)).toBe(false)
  expect(movePays(99, 100)).toBe(true)
  expect(movePays(null, 600)).toBe(true)
})
