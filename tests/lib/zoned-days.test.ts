/** Days in a time zone: each begins with its own date, even if clocks change at midnight. */
import { expect, test } from 'bun:test'
import { daysBetween, localDate } from '../../src/lib/zoned-days.ts'

const HOUR_MS = 3_600_000

test('clocks that skip midnight: the day begins an hour later and is an hour shorter', () => {
  const [before, day, after] = daysBetween('2026-09-05', 3, 'America/Santiago')
  expect(day).toEqual({
    date: '2026-09-06',
    from: Date.UTC(2026, 8, 6, 4), // 01:00, which follows 23:59
    to: Date.UTC(2026, 8, 7, 3),
  })
  expect([before?.to, after?.from]).toEqual([day?.from, day?.to])
})

test.each([
  'America/Santiago',
  'America/Havana',
  'America/Asuncion',
  'Africa/Cairo',
  'Asia/Beirut',
  'Asia/Gaza',
  'Asia/Kolkata',
  'Atlantic/Azores',
  'Australia/Lord_Howe',
  'Europe/Berlin',
  'UTC',
])('%s: two years of days follow one another without gap or overlap', (zone) => {
  const days = daysBetween('2025-01-01', 730, zone)
  const wrong = days.filter(({ date, from, to }, place) => {
    const isWhole =
      localDate(from, zone) === date && localDate(from - 1, zone) < date && localDate(to - 1, zone) === date
    const isNext = place === 0 || from === days[place - 1]?.to
    return !isWhole || !isNext || Math.abs(to - from - 24 * HOUR_MS) > HOUR_MS
  })
  expect(wrong).toEqual([])
})
