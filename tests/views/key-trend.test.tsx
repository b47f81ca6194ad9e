/** The bars of a key: in the hours and days of the viewer's clock. */
import { expect, test } from 'bun:test'
import { Trend } from '../../views/keys/trend.tsx'
import { createClock, ViewerClockContext } from '../../views/ui/viewer-clock.ts'

const HOUR_MS = 3_600_000

/** The hours up to and including that of `end`, each with the value 1. */
const getTrend = (zone: string, end: string): string => {
  const points = Array.from({ length: 168 }, (_, hour) => ({
    t: new Date(Date.parse(end) - (167 - hour) * HOUR_MS).toISOString(),
    v: 1,
  }))
  return (
    <ViewerClockContext.Provider value={createClock(zone)}>
      <Trend label="Tokens" points={points} text={String} />
    </ViewerClockContext.Provider>
  ).toString() as string // as: nothing in it is asynchronous
}

const titlesIn = (html: string) =>
  [...html.matchAll(/<path d="M[^"]*"><title>(.*?)<\/title>/g)].map(([, title]) => title)

test.each([
  ['UTC', '2026-01-10T12:00:00Z', ['01-03 13:00: 5', '01-03 18:00: 6'], '01-10 12:00: 1'],
  ['America/New_York', '2026-01-10T12:00:00Z', ['01-03 08:00: 4', '01-03 12:00: 6'], '01-10 06:00: 2'],
  ['Asia/Kolkata', '2026-01-10T12:00:00Z', ['01-03 18:30: 6', '01-04 00:30: 6'], '01-10 12:30: 6'],
  // Clocks are put back on 2026-11-01: the night has an hour more.
  ['America/New_York', '2026-11-02T12:00:00Z', ['10-26 09:00: 3', '10-26 12:00: 6'], '11-02 06:00: 2'],
])('in %s up to %s bars begin with a quarter of the day', (zone, end, first, last) => {
  const titles = titlesIn(getTrend(zone, end))
  expect(titles.slice(0, 2)).toEqual(first)
  expect(titles.at(-1)).toBe(last)
})

test.each(['America/New_York', 'Asia/Kolkata', 'Pacific/Kiritimati'])('bars of a day in %s make its row', (zone) => {
  const html = getTrend(zone, '2026-11-02T12:00:00Z')
  const bars = Map.groupBy(titlesIn(html), (title) => title?.slice(0, 5))
  const sums = [...bars].map(([day, titles]) => [
    day,
    titles.reduce((sum, title) => sum + Number(title?.split(': ')[1]), 0),
  ])
  const rows = [...html.matchAll(/<th scope="row">\d{4}-(.*?)<\/th><td>(.*?)<\/td>/g)].map(([, day, sum]) => [
    day,
    Number(sum),
  ])
  expect(sums).toEqual(rows)
})
