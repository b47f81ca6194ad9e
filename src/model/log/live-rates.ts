/** The rates from units of use to credits, measured again every hour. */
import type { Clock } from '../../lib/clock.ts'
import { DAY_MS, HOUR_MS } from '../../lib/durations.ts'
import { ASSUMED_RATES, type CreditRates } from './request-units.ts'

interface LiveRatesDeps {
  clock: Pick<Clock, 'now'>
  /** Runs in another thread. */
  reads: { creditRates(from: number, to: number): Promise<CreditRates> }
}

const RATE_DAYS = 28
/** The job that refreshes them runs every hour, up to a tenth of it earlier or later. */
const MIN_AGE_MS = 0.8 * HOUR_MS

export class LiveRates {
  readonly #deps: LiveRatesDeps
  #measuredAt = Number.NEGATIVE_INFINITY
  current = ASSUMED_RATES

  constructor(deps: LiveRatesDeps) {
    this.#deps = deps
  }

  /** Does nothing if they were measured less than 48 minutes ago. */
  async refresh(): Promise<void> {
    const { clock, reads } = this.#deps
    const now = clock.now()
    if (now - this.#measuredAt < MIN_AGE_MS) return
    this.current = await reads.creditRates(now - RATE_DAYS * DAY_MS, now)
    this.#measuredAt = now
  }
}
