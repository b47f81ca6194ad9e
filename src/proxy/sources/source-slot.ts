/** A place at a model source for a request. */
import { AppError } from '../../errors.ts'
import type { ConcurrencyLimits } from '../../lib/concurrency-limits.ts'
import type { Choice } from '../../model/sources/sources.ts'

export interface SourceSlot extends Choice {
  /** Repeated calls do nothing. */
  release: () => void
}

/** A place at the first source that is not at its limit of parallel requests; null: all are. */
export const reserveSlot = (seats: ConcurrencyLimits, choices: readonly Choice[]): SourceSlot | null => {
  for (const choice of choices) {
    const { id, maxConcurrency } = choice.source
    const release = seats.take(maxConcurrency === 0 ? [] : [{ of: `source ${id}`, most: maxConcurrency }])
    if (release) return { ...choice, release }
  }
  return null
}

export const allBusy = (): AppError => new AppError('model_source_busy', { retryAfterSeconds: BUSY_SECONDS })

const BUSY_SECONDS = 5
