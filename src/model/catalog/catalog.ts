/**
 * The models of the pool: which account offers what, and the lists clients get, from the last upstream answer per
 * account and client version. A memory view; `jobs/catalog.ts` updates the rows.
 */
import { createHash } from 'node:crypto'
import { and, asc, desc, eq, notInArray, sql } from 'drizzle-orm'
import { type Db, notice, type Tx } from '../../../db/commit.ts'
import { accountCatalogs, accounts } from '../../../db/schema/accounts.ts'
import { getObjects, getText } from '../../lib/json.ts'
import { getQueue } from '../../lib/lanes.ts'
import { encodeUtf8 } from '../../lib/utf8.ts'
import type { KeyPolicy } from '../keys/key-ring.ts'
import {
  isForNativeClients,
  type ListedModel,
  listedBySources,
  sourceEntry,
  sourcePublicModel,
} from '../sources/source-entries.ts'
import type { Sources } from '../sources/sources.ts'
import { anthropicModels } from './anthropic-models.ts'
import { complete, isListed, type ModelEntry, type PublicModel, toPublicModel } from './catalog-entry.ts'
import { isClientVersion, nearestVersion, PINNED_CLIENT_VERSION } from './client-version.ts'
import { EFFORTS } from './efforts.ts'
import { costMicros } from './pricing.ts'

/** The part of an API key's policy that decides its models; none: all models. */
export type ModelPolicy = Pick<KeyPolicy, 'allowedModels' | 'applyToCodexModel' | 'enforcedModel'> &
  Partial<Pick<KeyPolicy, 'sourceIds'>>

export interface Listing {
  /** The JSON document, encoded once per catalog. */
  bytes: Uint8Array<ArrayBuffer>
  /** Strong entity tag; equal documents have equal tags. */
  etag: string
}

/** Client versions kept up to date in addition to the pinned one. */
const VERSIONS_KEPT = 8
/** Clients can make up versions, so fetching unknown ones is limited to once in this time. */
const UNKNOWN_VERSION_EVERY_MS = 30_000

interface AwaitedFetch {
  version: string
  /** Monotonic time of the first fetch. Accounts in `asked` are not tried again within `UNKNOWN_VERSION_EVERY_MS`. */
  at: number
  asked: ReadonlySet<string>
  done: Promise<unknown>
}

/** Compares the prices of models. */
const SAMPLE = { inputTokens: 1_000_000, cachedInputTokens: 0, outputTokens: 1_000_000 }
const EFFORT_ORDER: readonly string[] = EFFORTS

const EVERYTHING: ModelPolicy = Object.freeze({
  allowedModels: null,
  applyToCodexModel: false,
  enforcedModel: null,
})

export class Catalog {
  readonly #db: Db
  readonly #sources: Pick<Sources, 'enabled'>
  /** Version → slug → entry. */
  #models = new Map<string, ReadonlyMap<string, ModelEntry>>()
  /** Account → slugs, over all versions. */
  #offers = new Map<string, ReadonlySet<string>>()
  /** Most recently seen last. */
  #seen: string[] = []
  /** The last awaited fetches, running or done: for the pinned version, and for a new one. */
  readonly #fetches = new Map<'pinned' | 'new', AwaitedFetch>()
  /** A changed key has a new policy object, so cached lists are never stale. */
  #listings = new WeakMap<ModelPolicy, Map<string, Listing>>()

  readonly #inTurn = getQueue(1)

  private constructor(db: Db, sources: Pick<Sources, 'enabled'>) {
    this.#db = db
    this.#sources = sources
  }

  static async open(db: Db, sources: Pick<Sources, 'enabled'> = NO_SOURCES): Promise<Catalog> {
    const catalog = new Catalog(db, sources)
    await catalog.reload()
    return catalog
  }

  /** One after another: rows read earlier must not replace newer ones. */
  reload(): Promise<void> {
    return this.#inTurn(() => this.#reload())
  }

