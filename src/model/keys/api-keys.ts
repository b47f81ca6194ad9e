/** API keys as rows: create, change, regenerate and delete, each in one commit with its audit row. */
import { and, asc, eq, inArray, sql } from 'drizzle-orm'
import { type Db, notice, type Tx } from '../../../db/commit.ts'
import { accounts } from '../../../db/schema/accounts.ts'
import { apiKeyLimits, apiKeys, CLAUDE_SIZES, type ClaudeModels } from '../../../db/schema/keys.ts'
import { users } from '../../../db/schema/people.ts'
import { modelSources } from '../../../db/schema/sources.ts'
import { AppError } from '../../errors.ts'
import type { Random } from '../../lib/random.ts'
import { isSameValue } from '../../lib/same-value.ts'
import { type Actor, append } from '../audit/audit.ts'
import { getChanges } from '../audit/changes-of.ts'
import { requireClaudeModels } from '../catalog/claude-models-check.ts'
import { isFastTier } from '../catalog/service-tier.ts'
import { getVersion, requireVersion } from '../edit-version.ts'
import { findPerson, type UserRow } from '../users/people.ts'
import { keyInScope, type ViewScope } from '../users/view-scope.ts'
import type { KeyPatch, NewKey } from './key-input.ts'
import {
  getLimits,
  type KeptLimit,
  LIMIT_ORDER,
  type LimitRow,
  limitIdentity,
  replaceLimits,
  restoreUse,
  zeroLimits,
} from './key-limits.ts'
import { endKeySessions } from './key-sessions.ts'

type KeyRow = typeof apiKeys.$inferSelect
/** A key with its limits, ordered by type, window and model, and its owner. */
export type StoredKey = KeyRow & { limits: LimitRow[]; owner: KeyOwner | null }
type KeyOwner = Pick<UserRow, 'id' | 'username' | 'status'>
/** Contains the key itself, which is never stored. */
export type IssuedKey = { row: StoredKey; key: string }

interface Doing {
  actor: Actor
  /** Keys outside it do not exist for this actor. */
  scope: ViewScope
  random: Random
  /** Called before a key is given to another owner; absent: allowed. */
  requireAssign?: () => void
}

const PLAIN_PREFIX = 'sk-clb-'
const SECRET_BYTES = 32
const SHOWN_LENGTH = 15

/** Hex SHA-256 of the whole key: 256 random bits need neither salt nor stretching. */
export const hashKey = (key: string): string => Bun.CryptoHasher.hash('sha256', key, 'hex')

/** The keys in scope, oldest first. */
export const listKeys = async (db: Db, scope: ViewScope): Promise<StoredKey[]> => {
  const limits = Map.groupBy(
    await db
      .select()
      .from(apiKeyLimits)
      .orderBy(...LIMIT_ORDER)
      .all(),
    (limit) => limit.keyId,
  )
  const rows = await db
    .select({ key: apiKeys, owner: OWNER })
    .from(apiKeys)
    .leftJoin(users, eq(users.id, apiKeys.ownerUserId))
    .where(keyInScope(scope))
    .orderBy(asc(apiKeys.createdAt), asc(apiKeys.id))
    .all()
  return rows.map(({ key, owner }) => ({ ...key, owner, limits: limits.get(key.id) ?? [] }))
}

/** A value that changes with the keys in scope, their limits, and each of their requests. */
export const keysState = async (db: Db, scope: ViewScope): Promise<string> =>
  getVersion((await listKeys(db, scope)).map((key) => JSON.stringify(key)))

/** Throws `not_found`, also for a key outside `scope`. */
export const getKey = async (db: Db, id: string, scope: ViewScope): Promise<StoredKey> => {
  const row = await db
    .select({ key: apiKeys, owner: OWNER })
    .from(apiKeys)
    .leftJoin(users, eq(users.id, apiKeys.ownerUserId))
    .where(and(eq(apiKeys.id, id), keyInScope(scope)))
    .get()
  if (!row) throw new AppError('not_found', { message: 'API key not found.' })
  return { ...row.key, owner: row.owner, limits: await getLimits(db, id) }
}

/** The version of what can be set, not of usage. */
export const keyVersion = (row: StoredKey): string => getVersion(Object.values(settable(row)))

