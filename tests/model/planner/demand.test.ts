/** The expected demand, against numbers computed by hand, and working time in zones. */
import { describe, expect, test } from 'bun:test'
import { forecastDemand, percentile75, SLOT_MS } from '../../../src/model/planner/demand.ts'
import { getWorkingDay, localTimes, type WorkingTime } from '../../../src/model/planner/working-time.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const OFFICE: WorkingTime = { zone: 'UTC', days: new Set([0, 1, 2, 3, 4]), startMinute: 540, endMinute: 1080 }
/** Monday, 2 February 2026, 00:00 UTC. */
const MONDAY = Date.UTC(2026, 1, 2)
const NOW = MONDAY + 28 * DAY

const history = (entries: [start: number, demand: number][], from = MONDAY) => ({
  slots: new Map(entries.map(([start, demand]) => [start, { demand, requests: demand / 10 }])),
  from,
  now: NOW,
})

describe('the formula', () => {
  test('mixes the time of the week, the hour, the last day and the calendar', () => {
    // Mondays at 10:00: 10, 20, 30 and 40, so the 75th percentile is 32.5.
    const mondays = [10, 20, 30, 40].map((demand, week): [number, number] => [
      MONDAY + week * 7 * DAY + 10 * HOUR,
      demand,
    ])
    // Yesterday, a Sunday, 96 slots with 960 in one: 10 on average.
    const sunday: [number, number] = [NOW - DAY + 3 * HOUR, 960]
    const slots = forecastDemand(history([...mondays, sunday]), OFFICE, 96)
    const at = (hour: number, quarter = 0) => slots[hour * 4 + quarter]?.demand ?? Number.NaN
    // The hour 10:00 of working days: 80 slots of which four have requests, so its 75th percentile is 0.
    // Working hours: 20 days of 36 slots with 100 in all; other hours: 1,968 slots with 960.
    expect(at(10)).toBeCloseTo(0.5 * 32.5 + 0.25 * 0 + 0.15 * 10 + 0.1 * (100 / 720), 8)
    expect(at(10, 1)).toBeCloseTo(0.15 * 10 + 0.1 * (100 / 720), 8)
    expect(at(20)).toBeCloseTo(0.15 * 10 + 0.1 * (960 / 1968), 8)
    expect(slots[40]).toMatchObject({ start: NOW + 10 * HOUR, source: 'history' })
    expect(slots[41]).toMatchObject({ source: 'calendar' })
    expect(slots[40]?.requests).toBeCloseTo((slots[40]?.demand ?? 0) / 10, 8)
  })

  test('the same hour of days off is not used for working days', () => {
    const everySaturday = [0, 1, 2, 3].flatMap((week) =>
      [0, 1, 2, 3].map((quarter): [number, number] => [
        MONDAY + (week * 7 + 5) * DAY + 10 * HOUR + quarter * SLOT_MS,
        8,
      ]),
    )
    const everySunday = everySaturday.map(([start, demand]): [number, number] => [start + DAY, demand])
    const slots = forecastDemand(history([...everySaturday, ...everySunday]), OFFICE, 7 * 96)
    const lastDay = (0.15 * 4 * 8) / 96
    expect(slots[40]?.demand).toBeCloseTo(lastDay, 8) // Monday
    expect(slots[5 * 96 + 40]?.demand).toBeCloseTo(0.75 * 8 + lastDay + (0.1 * 32 * 8) / 1968, 8)
  })

  test('weeks before the first request do not count as zero', () => {
    const from = NOW - 14 * DAY
    const slots = forecastDemand(
      history(
        [
          [from + 10 * HOUR, 20],
          [from + 7 * DAY + 10 * HOUR, 20],
        ],
        from,
      ),
      OFFICE,
      41,
    )
    expect(slots[40]?.demand).toBeCloseTo(0.5 * 20 + 0.1 * (40 / 360), 8)
  })

  test('without a history nothing is expected', () => {
    expect(forecastDemand(history([], NOW), OFFICE, 4).map(({ demand }) => demand)).toEqual([0, 0, 0, 0])
  })

  test('the 75th percentile is interpolated', () => {
    expect(percentile75([])).toBe(0)
    expect(percentile75([4])).toBe(4)
    expect(percentile75([5, 1])).toBe(4)
    expect(percentile75([1, 2, 3, 4, 5])).toBe(4)
  })
})

describe('working time', () => {
  test('is in its zone, also across a clock change', () => {
    const berlin: WorkingTime = { ...OFFICE, zone: 'Europe/Berlin' }
    const at = localTimes(berlin)
    expect(at(Date.UTC(2026, 0, 5, 7, 59)).isWorking).toBe(false)
    expect(at(Date.UTC(2026, 0, 5, 8)).isWorking).toBe(true)
    expect(at(Date.UTC(2026, 6, 6, 7)).isWorking).toBe(true)
    expect(at(Date.UTC(2026, 6, 6, 16)).isWorking).toBe(false)
    expect(getWorkingDay(berlin, Date.UTC(2026, 2, 30, 12))).toEqual({
      date: '2026-03-30',
      from: Date.UTC(2026, 2, 30, 7),
      to: Date.UTC(2026, 2, 30, 16),
    })
  })

  test('can end on the next day', () => {
    const night: WorkingTime = { ...OFFICE, days: new Set([4]), startMinute: 1320, endMinute: 360 }
    const at = localTimes(night)
    const friday = Date.UTC(2026, 1, 6)
    expect(at(friday + 23 * HOUR).isWorking).toBe(true)
    expect(at(friday + 29 * HOUR).isWorking).toBe(true)
    expect(at(friday + 30 * HOUR).isWorking).toBe(false)
    expect(at(friday + 5 * HOUR).isWorking).toBe(false)
    expect(getWorkingDay(night, friday + HOUR)).toEqual({
      date: '2026-02-06',
      from: friday + 22 * HOUR,
      to: friday + 30 * HOUR,
    })
  })

  test('also works for weekdays before 1970', () => {
    expect(localTimes(OFFICE)(Date.UTC(1969, 11, 31)).weekday).toBe(2)
    expect(localTimes(OFFICE)(Date.UTC(2024, 1, 29)).weekday).toBe(3)
  })
})
