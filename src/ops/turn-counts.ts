/** Counts of ended requests since start, in memory: by result, account, key and model. */
import { CODES } from '../errors.ts'
import { isCounted } from '../model/log/counted-requests.ts'
import { getCause } from '../model/log/request-result.ts'
import type { LedgerEntry } from '../proxy/ledger/ledger.ts'
import { type Family, Histogram, type Labels, type Sample } from './prometheus.ts'

type Row = LedgerEntry['row']
type Status = Row['status']

/** Sums per account, key or model. */
interface Tally {
  ok: number
  error: number
  cancelled: number
  input: number
  cachedInput: number
  output: number
  reasoning: number
  costMicros: number
}

const OTHER = 'other'
/** Limits key and model labels, so that changing ones do not grow memory. */
const MAX_LABELS = 1000

const FIRST_EVENT_BOUNDS = [0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120]
const DURATION_BOUNDS = [0.5, 1, 2, 4, 8, 15, 30, 60, 120, 300, 600, 1800]

/**
 * `count` only touches numbers, well under a microsecond (Bun 1.4.5), after the last byte was sent. Models no account
 * offers count as `other`.
 */
export class TurnCounts {
  readonly #isKnownModel: (model: string) => boolean
  readonly #results = new Map<string, Record<Status, number>>()
  readonly #kinds = new Map<Row['kind'], number>()
  /** By phase, code and cause. */
  readonly #errors = new Map<string, number>()
  readonly #accounts = new Map<string, Tally>()
  readonly #keys = new Map<string, Tally>()
  readonly #models = new Map<string, Tally>()
  readonly #firstEvent = new Histogram(FIRST_EVENT_BOUNDS)
  readonly #duration = new Histogram(DURATION_BOUNDS)

  constructor(isKnownModel: (model: string) => boolean) {
    this.#isKnownModel = isKnownModel
  }

  count({ row }: Pick<LedgerEntry, 'row'>): void {
    this.#kinds.set(row.kind, (this.#kinds.get(row.kind) ?? 0) + 1)
    if (!isCounted(row)) return
    this.#countResult(row)
    add(this.#accounts, row.accountId ?? 'none', row)
    add(this.#keys, row.keyId ?? 'none', row)
    add(this.#models, this.#modelLabel(row.model ?? null), row)
    if (row.firstEventMs != null) this.#firstEvent.observe(row.firstEventMs / 1000)
    this.#duration.observe(row.totalMs / 1000)
  }

  /** Drops deleted accounts and ends their series. */
  keepAccounts(ids: ReadonlySet<string>): void {
    for (const id of this.#accounts.keys()) if (id !== 'none' && !ids.has(id)) this.#accounts.delete(id)
  }

  families(): Family[] {
    return [
      counter('sluice_requests_total', 'Requests that ended, by route, transport and status.', this.#resultSamples()),
      counter('sluice_requests_by_kind_total', 'Requests that ended, by kind.', this.#kindSamples()),
      counter('sluice_errors_total', 'Failed requests by phase, error code and cause.', this.#errorSamples()),
      ...tallyFamilies('account', this.#accounts),
      ...tallyFamilies('key', this.#keys),
      ...tallyFamilies('model', this.#models),
      {
        name: 'sluice_first_event_seconds',
        type: 'histogram',
        help: 'From the arrival of a request to its first token.',
        samples: this.#firstEvent.samples(),
      },
      {
        name: 'sluice_request_duration_seconds',
        type: 'histogram',
        help: 'From the arrival of a request to its end.',
        samples: this.#duration.samples(),
      },
    ]
  }

  #countResult({ route, transport, status, phase = null, errorCode = null, errorMessage = null }: Row): void {
    this.#results.getOrInsertComputed(`${transport} ${route}`, () => ({ ok: 0, error: 0, cancelled: 0 }))[status]++
    if (status !== 'error') return
    const code = errorCode !== null && Object.hasOwn(CODES, errorCode) ? errorCode : 'upstream'
    const kind = `${phase ?? OTHER} ${code} ${getCause({ status, phase, errorCode, errorMessage })}`
    this.#errors.set(kind, (this.#errors.get(kind) ?? 0) + 1)
  }

  #modelLabel(model: string | null): string {
    if (model === null) return 'none'
    return this.#models.has(model) || this.#isKnownModel(model) ? model : OTHER
  }

  *#resultSamples(): Generator<Sample> {
    for (const [kind, results] of this.#results) {
      const [transport = '', route = ''] = kind.split(' ')
      for (const [status, value] of Object.entries(results)) yield { labels: { route, transport, status }, value }
    }
  }

  *#kindSamples(): Generator<Sample> {
    for (const [kind, value] of this.#kinds) yield { labels: { kind }, value }
  }

  *#errorSamples(): Generator<Sample> {
    for (const [kind, value] of this.#errors) {
      const [phase = '', code = '', cause = ''] = kind.split(' ')
      yield { labels: { phase, code, cause }, value }
    }
  }
}

const add = (tallies: Map<string, Tally>, label: string, row: Row): void => {
  const name = tallies.size < MAX_LABELS || tallies.has(label) ? label : OTHER
  const tally = tallies.getOrInsertComputed(name, newTally)
  tally[row.status]++
  tally.input += row.inputTokens ?? 0
  tally.cachedInput += row.cachedInputTokens ?? 0
  tally.output += row.outputTokens ?? 0
  tally.reasoning += row.reasoningTokens ?? 0
  tally.costMicros += row.costMicros ?? 0
}

const newTally = (): Tally => ({
  ok: 0,
  error: 0,
  cancelled: 0,
  input: 0,
  cachedInput: 0,
  output: 0,
  reasoning: 0,
  costMicros: 0,
})

const counter = (name: string, help: string, samples: Iterable<Sample>): Family => ({
  name,
  type: 'counter',
  help,
  samples,
})

/** Three families instead of one with all labels: 200 accounts, 100 keys and 20 models would make 400,000 series. */
const tallyFamilies = (dimension: 'account' | 'key' | 'model', tallies: ReadonlyMap<string, Tally>): Family[] => [
  counter(
    `sluice_${dimension}_requests_total`,
    `Requests that ended, by ${dimension} and status.`,
    each(dimension, tallies, (tally) => [
      [{ status: 'ok' }, tally.ok],
      [{ status: 'error' }, tally.error],
      [{ status: 'cancelled' }, tally.cancelled],
    ]),
  ),
  counter(
    `sluice_${dimension}_tokens_total`,
    `Tokens by ${dimension}; cached_input is part of input, reasoning of output.`,
    each(dimension, tallies, (tally) => [
      [{ type: 'input' }, tally.input],
      [{ type: 'cached_input' }, tally.cachedInput],
      [{ type: 'output' }, tally.output],
      [{ type: 'reasoning' }, tally.reasoning],
    ]),
  ),
  counter(
    `sluice_${dimension}_cost_usd_total`,
    `Cost by ${dimension} at list prices.`,
    each(dimension, tallies, (tally) => [[{}, tally.costMicros / 1e6]]),
  ),
]

function* each(
  dimension: string,
  tallies: ReadonlyMap<string, Tally>,
  getValues: (tally: Tally) => readonly (readonly [Labels, number])[],
): Generator<Sample> {
  for (const [name, tally] of tallies)
    for (const [labels, value] of getValues(tally)) yield { labels: { [dimension]: name, ...labels }, value }
}