const settable = (row: StoredKey) => ({
  ...getPolicy(row),
  name: row.name,
  isActive: [row.isActive, row.deactivatedReason],
  ownerUserId: row.ownerUserId,
  expiresAt: row.expiresAt,
  limits: row.limits.map((limit) => [limitIdentity(limit), limit.maxValue]),
})

/** What a key allows and enforces, stored and shown alike. */
export const getPolicy = (row: StoredKey) => ({
  allowedModels: row.allowedModels,
  applyToCodexModel: row.applyToCodexModel,
  enforcedModel: row.enforcedModel,
  enforcedReasoningEffort: row.enforcedReasoningEffort,
  allowedReasoningEfforts: row.allowedReasoningEfforts,
  enforcedServiceTier: row.enforcedServiceTier,
  prohibitFastMode: row.prohibitFastMode,
  claudeModels: row.claudeModels,
  holderMayRegenerate: row.holderMayRegenerate,
  trafficClass: row.trafficClass,
  transportPolicyOverride: row.transportPolicyOverride,
  usageSections: row.usageSections,
  assignedAccountIds: row.assignedAccountIds,
  assignedTags: row.assignedTags,
  assignedSourceIds: row.assignedSourceIds,
  allowOverflow: row.allowOverflow,
})

const OWNER = { id: users.id, username: users.username, status: users.status }

/**
 * The key belongs to its creator unless `ownerUserId` is given. Throws `validation_error` for contradictory fields or
 * an unknown account, what `requireAssign` does, and `authentication_required` for a creator who was disabled.
 */
export const createKey = async (tx: Tx, input: NewKey, doing: Doing): Promise<IssuedKey> => {
  const { key, ...secret } = newSecret(doing.random)
  const id = await insertKey(tx, input, secret, doing)
  return { row: await getKey(tx, id, doing.scope), key }
}

/** A key of another program, with the use of its limits. Only its hash is known. */
export interface ImportedKey {
  input: NewKey
  secret: Pick<KeyRow, 'keyHash' | 'keyPrefix'>
  isActive: boolean
  limits: readonly KeptLimit[]
}

/** Like `createKey`, but clients keep using their existing key. Returns the ID, or null if the key already exists. */
export const importKey = async (
  tx: Tx,
  { input, secret, isActive, limits }: ImportedKey,
  doing: Doing,
): Promise<string | null> => {
  const isSame = eq(apiKeys.keyHash, secret.keyHash)
  if (await tx.select({ id: apiKeys.id }).from(apiKeys).where(isSame).get()) return null
  const id = await insertKey(tx, input, secret, doing)
  await restoreUse(tx, id, limits)
  if (!isActive) await tx.update(apiKeys).set({ isActive, deactivatedReason: 'manual' }).where(eq(apiKeys.id, id)).run()
  return id
}

const insertKey = async (tx: Tx, input: NewKey, secret: ImportedKey['secret'], doing: Doing): Promise<string> => {
  const { actor, random, requireAssign } = doing
  await requireValid(tx, input)
  const maker = await getMaker(tx, actor)
  const ownerUserId = input.ownerUserId === undefined ? maker : input.ownerUserId
  if (ownerUserId !== maker) await requireOwner(tx, ownerUserId, requireAssign)
  const id = random.id('key')
  await tx
    .insert(apiKeys)
    .values({ ...getColumns(input), ...secret, id, name: input.name, ownerUserId, createdAt: actor.at })
    .run()
  await replaceLimits(tx, id, input.limits ?? [], { random, now: actor.at })
  await append(tx, actor, 'api_key_created', { target: id, details: { name: input.name, ownerUserId } })
  notice(tx, 'keys')
  return id
}

/** Null for actors without a user. A user may have been deleted since the gate, and would leave a key without owner. */
const getMaker = async (db: Db, { id }: Actor): Promise<string | null> => {
  const person = await findPerson(db, id)
  if (id.startsWith('usr_') && person?.row.status !== 'active') throw new AppError('authentication_required')
  return person?.row.id ?? null
}

