/** Which model sources can serve a request, in the order in which they are used. */
import type { KeyPolicy } from '../keys/key-ring.ts'
import type { Capability, Source, SourceModel, Sources } from './sources.ts'

/** A source and the model of it that is called. */
export interface Choice {
  readonly source: Source
  readonly model: SourceModel
}

interface Offers {
  sources: Pick<Sources, 'enabled' | 'offering'>
  pool: { offers(model: string | null): boolean }
}

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
  { sources, pool }: Offers,
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

export const isInSourceScope = (key: Pick<KeyPolicy, 'sourceIds'> | null, { id }: Pick<Source, 'id'>): boolean =>
  key?.sourceIds?.has(id) ?? true
