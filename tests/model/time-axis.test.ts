/** The marks of time axes: at round local times, in any zone and across clock changes. */
import { describe, expect, test } from 'bun:test'
import { getTicks, ticksOfBars } from '../../src/model/overview/time-axis.ts'

const HOUR = 3_600_000
const labels = (from: string, hours: number, zone: string) =>
  getTicks({ from: Date.parse(from), to: Date.parse(from) + hours * HOUR, zone }).map(({ label }) => label)

describe('ticks', () => {
  test.each([
    ['an hour', '2026-01-10T12:03Z', 1, 'UTC', ['12:10', '12:20', '12:30', '12:40', '12:50', '13:00']],
    ['a day', '2026-01-10T12:00Z', 24, 'UTC', ['15:00', '18:00', '21:00', 'Jan 11', '03:00', '06:00', '09:00']],
    [
      'a day in New York',
      '2026-01-10T17:00Z',
      24,
      'America/New_York',
      ['15:00', '18:00', '21:00', 'Jan 11', '03:00', '06:00', '09:00'],
    ],
    [
      'a day in Kolkata',
      '2026-01-10T06:30Z',
      24,
      'Asia/Kolkata',
      ['15:00', '18:00', '21:00', 'Jan 11', '03:00', '06:00', '09:00'],
    ],
    ['a week', '2026-02-26T12:00Z', 168, 'UTC', ['Feb 27', 'Feb 28', 'Mar 1', 'Mar 2', 'Mar 3', 'Mar 4', 'Mar 5']],
  ])('of %s', (_, from, hours, zone, expected) => {
    expect(labels(from, hours, zone).slice(-expected.length)).toEqual(expected)
  })

  test('stay at local times when the clocks change within the axis', () => {
    const from = Date.parse('2026-03-28T12:00Z')
    const ticks = getTicks({ from, to: from + 48 * HOUR, zone: 'Europe/Berlin' })
    const at = (label: string) => new Date(from + (ticks.find((tick) => tick.label === label)?.place ?? 0) * 48 * HOUR)
    expect(at('Mar 29').toISOString()).toBe('2026-03-28T23:00:00.000Z')
    expect(at('Mar 30').toISOString()).toBe('2026-03-29T22:00:00.000Z')
  })

  test('are few, whatever the length', () => {
    for (const hours of [0.2, 1, 5, 24, 100, 720, 9000]) {
      const count = labels('2026-01-10T12:03Z', hours, 'UTC').length
      expect([hours, count > 0 && count <= 8]).toEqual([hours, true])
    }
  })

  test('labels are below their day, and thirty days do not get thirty labels', () => {
    const bars = Array.from({ length: 30 }, (_, n) => ({ from: Date.parse('2026-01-31T23:00Z') + n * 24 * HOUR }))
    const ticks = ticksOfBars(bars, 'Europe/Berlin')
    expect(ticks.map(({ label }) => label)).toEqual(['Feb 5', 'Feb 9', 'Feb 13', 'Feb 17', 'Feb 21', 'Feb 25', 'Mar 1'])
    expect(ticks[0]?.place).toBeCloseTo(4.5 / 30)
  })
})
