/** The rates from units to credits are measured again every hour. */
import { expect, test } from 'bun:test'
import { LiveRates } from '../../src/model/log/live-rates.ts'
import { ASSUMED_RATES } from '../../src/model/log/request-units.ts'
import { ManualClock } from '../support/clock.ts'

const MINUTE_MS = 60_000
const DAYS_28_MS = 28 * 24 * 60 * MINUTE_MS

/** The nth measurement gives n credits per unit of the five-hour window. */
const setUp = () => {
  const clock = new ManualClock()
  const measured: [number, number][] = []
  let failure: Error | null = null
  const creditRates = async (from: number, to: number) => {
    if (failure) throw failure
    measured.push([from, to])
    return { short: measured.length, long: 2, isMeasured: true }
  }
  const fail = (err: Error | null) => {
    failure = err
  }
  return { clock, measured, fail, rates: new LiveRates({ clock, reads: { creditRates } }) }
}

test('until the first measurement they are assumed, and each covers 28 days', async () => {
  const { clock, rates, measured } = setUp()
  expect(rates.current).toEqual(ASSUMED_RATES)
  const now = clock.now()
  await rates.refresh()
  expect(rates.current).toEqual({ short: 1, long: 2, isMeasured: true })
  expect(measured).toEqual([[now - DAYS_28_MS, now]])
})

test('every run of the hourly job measures them, also one that is a tenth early', async () => {
  const { clock, rates } = setUp()
  await rates.refresh()
  for (const [minutes, short] of [
    [54, 2],
    [66, 3],
    [54, 4],
    [47, 4],
    [1, 5],
  ] as const) {
    await clock.advance(minutes * MINUTE_MS)
    await rates.refresh()
    expect(rates.current.short).toBe(short)
  }
})

test('a measurement that failed changes nothing and is repeated', async () => {
  const { clock, rates, fail } = setUp()
  await rates.refresh()
  await clock.advance(60 * MINUTE_MS)
  fail(new Error('busy'))
  expect(
    await rates.refresh().then(
      () => null,
      (err) => err.message,
    ),
  ).toBe('busy')
  expect(rates.current.short).toBe(1)
  fail(null)
  await rates.refresh()
  expect(rates.current.short).toBe(2)
})
