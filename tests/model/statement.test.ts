/** The arithmetic of the account statement: spans, the price of a percent, and meters that show whole percents. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { seededRandom } from '../../src/lib/random.ts'
import { isNewReading } from '../../src/model/accounts/meter-readings.ts'
import { type StoredReading, toSpans, toSteps } from '../../src/model/accounts/meter-spans.ts'
import { attribute, startOfWeek } from '../../src/model/accounts/statement.ts'
import { holds } from '../support/property.ts'

const START = Date.UTC(2026, 0, 5)
const MINUTE_MS = 60_000
const DAY_MS = 86_400_000
const PRICE = 500_000

const reading = (over: Partial<StoredReading> = {}): StoredReading => ({
  id: 0,
  window: 'weekly',
  at: START,
  usedPercent: 0,
  windowMinutes: 10_080,
  resetAt: START + 7 * DAY_MS,
  running: 0,
  requests: 0,
  tokens: 0,
  micros: 0,
  unpriced: 0,
  ...over,
})

interface Event {
  micros?: number
  elsewhere?: number
}

/** What is stored of a meter that is read after each event, and shows steps of `step` percent. */
const readingsOf = (events: readonly Event[], { step, everyMs = MINUTE_MS }: { step: number; everyMs?: number }) => {
  const stored = [reading()]
  let exact = 0
  let open = { requests: 0, micros: 0 }
  for (const [index, { micros = 0, elsewhere = 0 }] of events.entries()) {
    exact += micros / PRICE + elsewhere
    if (micros > 0) open = { requests: open.requests + 1, micros: open.micros + micros }
    const usedPercent = Number((Math.floor(exact / step + 1e-9) * step).toFixed(4))
    const next = reading({ id: index + 1, at: START + (index + 1) * everyMs, usedPercent, ...open })
    const last = stored.at(-1) ?? null
    if (!isNewReading(last, next)) continue
    stored.push(next)
    open = { requests: 0, micros: 0 }
  }
  return stored
}

const total = (events: readonly Event[], of: (event: Event) => number) => events.reduce((sum, one) => sum + of(one), 0)
const trueHere = (events: readonly Event[]) => total(events, ({ micros = 0 }) => micros) / PRICE
const trueElsewhere = (events: readonly Event[]) => total(events, ({ elsewhere = 0 }) => elsewhere)
const WHOLE = { from: START, to: START + 7 * DAY_MS - 1 }

describe('the split is right, with work elsewhere in idle times and during requests', () => {
  test.each([
    [0.01, 0.2],
    [0.1, 0.3],
  ])('with steps of %d percent, to %d percentage points', (step, error) => {
    for (const seed of [1, 2, 3, 4, 5]) {
      const random = seededRandom(seed)
      const events = Array.from({ length: 300 }, (): Event => {
        const dice = random.float()
        if (dice < 0.5) return { micros: Math.round(40_000 + random.float() * 200_000) }
        if (dice < 0.55) return { micros: 100_000, elsewhere: 0.3 + random.float() }
        return dice < 0.7 ? { elsewhere: random.float() * 0.4 } : {}
      })
      const { here, elsewherePercent } = attribute(readingsOf(events, { step }), WHOLE)
      expect(Math.abs(here.percent - trueHere(events))).toBeLessThan(error)
      expect(Math.abs((elsewherePercent ?? 0) - trueElsewhere(events))).toBeLessThan(error)
    }
  })

  test('with whole percents, if all work is here', () => {
    for (const seed of [1, 2, 3, 4, 5]) {
      const random = seededRandom(seed)
      const events = Array.from({ length: 400 }, (): Event => {
        return random.float() < 0.6 ? { micros: Math.round(20_000 + random.float() * 150_000) } : {}
      })
      const { usedPercent, here, elsewherePercent, price } = attribute(readingsOf(events, { step: 1 }), WHOLE)
      expect(usedPercent).toBe(Math.floor(trueHere(events)))
      expect([here.percent, elsewherePercent]).toEqual([usedPercent, 0])
      expect(Math.abs((price?.micros ?? 0) - PRICE)).toBeLessThan(PRICE * 0.02)
    }
  })

  test('with whole percents, to two points if work elsewhere comes in pieces of a percent or more', () => {
    for (const seed of [1, 2, 3, 4, 5]) {
      const random = seededRandom(seed)
      const events = Array.from({ length: 400 }, (): Event => {
        const dice = random.float()
        if (dice < 0.6) return { micros: Math.round(20_000 + random.float() * 150_000) }
        return dice < 0.62 ? { elsewhere: 1 + random.float() * 2 } : {}
      })
      const { here, elsewherePercent } = attribute(readingsOf(events, { step: 1 }), WHOLE)
      expect(Math.abs(here.percent - trueHere(events))).toBeLessThan(2)
      expect(Math.abs((elsewherePercent ?? 0) - trueElsewhere(events))).toBeLessThan(3)
    }
  })

  test('with prices that vary from request to request, to a few percent of the work', () => {
    for (const seed of [1, 2, 3]) {
      const random = seededRandom(seed)
      const events = Array.from({ length: 300 }, (): Event => {
        const micros = Math.round(40_000 + random.float() * 200_000)
        // The upstream counts 20 % more or less than the list price says.
        return { micros, elsewhere: (micros / PRICE) * 0.4 * (random.float() - 0.5) }
      })
      const truth = trueHere(events) + trueElsewhere(events)
      const { here } = attribute(readingsOf(events, { step: 0.01 }), WHOLE)
      expect(Math.abs(here.percent - truth)).toBeLessThan(truth * 0.03)
    }
  })
})

