/** Which model sources can serve a request, in the order in which they are used. */
import type { Bindings, Ctx } from '../../bindings.ts'
import { AppError } from '../../errors.ts'
import type { Seats } from '../../lib/seats.ts'
import type { KeyPolicy } from '../../model/key-ring.ts'
import type { Capability, Source } from '../../model/sources/sources.ts'
import type { TurnBody } from '../turn.ts'
import type { Choice } from './source-use.ts'

export interface Wanted {
  /** As the client names it, or as its key enforces. */
  model: unknown
  key: KeyPolicy | null
  capability: Capability
  isStreamed: boolean
}

/**
 * Those that list the model, by name, then id; empty: the pool serves it. A model that an account offers is the pool's,
 * unless the key is limited to sources.
 */
export const choicesFor = (
  { sources, pool }: Pick<Bindings, 'sources' | 'pool'>,
  { model: name, key, capability, isStreamed }: Wanted,
): Choice[] => {
  if (sources.enabled.length === 0 || typeof name !== 'string') return []
  const scope = key?.sourceIds ?? null
  if (scope === null && pool.offers(name)) return []
  return sources.offering(name, capability).flatMap((source) => {
    const model = source.models.get(name)
    const isFit = model !== undefined && (!isStreamed || model.supportsStreaming)
    return isFit && isInSourceScope(key, source) ? [{ source, model }] : []
  })
}

/** The same for a JSON request. */
export const choicesOf = (
  { env, var: { client } }: Ctx,
  { json }: Pick<TurnBody, 'json'>,
  capability: Capability,
  isStreamed = json.stream === true,
): Choice[] =>
  choicesFor(env, { model: client.key?.enforcedModel ?? json.model, key: client.key, capability, isStreamed })

export const isInSourceScope = (key: Pick<KeyPolicy, 'sourceIds'> | null, { id }: Pick<Source, 'id'>): boolean =>
  key?.sourceIds?.has(id) ?? true

export interface Seated extends Choice {
  /** Repeated calls do nothing. */
  release: () => void
}

/** A place at the first source that is not at its limit of parallel requests; null: all are. */
export const seatAt = (seats: Seats, choices: readonly Choice[]): Seated | null => {
  for (const choice of choices) {
    const { id, maxConcurrency } = choice.source
    const release = seats.take(maxConcurrency === 0 ? [] : [{ of: `source ${id}`, most: maxConcurrency }])
    if (release) return { ...choice, release }
  }
  return null
}

export const allBusy = (): AppError => new AppError('model_source_busy', { retryAfterSeconds: BUSY_SECONDS })

const BUSY_SECONDS = 5