  /** Reloads the rows one at a time: a catalog has hundreds of kilobytes, and most accounts share the same one. */
  async #reload(): Promise<void> {
    const models = new Map<string, Map<string, ModelEntry>>()
    const offers = new Map<string, Set<string>>()
    const parsed = new Map<string, ModelEntry[]>()
    for (const { accountId, clientVersion } of await catalogKeys(this.#db)) {
      const text = await catalogText(this.#db, accountId, clientVersion)
      if (text === '') continue // deleted in the meantime
      const union = models.getOrInsertComputed(clientVersion, () => new Map())
      const offered = offers.getOrInsertComputed(accountId, () => new Set())
      for (const entry of parsed.getOrInsertComputed(text, parseCatalog)) {
        offered.add(entry.slug)
        if (!union.has(entry.slug)) union.set(entry.slug, entry)
      }
    }
    this.#models = models
    this.#offers = offers
    this.#listings = new WeakMap()
    if (this.#seen.length === 0) this.#seen = [...models.keys()].filter(isSeenVersion).slice(0, VERSIONS_KEPT).reverse()
  }

  /** Call when the model sources have changed. */
  forgetListings(): void {
    this.#listings = new WeakMap()
  }

  /** Slugs the account offers to any client version; null while nothing has been fetched for it. */
  getModels(accountId: string): ReadonlySet<string> | null {
    return this.#offers.get(accountId) ?? null
  }

  /** Remembers a client's version, so that its catalog is kept up to date. Invalid versions are ignored. */
  noteClientVersion(version: string): void {
    if (!isClientVersion(version) || !isSeenVersion(version)) return
    this.#seen = [...this.#seen.filter((other) => other !== version), version].slice(-VERSIONS_KEPT)
  }

  /** The versions kept up to date. */
  versions(): string[] {
    return [PINNED_CLIENT_VERSION, ...this.#seen]
  }

  /** Nothing has been fetched yet, or there were no accounts. */
  get isEmpty(): boolean {
    return this.#models.size === 0
  }

  /**
   * Fetches the catalog of this version with `fetch` if that was never done, or joins a running fetch: at most once in
   * 30 s for the pinned version, and once for all others. While nothing is known, accounts not yet tried are tried
   * immediately. A version with a catalog counts as seen. Never rejects: the client gets the catalog of the nearest
   * version. `now` is monotonic.
   */
  async ensure(
    version: string,
    { accountIds, now }: { accountIds: readonly string[]; now: number },
    fetch: (accountIds: readonly string[]) => Promise<void>,
  ): Promise<void> {
    if (this.#models.has(version)) return this.noteClientVersion(version)
    const slot = isSeenVersion(version) ? 'new' : 'pinned'
    const last = this.#lastFetch(slot, now)
    if (last && last.version !== version) return
    const unasked = accountIds.filter((id) => !last?.asked.has(id))
    if (last && (unasked.length === 0 || !this.isEmpty)) {
      await last.done
      return
    }
    const fetched = async () => {
      // The notice of the first stored catalog comes only after the other accounts are done.
      if (!this.#models.has(version)) await this.reload()
      if (this.#models.has(version)) this.noteClientVersion(version)
    }
    const answered = fetch(unasked).then(fetched, () => {}) // reported where it failed
    const done = answered.then(() => (this.#models.has(version) ? undefined : last?.done))
    const asked = new Set([...(last?.asked ?? []), ...unasked])
    this.#fetches.set(slot, { version, at: last?.at ?? now, asked, done })
    await done
  }

  #lastFetch(slot: 'pinned' | 'new', now: number): AwaitedFetch | null {
    const last = this.#fetches.get(slot)
    return last && now - last.at < UNKNOWN_VERSION_EVERY_MS ? last : null
  }

  /**
   * `GET …/codex/models` for a client of `version` (null: unknown), or the nearest known version: entries verbatim,
   * plus the same models for OpenAI SDKs. Empty lists while nothing is known.
   */
  native(version: string | null, policy: ModelPolicy | null = null): Listing {
    const nearest = this.#nearest(version)
    return this.#listing(policy, `native ${nearest}`, (rules) => {
      const entries = this.#entries(nearest)
      const bySource = this.#listedBySources(entries, rules)
      const native = bySource.filter(isForNativeClients).map(sourceEntry)
      const models = nativeView([...without(entries, bySource), ...native], rules)
      const own = new Set(native)
      const data = models.filter((entry) => isListed(entry) && !own.has(entry)).map(toPublicModel)
      return { models, object: 'list', data: [...data, ...getPublic(bySource, rules)] }
    })
  }

  /** `GET /v1/models`. */
  public(policy: ModelPolicy | null = null): Listing {
    return this.#listing(policy, 'public', (rules) => {
      const entries = this.#entries(this.#nearest(null))
      const bySource = this.#listedBySources(entries, rules)
      const models = without(entries, bySource).filter((entry) => isListed(entry) && allows(rules, entry.slug))
      return { object: 'list', data: [...models.map(toPublicModel), ...getPublic(bySource, rules)] }
    })
  }

  /** `GET /v1/models` in Anthropic's format. Messages requests can be translated for Responses and chat. */
  anthropic(policy: ModelPolicy | null = null): Listing {
    return this.#listing(policy, 'anthropic', (rules) => {
      const entries = this.#entries(this.#nearest(null))
      const bySource = this.#listedBySources(entries, rules)
      const models = without(entries, bySource).filter((entry) => isListed(entry) && allows(rules, entry.slug))
      const translated = bySource.filter(isTranslated)
      return anthropicModels([...models.map(toPublicModel), ...getPublic(translated, rules)])
    })
  }

  /** One model, including hidden ones, as in `GET /v1/models`; null when unknown or not allowed for the key. */
  find(slug: string, policy: ModelPolicy | null = null): PublicModel | null {
    const rules = policy ?? EVERYTHING
    if (!allows(rules, slug)) return null
    const entry = this.#entry(slug)
    const bySource = this.#listedBySources(entry ? [entry] : [], rules).find(({ model }) => model.model === slug)
    if (bySource) return sourcePublicModel(bySource)
    return entry ? toPublicModel(entry) : null
  }

  /** Whether the model exists and the key may use it. While the catalog is empty, any model may exist. */
  has(slug: string, policy: ModelPolicy | null): boolean {
    return this.isEmpty ? allows(policy ?? EVERYTHING, slug) : this.find(slug, policy) !== null
  }

  /** The visible model with the lowest list price among those the account offers and the key allows; null: none is known. */
  cheapest(accountId: string, policy: ModelPolicy | null = null): string | null {
    const offered = this.getModels(accountId)
    const slugs = this.#entries(this.#nearest(null)).flatMap((entry) =>
      isListed(entry) && offered?.has(entry.slug) && allows(policy ?? EVERYTHING, entry.slug) ? entry.slug : [],
    )
    const price = (slug: string) => costMicros(SAMPLE, slug, null) ?? Number.POSITIVE_INFINITY
    return slugs.reduce<string | null>(
      (best, slug) => (best !== null && price(best) <= price(slug) ? best : slug),
      null,
    )
  }