test('the spread contains the truth, if work elsewhere comes in a few pieces of two steps or more', () => {
  const steps = fc.constantFrom(0.01, 0.1, 1)
  const seeds = fc.integer({ min: 1, max: 1e9 })
  holds(
    fc.property(steps, fc.boolean(), fc.integer({ min: 80, max: 500 }), seeds, (step, isShared, length, seed) => {
      const { float } = seededRandom(seed)
      const readings = readingsOf(randomEvents(float, { step, length, isShared }), { step })
      // the whole time, and its last part, which can be a single span
      for (const part of [1, 0.5, 0.2, 0.02]) {
        const { usedPercent, here } = attribute(readings, { ...WHOLE, from: START + (1 - part) * length * MINUTE_MS })
        if (part === 1) expect(usedPercent).toBeGreaterThan(0)
        expect(Math.abs(here.percent - here.micros / PRICE), `the last ${part}`).toBeLessThanOrEqual(here.spread)
        expect(here.spread).toBeLessThan(6)
      }
    }),
    200,
  )
})

const randomEvents = (
  float: () => number,
  { step, length, isShared }: { step: number; length: number; isShared: boolean },
): Event[] => {
  const busy = 0.3 + float() * 0.5
  let last = 0
  return Array.from({ length }, (_, index): Event => {
    const micros = float() < busy ? Math.round(20_000 + float() * 150_000) : 0
    const isDue = index - last > 150 && (float() < 0.05 || index > length - 5)
    if (!isShared || !isDue) return { micros }
    last = index
    // during a request or not, a few steps or a few percent
    return { micros, elsewhere: 2 * step + float() * (float() < 0.5 ? step : 4) }
  })
}

/** 400 requests at the price of this file, from which it is known, and then `events`. */
const afterKnownPrice = (events: readonly Event[], step: number) => {
  const known = Array.from({ length: 400 }, (): Event => ({ micros: 60_000 }))
  const readings = readingsOf([...known, ...events], { step })
  return attribute(readings, { ...WHOLE, from: START + known.length * MINUTE_MS })
}

describe('a short period is measured at the price that is known from before', () => {
  test.each([
    ['one span, with steps of 0.01 %', 0.01, [{ micros: 10_000, elsewhere: 4 }]],
    ['one span, with whole percents', 1, [{ micros: 350_000, elsewhere: 3.3 }]],
    ['one span that moves the meter far', 0.1, [{ micros: 10_000, elsewhere: 9 }]],
    [
      'two spans',
      0.01,
      [
        { micros: 425_000, elsewhere: 1.65 },
        { micros: 425_000, elsewhere: 1.65 },
      ],
    ],
    [
      'two spans, with whole percents',
      1,
      [
        { micros: 425_000, elsewhere: 2 },
        { micros: 425_000, elsewhere: 2 },
      ],
    ],
  ] as const)('%s', (_, step, events) => {
    const { here, elsewherePercent, price } = afterKnownPrice(events, step)
    expect(Math.abs(here.percent - trueHere(events))).toBeLessThanOrEqual(here.spread)
    expect(Math.abs((elsewherePercent ?? 0) - trueElsewhere(events))).toBeLessThanOrEqual(here.spread + step)
    expect(here.spread).toBeLessThan(1.3 * step + 0.1)
    expect(Math.abs((price?.micros ?? 0) - PRICE)).toBeLessThan(PRICE * 0.03)
  })
})

test('a span is compared only where every request before it is settled', () => {
  const rows = [
    reading(),
    reading({ id: 1, usedPercent: 1, running: 2, requests: 1, micros: 400_000 }),
    reading({ id: 2, usedPercent: 2, running: 1, requests: 1, micros: 100_000 }),
    reading({ id: 3, usedPercent: 2, running: 0, requests: 1, micros: 500_000 }),
    reading({ id: 4, usedPercent: 3, running: 1 }),
  ]
  const spans = toSpans(toSteps(rows)).map(({ moved, micros, isClosed }) => [moved, micros, isClosed])
  expect(spans).toEqual([
    [2, 1_000_000, true],
    [1, 0, false],
  ])
})

test('an account that is never idle is compared where many requests were settled for each one that runs', () => {
  const rows = Array.from({ length: 6 }, (_, id) =>
    reading({ id, usedPercent: id, running: 2, requests: 8, micros: 8 * 62_500 }),
  )
  const { elsewherePercent } = attribute(rows, { from: START - 1, to: START })
  expect(toSpans(toSteps(rows)).map(({ isClosed }) => isClosed)).toEqual([true, false])
  expect(elsewherePercent).toBeNull()
})

test('requests without a known price count as work here, and say nothing about the price', () => {
  const rows = [
    reading(),
    reading({ id: 1, at: START + 1, usedPercent: 2, requests: 1, micros: 2 * PRICE }),
    reading({ id: 2, at: START + 2, usedPercent: 5, requests: 1, unpriced: 1, tokens: 100 }),
  ]
  const { here, elsewherePercent, price } = attribute(rows, WHOLE)
  expect([here.percent, elsewherePercent, price?.micros]).toEqual([5, 0, PRICE])
})

test('weeks begin on Monday, in UTC', () => {
  expect(new Date(startOfWeek(Date.UTC(2026, 10, 27, 15))).toISOString()).toBe('2026-11-23T00:00:00.000Z')
  expect(startOfWeek(START)).toBe(START)
  expect(startOfWeek(START - 1)).toBe(START - 7 * DAY_MS)
})
