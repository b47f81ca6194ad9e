/** Numbers and durations in words, on the server and in the page's script. */
import { expect, test } from 'bun:test'
import { costText, dollarText, shortCount } from '../../views/ui/amounts.ts'
import { leftPercent } from '../../views/ui/meter.tsx'
import { durationText, sinceText, spanText, untilText } from '../../views/ui/time.tsx'

const SPANS: [ms: number, words: string][] = [
  [0, '0 s'],
  [59_999, '59 s'],
  [60_000, '1 min'],
  [3_599_999, '59 min'],
  [3_600_000, '1 h'],
  [7_800_000, '2 h 10 min'],
  [86_400_000, '1 d'],
  [97_200_000, '1 d 3 h'],
]

test.each(SPANS)('%d ms is %s', (ms, words) => {
  expect(spanText(ms)).toBe(words)
})

test('the script of the page uses the same words', async () => {
  const source = await Bun.file(new URL('../../views/assets/app.js', import.meta.url)).text()
  const body = source.slice(source.indexOf('const pair ='), source.indexOf('const TIME ='))
  const span = new Function(`${body}; return span`)() as (ms: number) => string // as: the function the script defines
  for (const [ms, words] of SPANS) expect(span(ms)).toBe(words)
})

test('what has come is now', () => {
  const now = '2026-01-01T12:00:00.000Z'
  expect(untilText('2026-01-01T11:00:00.000Z', now)).toBe('now')
  expect(untilText('2026-01-01T12:05:00.000Z', now)).toBe('in 5 min')
  expect(sinceText('2026-01-01T11:55:00.000Z', now)).toBe('5 min ago')
  expect(sinceText('2026-01-01T12:05:00.000Z', now)).toBe('now')
})

test.each([
  [12.4, '12 ms'],
  [920, '0.92 s'],
  [12_340, '12.3 s'],
  [125_000, '2 min'],
])('a measured %d ms is %s', (ms, words) => {
  expect(durationText(ms)).toBe(words)
})

test.each([
  [0, 100],
  [0.2, 99],
  [63.4, 37],
  [99.8, 1],
  [100, 0],
  [130, 0],
])('%d %% used leaves %d %%', (usedPercent, left) => {
  expect(leftPercent(usedPercent)).toBe(left)
})

test.each([
  [0, '$0', '$0'],
  [0.000_04, '<$0.0001', '<$0.0001'],
  [0.023_12, '$0.0231', '$0.0231'],
  [1.234_567, '$1.235', '$1.23'],
  [12.345_678, '$12.35', '$12.35'],
  [1234.5, '$1,235', '$1,234.50'],
])('%d dollars cost %s, and are %s in a sum', (usd, cost, sum) => {
  expect([costText(usd), dollarText(usd)]).toEqual([cost, sum])
})

test.each([
  [950, '950'],
  [1234, '1.2 k'],
  [123_456, '123 k'],
  [999_999, '1 M'],
  [3_100_000, '3.1 M'],
  [2_000_000_000, '2 G'],
])('%d is %s for short', (count, words) => {
  expect(shortCount(count)).toBe(words)
})