  /**
   * The visible models that the key allows, highest list price first; models without a price are last. If no account has
   * a model, those of sources for Responses or chat.
   */
  byPrice(policy: ModelPolicy | null = null): string[] {
    const rules = policy ?? EVERYTHING
    const priced = this.isEmpty
      ? this.#listedBySources([], rules).filter(isTranslated).map(sourcePrice)
      : this.#entries(this.#nearest(null))
          .filter(isListed)
          .map(({ slug }) => ({ slug, price: costMicros(SAMPLE, slug, null) ?? 0 }))
    return priced
      .filter(({ slug }) => allows(rules, slug))
      .sort((a, b) => b.price - a.price)
      .map(({ slug }) => slug)
  }

  /** The reasoning efforts of the model, lowest first; empty when unknown. */
  getEfforts(slug: string): string[] {
    const levels = getObjects(this.#entry(slug)?.supported_reasoning_levels).map(({ effort }) => getText(effort))
    return levels.toSorted((a, b) => EFFORT_ORDER.indexOf(a) - EFFORT_ORDER.indexOf(b))
  }

  /** Whether the upstream prefers sockets for this model. */
  prefersWebsockets(slug: string): boolean {
    return this.#entry(slug)?.prefer_websockets === true
  }

  #entry(slug: string): ModelEntry | undefined {
    return this.#models.get(this.#nearest(null) ?? '')?.get(slug)
  }

  /** What sources serve: models that no account offers and, for a key that is limited to sources, all of theirs. */
  #listedBySources(entries: readonly ModelEntry[], { sourceIds = null }: ModelPolicy): ListedModel[] {
    const offered = new Set(sourceIds === null ? entries.map(({ slug }) => slug) : [])
    return listedBySources(this.#sources.enabled, sourceIds).filter(({ model }) => !offered.has(model.model))
  }

  #nearest(version: string | null): string | null {
    return nearestVersion(this.#models.keys(), version ?? PINNED_CLIENT_VERSION)
  }

  /** By priority, which does not depend on the order of fetching. */
  #entries(version: string | null): ModelEntry[] {
    const entries = [...(this.#models.get(version ?? '')?.values() ?? [])]
    return entries.sort((a, b) => Number(a.priority) - Number(b.priority) || (a.slug < b.slug ? -1 : 1))
  }

  #listing(policy: ModelPolicy | null, name: string, build: (rules: ModelPolicy) => unknown): Listing {
    const rules = policy ?? EVERYTHING
    const known = this.#listings.getOrInsertComputed(rules, () => new Map())
    return known.getOrInsertComputed(name, () => encode(build(rules)))
  }
}

