/** The few statistics the benchmark prints. */

export type Summary = { median: number; min: number; max: number; spreadPercent: number }

/** Median, extremes and (max − min) / median in percent. Throws on an empty list. */
export function summarize(values: readonly number[]): Summary {
  const sorted = [...values].sort((a, b) => a - b)
  const median = percentile(sorted, 0.5)
  const min = sorted.at(0) ?? median
  const max = sorted.at(-1) ?? median
  return { median, min, max, spreadPercent: median === 0 ? 0 : ((max - min) / median) * 100 }
}

/** Nearest-rank percentile of an ascending list; `fraction` is 0…1. Throws on an empty list. */
export function percentile(sorted: readonly number[], fraction: number): number {
  const rank = Math.min(sorted.length - 1, Math.max(0, Math.ceil(fraction * sorted.length) - 1))
  const value = sorted[rank]
  if (value === undefined) throw new Error('no samples')
  return value
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

/**
 * How far two samples are apart, and how likely they are that far apart when both come from one distribution: the
 * two-sample Kolmogorov–Smirnov test with the asymptotic p (Press et al., Numerical Recipes, 14.3.3), good from about 20 values on.
 */
export function kolmogorovSmirnov(one: readonly number[], other: readonly number[]): { d: number; p: number } {
  const [a, b] = [one, other].map((values) => values.toSorted((x, y) => x - y)) as [number[], number[]] // as: two in, two out
  let d = 0
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    const value = Math.min(a[i] ?? 0, b[j] ?? 0)
    while (i < a.length && (a[i] ?? 0) <= value) i++
    while (j < b.length && (b[j] ?? 0) <= value) j++
    d = Math.max(d, Math.abs(i / a.length - j / b.length))
  }
  const root = Math.sqrt((a.length * b.length) / (a.length + b.length))
  return { d, p: tailOfKolmogorov((root + 0.12 + 0.11 / root) * d) }
}

function tailOfKolmogorov(x: number): number {
  if (x < 0.2) return 1
  let sum = 0
  for (let k = 1; k <= 100; k++) sum += (k % 2 === 1 ? 2 : -2) * Math.exp(-2 * k * k * x * x)
  return Math.min(1, Math.max(0, sum))
}
