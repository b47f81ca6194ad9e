/** Model sources as rows: create, change and delete, each in one commit with its audit row. */
import { and, asc, eq, ne, sql } from 'drizzle-orm'
import { type Db, notice, type Tx } from '../../../db/commit.ts'
import { apiKeys } from '../../../db/schema/keys.ts'
import { modelSources, sourceModels } from '../../../db/schema/sources.ts'
import { AppError } from '../../errors.ts'
import type { Random } from '../../lib/random.ts'
import type { Sealer } from '../../lib/seal.ts'
import { type Actor, append } from '../audit/audit.ts'
import { getChanges } from '../audit/changes-of.ts'
import { getVersion, requireVersion } from '../edit-version.ts'
import type { NewSource, SourceModelInput, SourcePatch } from './source-input.ts'

type SourceRow = typeof modelSources.$inferSelect
export type SourceModelRow = typeof sourceModels.$inferSelect
/** A source with its models, by name. */
export type StoredSource = SourceRow & { models: SourceModelRow[] }

interface Doing {
  actor: Actor
  random: Random
  sealer: Sealer
  /** Called before an address or a key is set or changed. */
  requireConfirmation: () => void
}

/** Where a key is sealed, so that it cannot be moved to another source. */
export const keyContext = (id: string): string => `model_sources.api_key.${id}`

/** By name, then id. */
export const listSources = async (db: Db): Promise<StoredSource[]> => {
  const models = Map.groupBy(
    await db.select().from(sourceModels).orderBy(asc(sourceModels.model)).all(),
    ({ sourceId }) => sourceId,
  )
  return (await db.select().from(modelSources).orderBy(asc(modelSources.name), asc(modelSources.id)).all()).map(
    (row) => ({ ...row, models: models.get(row.id) ?? [] }),
  )
}

/** Id → name. */
export const sourceNames = async (db: Db): Promise<ReadonlyMap<string, string>> =>
  new Map(
    (await db.select({ id: modelSources.id, name: modelSources.name }).from(modelSources).all()).map(({ id, name }) => [
      id,
      name,
    ]),
  )

/** Throws `not_found`. */
export const getSource = async (db: Db, id: string): Promise<StoredSource> => {
  const row = await db.select().from(modelSources).where(eq(modelSources.id, id)).get()
  if (!row) throw new AppError('not_found', { message: 'Model source not found.' })
  const models = await db
    .select()
    .from(sourceModels)
    .where(eq(sourceModels.sourceId, id))
    .orderBy(asc(sourceModels.model))
    .all()
  return { ...row, models }
}

/** The version of what can be set, not of health. */
export const sourceVersion = (row: StoredSource): string => getVersion(Object.values(settable(row)))

const settable = ({ models, ...row }: StoredSource) => ({
  name: row.name,
  baseUrl: row.baseUrl,
  apiKey: row.apiKeySealed,
  supportsChat: row.supportsChat,
  supportsResponses: row.supportsResponses,
  supportsAudio: row.supportsAudio,
  supportsEmbeddings: row.supportsEmbeddings,
  timeoutSeconds: row.timeoutSeconds,
  maxConcurrency: row.maxConcurrency,
  isEnabled: row.isEnabled,
  models: models.map(({ id, sourceId, createdAt, updatedAt, ...model }) => model),
})

/** `input.baseUrl` must have been checked. Throws `name_taken`, and what `requireConfirmation` does. */
export const createSource = async (tx: Tx, input: NewSource, doing: Doing): Promise<StoredSource> => {
  const { actor, random } = doing
  doing.requireConfirmation()
  await requireFreeName(tx, input.name, null)
  const id = random.id('src')
  const times = { createdAt: actor.at, updatedAt: actor.at }
  await tx
    .insert(modelSources)
    .values({
      ...getColumns(input),
      id,
      name: input.name,
      baseUrl: input.baseUrl,
      apiKeySealed: sealKey(id, input.apiKey, doing),
      ...times,
    })
    .run()
  await replaceModels(tx, id, input.models, doing)
  await append(tx, actor, 'model_source_created', { target: id, details: { name: input.name, baseUrl: input.baseUrl } })
  notice(tx, 'sources')
  return getSource(tx, id)
}

/**
 * Applies `patch`; unchanged values are ignored. Another address or key makes the health unknown again. The key does not
 * go to another server: a change of scheme, host or port needs it again. Throws `not_found`, `edit_conflict`,
 * `name_taken`, `invalid_model_source_payload`, and what `requireConfirmation` does.
 */