/**
 * Applies `patch`; unchanged values are ignored, and kept limits keep their use. Throws `not_found`, `edit_conflict`,
 * what `requireAssign` does for a new owner, and `validation_error`, also when activating a key whose owner is disabled.
 */
export const updateKey = async (tx: Tx, id: string, input: KeyPatch, doing: Doing): Promise<StoredKey> => {
  const { actor, scope, random, requireAssign } = doing
  const { expectedVersion, ...patch } = input
  const before = await getKey(tx, id, scope)
  requireVersion(expectedVersion, keyVersion(before))
  const { ownerUserId } = patch
  if (ownerUserId !== undefined && ownerUserId !== before.ownerUserId)
    await requireOwner(tx, ownerUserId, requireAssign)
  const columns = { ...getColumns(patch), ...activation(before, patch) }
  const newAccounts = patch.assignedAccountIds?.filter((account) => !before.assignedAccountIds?.includes(account))
  const newSources = patch.assignedSourceIds?.filter((source) => !before.assignedSourceIds?.includes(source))
  const newClaudeModels = isSameValue(columns.claudeModels, before.claudeModels) ? null : columns.claudeModels
  // the stored lists may contain what was deleted
  const changed = { assignedAccountIds: newAccounts, assignedSourceIds: newSources, claudeModels: newClaudeModels }
  await requireValid(tx, { ...before, ...columns, ...changed })
  if (Object.values(columns).some((value) => value !== undefined))
    await tx.update(apiKeys).set(columns).where(eq(apiKeys.id, id)).run()
  if (patch.limits) await replaceLimits(tx, id, patch.limits, { random, now: actor.at })
  if (patch.resetUsage) await zeroLimits(tx, id)
  const after = await getKey(tx, id, scope)
  if (!after.isActive) await endKeySessions(tx, after.keyHash)
  const names = Object.keys(getChanges(settable(before), settable(after)))
  if (patch.resetUsage) names.push('resetUsage')
  if (names.length === 0) return after
  await append(tx, actor, 'api_key_updated', { target: id, details: { changed: names } })
  notice(tx, 'keys')
  return after
}

/**
 * Creates a new secret for the same key, keeping policy and usage; the old one stops working immediately. Throws
 * `not_found`.
 */
export const regenerateKey = async (tx: Tx, id: string, { actor, scope, random }: Doing): Promise<IssuedKey> => {
  const { name, keyHash } = await getKey(tx, id, scope)
  const { key, ...secret } = newSecret(random)
  await endKeySessions(tx, keyHash)
  await tx.update(apiKeys).set(secret).where(eq(apiKeys.id, id)).run()
  await append(tx, actor, 'api_key_regenerated', { target: id, details: { name } })
  notice(tx, 'keys')
  return { row: await getKey(tx, id, scope), key }
}

/** Its log rows stay with its id. Throws `not_found`. */
export const deleteKey = async (
  tx: Tx,
  id: string,
  { actor, scope }: Pick<Doing, 'actor' | 'scope'>,
): Promise<void> => {
  const { name, keyHash } = await getKey(tx, id, scope)
  await endKeySessions(tx, keyHash)
  await tx.delete(apiKeys).where(eq(apiKeys.id, id)).run()
  await append(tx, actor, 'api_key_deleted', { target: id, details: { name } })
  notice(tx, 'keys')
}

/** Call in the commit that deletes the account. A key assigned only to this account has none left. */
export const unassignAccount = async (tx: Tx, accountId: string): Promise<void> => {
  const others = sql`SELECT json_group_array(value) FROM json_each(${apiKeys.assignedAccountIds}) WHERE value <> ${accountId}`
  const isAssigned = sql`${accountId} IN (SELECT value FROM json_each(${apiKeys.assignedAccountIds}))`
  const { changes } = await tx
    .update(apiKeys)
    .set({ assignedAccountIds: sql`(${others})` })
    .where(isAssigned)
    .run()
  if (changes > 0) notice(tx, 'keys')
}

const newSecret = (random: Random) => {
  const key = PLAIN_PREFIX + random.token(SECRET_BYTES)
  return { key, keyHash: hashKey(key), keyPrefix: key.slice(0, SHOWN_LENGTH) }
}

