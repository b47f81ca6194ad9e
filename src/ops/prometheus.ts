/** The text format of Prometheus (exposition format 0.0.4): families of samples with labels, and histograms. */

export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

export type Labels = Readonly<Record<string, string>>

export interface Sample {
  labels?: Labels
  value: number
  /** Suffix of the family's name: `_bucket`, `_sum`, `_count`. */
  suffix?: string
}

export interface Family {
  name: string
  type: 'counter' | 'gauge' | 'histogram'
  help: string
  samples: Iterable<Sample>
}

/** Families without samples are left out. `common` is added to every sample. */
export const exposition = (families: Iterable<Family>, common: Labels = {}): string => {
  const lines: string[] = []
  for (const { name, type, help, samples } of families) {
    const first = lines.length
    for (const sample of samples) lines.push(getLine(name, { ...sample, labels: { ...common, ...sample.labels } }))
    if (lines.length > first) lines.splice(first, 0, `# HELP ${name} ${help}`, `# TYPE ${name} ${type}`)
  }
  return `${lines.join('\n')}\n`
}

const getLine = (name: string, { labels = {}, value, suffix = '' }: Sample): string => {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`)
  return `${name}${suffix}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${value}`
}

const escaped = (text: string): string =>
  text
    .replaceAll('\\', '\\\\')
    .replaceAll('"', '\\"')
    .replaceAll('\n', '\\n')
    .replace(/[\p{Cc}]/gu, '')

/** A histogram of durations. Observing takes one pass over a dozen bounds. */
export class Histogram {
  readonly #bounds: readonly number[]
  /** Counts per bucket, the last for values above all bounds; summed up when read. */
  readonly #counts: number[]
  #sum = 0

  /** `bounds` ascend, in the caller's unit, usually seconds. */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = new Array<number>(bounds.length + 1).fill(0)
  }

  observe(value: number): void {
    let at = 0
    while (at < this.#bounds.length && value > this.#bounds[at]!) at++
    this.#counts[at]!++
    this.#sum += value
  }

  *samples(): Generator<Sample> {
    let count = 0
    for (const [at, bound] of [...this.#bounds, Number.POSITIVE_INFINITY].entries()) {
      count += this.#counts[at] ?? 0
      yield {
        suffix: '_bucket',
        labels: { le: bound === Number.POSITIVE_INFINITY ? '+Inf' : String(bound) },
        value: count,
      }
    }
    yield { suffix: '_sum', value: this.#sum }
    yield { suffix: '_count', value: count }
  }
}