/**
 * Stores the catalog as last good copy; an empty list is ignored. Returns whether it changed; the caller then sends one
 * `catalog` notice for all.
 */
export const saveCatalog = async (
  tx: Tx,
  { accountId, version }: { accountId: string; version: string },
  models: readonly ModelEntry[],
  at: number,
): Promise<boolean> => {
  const isAccount =
    (await tx.select({ id: accounts.id }).from(accounts).where(eq(accounts.id, accountId)).get()) !== undefined
  if (models.length === 0 || !isAccount) return false // deleted while its catalog was fetched
  const isSame = (await catalogText(tx, accountId, version)) === JSON.stringify(models)
  const row = { fetchedAt: at, models: [...models] }
  await tx
    .insert(accountCatalogs)
    .values({ accountId, clientVersion: version, ...row })
    .onConflictDoUpdate({
      target: [accountCatalogs.accountId, accountCatalogs.clientVersion],
      set: isSame ? { fetchedAt: at } : row,
    })
    .run()
  return !isSame
}

/** Deletes catalogs of versions no longer in use. */
export const dropOldCatalogs = async (tx: Tx, versions: readonly string[]): Promise<void> => {
  const { changes } = await tx
    .delete(accountCatalogs)
    .where(notInArray(accountCatalogs.clientVersion, [...versions]))
    .run()
  if (changes > 0) notice(tx, 'catalog')
}

/** Newest first: its entry wins when a slug occurs twice. */
const catalogKeys = (db: Db) =>
  db
    .select({ accountId: accountCatalogs.accountId, clientVersion: accountCatalogs.clientVersion })
    .from(accountCatalogs)
    .orderBy(desc(accountCatalogs.fetchedAt), asc(accountCatalogs.accountId), desc(accountCatalogs.clientVersion))
    .all()

/** As stored, so that equal texts are parsed once; empty when there is none. */
const catalogText = async (db: Db, accountId: string, version: string): Promise<string> =>
  (
    await db
      .select({ text: sql<string>`${accountCatalogs.models}` })
      .from(accountCatalogs)
      .where(and(eq(accountCatalogs.accountId, accountId), eq(accountCatalogs.clientVersion, version)))
      .get()
  )?.text ?? ''

/** as: only `saveCatalog` writes it. */
const parseCatalog = (text: string): ModelEntry[] => (JSON.parse(text) as ModelEntry[]).map(complete)

const isSeenVersion = (version: string): boolean => version !== PINNED_CLIENT_VERSION

const isTranslated = ({ source: { supports } }: ListedModel): boolean => supports.responses || supports.chat

const sourcePrice = ({ model }: ListedModel) => ({
  slug: model.model,
  price: (model.inputPer1m ?? 0) + (model.outputPer1m ?? 0),
})

const allows = ({ enforcedModel, allowedModels }: ModelPolicy, slug: string): boolean =>
  enforcedModel !== null ? slug === enforcedModel : (allowedModels?.has(slug) ?? true)

const NO_SOURCES = { enabled: [] }

const without = (entries: readonly ModelEntry[], bySource: readonly ListedModel[]): readonly ModelEntry[] => {
  if (bySource.length === 0) return entries
  const names = new Set(bySource.map(({ model }) => model.model))
  return entries.filter(({ slug }) => !names.has(slug))
}

const getPublic = (bySource: readonly ListedModel[], rules: ModelPolicy): PublicModel[] =>
  bySource.filter(({ model }) => allows(rules, model.model)).map(sourcePublicModel)

/** Models a key may not use are left out, or hidden if the key is set to. */
const nativeView = (entries: readonly ModelEntry[], policy: ModelPolicy): ModelEntry[] => {
  const hides = policy.applyToCodexModel && policy.enforcedModel === null
  return entries.flatMap((entry) => {
    if (allows(policy, entry.slug)) return [entry]
    return hides ? [{ ...entry, visibility: 'hide' }] : []
  })
}

const encode = (document: unknown): Listing => {
  const bytes = encodeUtf8(JSON.stringify(document))
  return { bytes, etag: `"${createHash('sha256').update(bytes).digest('hex').slice(0, 16)}"` }
}