export const updateSource = async (tx: Tx, id: string, input: SourcePatch, doing: Doing): Promise<StoredSource> => {
  const { expectedVersion, apiKey, models, addModels, ...patch } = input
  const before = await getSource(tx, id)
  requireVersion(expectedVersion, sourceVersion(before))
  if (patch.name !== undefined) await requireFreeName(tx, patch.name, id)
  const setsKey = apiKey !== undefined && !(!apiKey && before.apiKeySealed === null)
  const isElsewhere = patch.baseUrl !== undefined && patch.baseUrl !== before.baseUrl
  if (setsKey || isElsewhere) doing.requireConfirmation()
  const isOtherServer = patch.baseUrl !== undefined && new URL(patch.baseUrl).origin !== new URL(before.baseUrl).origin
  if (isOtherServer && before.apiKeySealed !== null && !setsKey) throw keyRequired()
  const changes = getChanges(before, getColumns(patch))
  const columns = {
    ...changes,
    ...(setsKey && { apiKeySealed: sealKey(id, apiKey, doing) }),
    ...((setsKey || isElsewhere) && ({ health: 'unknown', healthCode: null, healthAt: null, lastTest: null } as const)),
  }
  if (models) await replaceModels(tx, id, models, doing)
  if (addModels) await insertModels(tx, id, missingIn((await getSource(tx, id)).models, addModels), doing)
  const changed = Object.keys(getChanges(settable(before), settable({ ...(await getSource(tx, id)), ...columns })))
  if (changed.length === 0) return before
  await tx
    .update(modelSources)
    .set({ ...columns, updatedAt: doing.actor.at })
    .where(eq(modelSources.id, id))
    .run()
  await append(tx, doing.actor, 'model_source_updated', {
    target: id,
    details: { changed, ...(isElsewhere && { baseUrl: { from: before.baseUrl, to: patch.baseUrl } }) },
  })
  notice(tx, 'sources')
  return getSource(tx, id)
}

/** Its log rows stay with its id. A key limited to this source has none left. Throws `not_found`. */
export const deleteSource = async (tx: Tx, id: string, actor: Actor): Promise<void> => {
  const { name } = await getSource(tx, id)
  await tx.delete(modelSources).where(eq(modelSources.id, id)).run()
  await unassignSource(tx, id)
  await append(tx, actor, 'model_source_deleted', { target: id, details: { name } })
  notice(tx, 'sources')
}

const unassignSource = async (tx: Tx, id: string): Promise<void> => {
  const others = sql`SELECT json_group_array(value) FROM json_each(${apiKeys.assignedSourceIds}) WHERE value <> ${id}`
  const isAssigned = sql`${id} IN (SELECT value FROM json_each(${apiKeys.assignedSourceIds}))`
  const { changes } = await tx
    .update(apiKeys)
    .set({ assignedSourceIds: sql`(${others})` })
    .where(isAssigned)
    .run()
  if (changes > 0) notice(tx, 'keys')
}

const keyRequired = (): AppError =>
  new AppError('invalid_model_source_payload', {
    param: 'apiKey',
    details: { fields: { apiKey: ['Enter the API key again, because the base URL is on another server.'] } },
  })

const DEFAULT_TIMEOUT_SECONDS = 600

/** Without name, address, key and models. */
const getColumns = (
  input: Omit<SourcePatch, 'expectedVersion' | 'models' | 'addModels' | 'apiKey'>,
): Partial<SourceRow> => {
  const { supportsChatCompletions, supportsAudioTranscriptions, timeoutSeconds, maxConcurrency } = input
  const { name, baseUrl, supportsResponses, supportsEmbeddings, isEnabled } = input
  return {
    ...(name !== undefined && { name }),
    ...(baseUrl !== undefined && { baseUrl }),
    ...(supportsChatCompletions !== undefined && { supportsChat: supportsChatCompletions }),
    ...(supportsResponses !== undefined && { supportsResponses }),
    ...(supportsAudioTranscriptions !== undefined && { supportsAudio: supportsAudioTranscriptions }),
    ...(supportsEmbeddings !== undefined && { supportsEmbeddings }),
    ...(timeoutSeconds !== undefined && { timeoutSeconds: timeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS }),
    ...(maxConcurrency !== undefined && { maxConcurrency: maxConcurrency ?? 0 }),
    ...(isEnabled !== undefined && { isEnabled }),
  }
}

const sealKey = (id: string, key: string | null | undefined, { sealer }: Pick<Doing, 'sealer'>): string | null =>
  key ? sealer.seal(key, keyContext(id)) : null

const requireFreeName = async (db: Db, name: string, own: string | null): Promise<void> => {
  const isOther = own === null ? undefined : ne(modelSources.id, own)
  const taken = await db
    .select({ id: modelSources.id })
    .from(modelSources)
    .where(and(eq(modelSources.name, name), isOther))
    .get()
  if (taken) throw new AppError('name_taken', { param: 'name' })
}

/** Models that stay keep their id and date. */
const replaceModels = async (
  tx: Tx,
  sourceId: string,
  models: readonly SourceModelInput[],
  doing: Doing,
): Promise<void> => {
  const before = new Map((await getSource(tx, sourceId)).models.map((row) => [row.model, row]))
  await tx.delete(sourceModels).where(eq(sourceModels.sourceId, sourceId)).run()
  await insertModels(tx, sourceId, models, { ...doing, before })
}

interface Inserting extends Pick<Doing, 'actor' | 'random'> {
  before?: ReadonlyMap<string, SourceModelRow>
}

const insertModels = async (
  tx: Tx,
  sourceId: string,
  models: readonly SourceModelInput[],
  { actor, random, before = new Map() }: Inserting,
): Promise<void> => {
  for (const { rawMetadataJson, ...columns } of models) {
    const kept = before.get(columns.model)
    await tx
      .insert(sourceModels)
      .values({
        ...columns,
        metadata: rawMetadataJson ?? null,
        id: kept?.id ?? random.id('smd'),
        sourceId,
        createdAt: kept?.createdAt ?? actor.at,
        updatedAt: actor.at,
      })
      .run()
  }
}

const missingIn = (rows: readonly SourceModelRow[], models: readonly SourceModelInput[]): SourceModelInput[] =>
  models.filter(({ model }) => !rows.some((row) => row.model === model))
