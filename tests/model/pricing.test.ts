/** Costs are exact, in whole micro-dollars, and never guessed. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { costMicros } from '../../src/model/catalog/pricing.ts'
import { holds } from '../support/property.ts'

const M = 1_000_000
const usage = (inputTokens: number | null, outputTokens: number | null, cachedInputTokens: number | null = 0) => ({
  inputTokens,
  cachedInputTokens,
  outputTokens,
})
const cost = (model: string, tier: string | null, input: number, output: number, cached = 0) =>
  costMicros(usage(input, output, cached), model, tier)

describe('rates', () => {
  test('cached input has its own rate, and cannot exceed the input', () => {
    expect(cost('gpt-5.5', null, 1000, 500, 200)).toBe(800 * 5 + 200 * 0.5 + 500 * 30)
    expect(cost('gpt-5.5', null, 1000, 0, 5000)).toBe(500)
    expect(cost('gpt-5.5', null, 1000, 0, -5)).toBe(5000)
  })

  test('a missing cached rate is the input rate', () => {
    expect(cost('gpt-5.5-pro', null, 1000, 0, 1000)).toBe(30_000)
  })

  test.each([
    ['priority', 'gpt-5.5', 12_500],
    ['FAST', 'gpt-5.5', 12_500],
    ['priority', 'gpt-5.2', 3_500],
    ['priority', 'gpt-5.1', 2_500],
    ['priority', 'gpt-5.4-mini', 750],
    ['priority', 'gpt-6-astra', 20_000],
    ['flex', 'gpt-5.5', 2_500],
    ['flex', 'gpt-5.3-codex', 1_750],
    ['default', 'gpt-5.5', 5_000],
    [null, 'gpt-5.5', 5_000],
  ])('the tier %p of %s costs %p for a thousand tokens', (tier, model, micros) => {
    expect(cost(model, tier, 1000, 0)).toBe(micros)
  })

  test('fractions of a micro-dollar are summed exactly and rounded down once', () => {
    expect(cost('gpt-5.4-nano', 'flex', 3, 1, 1)).toBe(0) // 0.2 + 0.01 + 0.625
    expect(cost('gpt-5.1-codex-mini', null, M, 0, M)).toBe(25_000)
  })
})

describe('long context', () => {
  test('moves the whole request to the long rates beyond 272,000 input tokens', () => {
    expect(cost('gpt-5.4', null, 272_000, 1000)).toBe(272_000 * 2.5 + 15_000)
    expect(cost('gpt-5.4', null, 272_001, 1000, 1)).toBe(Math.floor(272_000 * 5 + 0.5 + 22_500))
  })

  test('raises flex by half as much for output, and leaves priority and models without long rates alone', () => {
    expect(cost('gpt-5.4', 'flex', 300_000, 1000)).toBe(300_000 * 2.5 + 11_250)
    expect(cost('gpt-5.4', 'priority', 300_000, 1000)).toBe(300_000 * 5 + 30_000)
    expect(cost('gpt-5.5', null, 300_000, 0)).toBe(300_000 * 5)
  })

  test('doubles with the priority tier of a model with priority rates for it', () => {
    expect(cost('gpt-6-astra', 'priority', 300_000, 100_000, 100_000)).toBe(200_000 * 40 + 100_000 * 4 + 100_000 * 150)
  })
})

describe('names', () => {
  test.each([
    ['GPT-5.6', 5],
    ['gpt-5.6-terra-2026-09-01', 2],
    ['gpt-5.3-codex-spark', 1.75],
    ['gpt-5.1-codex-mini-high', 0.25],
    ['gpt-5.1-codex-max-x', 1.25],
    ['gpt-5.4-pro-2026', 30],
    ['gpt-5-2025-08-07', 1.25],
    ['gpt-image-3', 5],
    ['gpt-6-astra', 10],
    ['gpt-6-sol', 2],
    ['gpt-6-luna-2026-09-22', 0.1],
  ])('%s is priced as its family', (model, perToken) => {
    expect(cost(model, null, 1000, 0)).toBe(perToken * 1000)
  })

  test.each(['gpt-6', 'gpt-6.1-sol', 'gpt-5.6-vega', 'gpt-5.9', 'gpt-55', 'o3', '', 'constructor'])(
    '%p has no price',
    (model) => {
      expect(cost(model, null, 1000, 1000)).toBeNull()
    },
  )
})

describe('tokens', () => {
  test('reasoning replaces missing output tokens; anything else missing has no cost', () => {
    expect(costMicros({ ...usage(1000, null), reasoningTokens: 10 }, 'gpt-5.5', null)).toBe(5_300)
    expect(costMicros(usage(1000, null), 'gpt-5.5', null)).toBeNull()
    expect(costMicros(usage(null, 10), 'gpt-5.5', null)).toBeNull()
    expect(costMicros(usage(1000, 10, null), 'gpt-5.5', null)).toBe(5_300)
  })

  test('a cost is an integer and more tokens never cost less', () => {
    const tokens = fc.integer({ min: 0, max: 2_000_000 })
    const model = fc.constantFrom('gpt-5.4', 'gpt-5.6-luna', 'gpt-5.1-codex-mini', 'gpt-5.5-pro')
    holds(
      fc.property(
        model,
        fc.constantFrom(null, 'flex', 'priority'),
        tokens,
        tokens,
        tokens,
        (name, tier, a, b, more) => {
          const less = cost(name, tier, a, b) ?? Number.NaN
          expect(Number.isSafeInteger(less)).toBe(true)
          expect(cost(name, tier, a + more, b)).toBeGreaterThanOrEqual(less)
        },
      ),
    )
  })
})