/** Leaves out what is not a column. Empty lists of models and tags, and choices of no Claude model, become null. */
const getColumns = (input: Partial<NewKey>): Partial<KeyRow> => {
  const { limits, allowedModels, assignedTags, claudeModels, isActive, resetUsage, ...columns }: KeyPatch = input
  return {
    ...columns,
    ...(allowedModels !== undefined && { allowedModels: allowedModels?.length ? allowedModels : null }),
    ...(assignedTags !== undefined && { assignedTags: assignedTags?.length ? assignedTags : null }),
    ...(claudeModels !== undefined && { claudeModels: hasChoice(claudeModels) ? claudeModels : null }),
  }
}

const hasChoice = (claudeModels: ClaudeModels | null): boolean => Object.values(claudeModels ?? {}).some(Boolean)

/** A manual revocation also replaces one caused by the owner, so that it does not end when the owner is enabled again. */
const activation = (before: StoredKey, { isActive, ownerUserId }: KeyPatch): Partial<KeyRow> => {
  const isOwnerKept = ownerUserId === undefined || ownerUserId === before.ownerUserId
  // It was disabled with its previous owner and must not become active with the new one.
  if (isActive === undefined)
    return !isOwnerKept && before.deactivatedReason === 'owner_disabled' ? { deactivatedReason: 'manual' } : {}
  if (isActive && isOwnerKept && before.owner !== null && before.owner.status !== 'active')
    throw invalid({ isActive: ['The owner of this key is disabled.'] })
  return { isActive, deactivatedReason: isActive ? null : 'manual' }
}

/** An owner must be an active user, or null. Throws `validation_error`, and what `requireAssign` does. */
const requireOwner = async (db: Db, ownerUserId: string | null, requireAssign?: () => void): Promise<void> => {
  requireAssign?.()
  if (ownerUserId !== null && (await findPerson(db, ownerUserId))?.row.status !== 'active')
    throw invalid({ ownerUserId: ['There is no active account of this id.'] })
}

const requireValid = async (db: Db, policy: Partial<KeyRow>): Promise<void> => {
  const { allowedModels, enforcedModel } = policy
  if (allowedModels?.length && enforcedModel && !allowedModels.includes(enforcedModel))
    throw invalid({ enforcedModel: ['The enforced model is not among the allowed models.'] })
  if (policy.enforcedReasoningEffort && policy.allowedReasoningEfforts)
    throw invalid({ allowedReasoningEfforts: ['A key enforces one reasoning effort or allows a list, not both.'] })
  const isProhibited = policy.prohibitFastMode === 'strip' || policy.prohibitFastMode === 'refuse'
  if (isProhibited && isFastTier(policy.enforcedServiceTier))
    throw invalid({ prohibitFastMode: ['The key enforces a fast service tier. Choose another tier first.'] })
  const chosen = CLAUDE_SIZES.flatMap((size) => policy.claudeModels?.[size]?.model ?? [])
  const barred = allowedModels?.length ? chosen.filter((model) => !allowedModels.includes(model)) : []
  if (barred.length > 0)
    throw invalid({ claudeModels: barred.map((model) => `The model “${model}” is not among the allowed models.`) })
  await requireClaudeModels(db, policy.claudeModels)
  const unknown = await unknownIds(db, accounts, policy.assignedAccountIds)
  if (unknown.length > 0) throw invalid({ assignedAccountIds: unknown.map((id) => `There is no account ${id}.`) })
  const unknownSources = await unknownIds(db, modelSources, policy.assignedSourceIds)
  if (unknownSources.length > 0)
    throw invalid({ assignedSourceIds: unknownSources.map((id) => `There is no model source ${id}.`) })
}

const unknownIds = async (
  db: Db,
  table: typeof accounts | typeof modelSources,
  ids: readonly string[] | null = [],
): Promise<string[]> => {
  if (!ids?.length) return []
  const known = await db
    .select({ id: table.id })
    .from(table)
    .where(inArray(table.id, [...ids]))
    .all()
  return ids.filter((id) => !known.some((row) => row.id === id))
}

const invalid = (fields: Record<string, string[]>): AppError =>
  new AppError('validation_error', { param: Object.keys(fields)[0], details: { fields } })
