/** Local times around clock changes, in every zone of the database, over five years. */
import { describe, expect, test } from 'bun:test'
import { localDate, startInZone } from '../../src/lib/zoned-days.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const [FROM, TO] = [Date.UTC(2026, 0, 1), Date.UTC(2031, 0, 1)]

/** What clocks show, read back with a format of its own. */
const clockIn = (timeZone: string) => {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'medium' })
  return (at: number) => format.format(at)
}
const getText = (wall: number) => new Date(wall).toISOString().slice(0, 19).replace('T', ' ')

describe('a local time', () => {
  const at = (wall: string, zone: string) => new Date(startInZone(Date.parse(`${wall}Z`), zone)).toISOString()
  test.each([
    ['happens once', 'Europe/Berlin', '2026-07-01T07:55', '2026-07-01T05:55:00.000Z'],
    ['exists twice, east of Greenwich', 'Europe/Berlin', '2026-10-25T02:30', '2026-10-25T00:30:00.000Z'],
    ['exists twice, west of it', 'America/New_York', '2026-11-01T01:30', '2026-11-01T05:30:00.000Z'],
    ['exists twice, by half an hour', 'Australia/Lord_Howe', '2026-04-05T01:45', '2026-04-04T14:45:00.000Z'],
    ['is skipped', 'Europe/Berlin', '2026-03-29T02:30', '2026-03-29T01:00:00.000Z'],
    ['is skipped, west of Greenwich', 'America/New_York', '2026-03-08T02:30', '2026-03-08T07:00:00.000Z'],
    ['is skipped, by half an hour', 'Australia/Lord_Howe', '2026-10-04T02:15', '2026-10-03T15:30:00.000Z'],
    ['is skipped at midnight', 'Africa/Cairo', '2026-04-24T00:20', '2026-04-23T22:00:00.000Z'],
    ['is on 29 February', 'Asia/Kathmandu', '2028-02-29T00:10', '2028-02-28T18:25:00.000Z'],
  ])('%s (%s)', (_, zone, wall, expected) => expect(at(wall, zone)).toBe(expected))
})

/** The changes of the offset from UTC, with the offset before each. Scanned in steps: no offset lasts less than 20 days. */
const getChanges = (zone: string) => {
  const format = new Intl.DateTimeFormat('en', { timeZone: zone, timeZoneName: 'longOffset' })
  const offset = (at: number) => format.format(at).split('GMT')[1]
  const changes: { at: number; before: string | undefined }[] = []
  const step = 20 * DAY_MS
  let before = offset(FROM)
  for (let at = FROM; at < TO; at += step) {
    const after = offset(at + step)
    if (before === after) continue
    let [last, first] = [at, at + step]
    while (first - last > MINUTE_MS) {
      const middle = last + Math.floor((first - last) / 2 / MINUTE_MS) * MINUTE_MS
      if (offset(middle) === before) last = middle
      else first = middle
    }
    changes.push({ at: first, before })
    before = after
  }
  return changes
}

/** Zones that change their clocks alike are tested once. */
const patterns = () =>
  new Map(
    Intl.supportedValuesOf('timeZone').map((zone) => {
      const changes = getChanges(zone)
      return [JSON.stringify(changes), { zone, changes: changes.map(({ at }) => at) }] as const
    }),
  )

test('around every clock change of five years, a time is its first occurrence, or the next existing time', () => {
  const wrong: string[] = []
  let changed = 0
  for (const { zone, changes } of patterns().values()) {
    const shows = clockIn(zone)
    for (const change of changes) {
      changed++
      const shown = Date.parse(`${shows(change).replace(' ', 'T')}Z`)
      for (let wall = shown - 2 * HOUR_MS; wall <= shown + 2 * HOUR_MS; wall += 15 * MINUTE_MS) {
        const at = startInZone(wall, zone)
        const isShown = shows(at) === getText(wall)
        const isFirst = isShown && ![30, 60, 120].some((minutes) => shows(at - minutes * MINUTE_MS) === getText(wall))
        const isNext = shows(at) > getText(wall) && shows(at - MINUTE_MS) < getText(wall)
        if (!isFirst && !isNext) wrong.push(`${zone} ${getText(wall)} → ${shows(at)}`)
      }
      const later = Date.parse(localDate(change, zone)) + DAY_MS + 8 * HOUR_MS
      if (shows(startInZone(later, zone)) !== getText(later)) wrong.push(`${zone}: the day after`)
    }
  }
  expect(wrong).toEqual([])
  expect(changed).toBeGreaterThan(100)
}, 120_000)
