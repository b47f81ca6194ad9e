/** The statistics that the benchmark prints. */

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
