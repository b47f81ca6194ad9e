/** The enabled model sources in memory, so that choosing one needs no database read, and which of them can serve a request. */
import type { Db } from '../../../db/commit.ts'
import type { SourceHealth } from '../../../db/schema/sources.ts'
import type { Sealer } from '../../lib/seal.ts'
import type { KeyPolicy } from '../keys/key-ring.ts'
import { keyContext, listSources, type SourceModelRow, type StoredSource } from './source-rows.ts'

/** A kind of request that a source can support. */
export const CAPABILITIES = ['chat', 'responses', 'audio', 'embeddings'] as const
export type Capability = (typeof CAPABILITIES)[number]

export type SourceModel = Readonly<Omit<SourceModelRow, 'sourceId' | 'createdAt' | 'updatedAt' | 'isEnabled'>>

/** Frozen; a changed source is another object with the same id. */
export interface Source {
  readonly id: string
  readonly name: string
  /** Without a trailing slash. */
  readonly baseUrl: string
  readonly supports: Readonly<Record<Capability, boolean>>
  readonly health: SourceHealth
  readonly timeoutMs: number
  /** 0: unlimited. */
  readonly maxConcurrency: number
  /** The enabled ones, by exact name. */
  readonly models: ReadonlyMap<string, SourceModel>
  /** Decrypted at each call; null: the source needs none. Throws `SealError` when it was sealed with another key. */
  readonly key: () => string | null
}

export class Sources {
  readonly #db: Db
  readonly #sealer: Sealer
  #enabled: readonly Source[] = []
  #byId: ReadonlyMap<string, Source> = new Map()

  private constructor(db: Db, sealer: Sealer) {
    this.#db = db
    this.#sealer = sealer
  }

  static async open(db: Db, sealer: Sealer): Promise<Sources> {
    const sources = new Sources(db, sealer)
    await sources.reload()
    return sources
  }

  async reload(): Promise<void> {
    const enabled = (await listSources(this.#db)).filter(({ isEnabled }) => isEnabled)
    this.#enabled = Object.freeze(enabled.map((row) => sourceOf(row, this.#sealer)))
    this.#byId = new Map(this.#enabled.map((source) => [source.id, source]))
  }

  /** By name, then id. */
  get enabled(): readonly Source[] {
    return this.#enabled
  }

  /** Null: disabled or deleted. */
  byId(id: string): Source | null {
    return this.#byId.get(id) ?? null
  }

  /** Those that list `model` with this capability, by name, then id. */
  offering(model: string, capability: Capability): readonly Source[] {
    return this.#enabled.filter(({ supports, models }) => supports[capability] && models.has(model))
  }
}

/** For calls to a source that need not be enabled. */
export const sourceOf = (row: StoredSource, sealer: Sealer): Source =>
  Object.freeze({
    id: row.id,
    name: row.name,
    baseUrl: row.baseUrl,
    supports: Object.freeze({
      chat: row.supportsChat,
      responses: row.supportsResponses,
      audio: row.supportsAudio,
      embeddings: row.supportsEmbeddings,
    }),
    health: row.health,
    timeoutMs: row.timeoutSeconds * 1000,
    maxConcurrency: row.maxConcurrency,
    models: new Map(row.models.filter(({ isEnabled }) => isEnabled).map((model) => [model.model, getModel(model)])),
    key: () => (row.apiKeySealed === null ? null : sealer.open(row.apiKeySealed, keyContext(row.id))),
  })

const getModel = ({ sourceId, createdAt, updatedAt, isEnabled, ...model }: SourceModelRow): SourceModel =>
  Object.freeze(model)

/** A source and the model of it that is called. */
export interface Choice {
  readonly source: Source
  readonly model: SourceModel
}

interface Offers {
  sources: Pick<Sources, 'enabled' | 'offering'>
  pool: { offers(model: string | null): boolean }
}

interface Wanted {
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
