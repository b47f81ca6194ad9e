/** Settings as rows: only values that differ from the default are stored, and each change increments one version. */
import { eq, inArray, sql } from 'drizzle-orm'
import { type Db, notice, type Tx } from '../../db/commit.ts'
import { accounts } from '../../db/schema/accounts.ts'
import { egressPools } from '../../db/schema/egress.ts'
import { modelSources } from '../../db/schema/sources.ts'
import { facts, settings } from '../../db/schema/system.ts'
import { AppError } from '../errors.ts'
import { isSameValue } from '../lib/same-value.ts'
import { DEFAULTS, SETTING_NAMES, type SettingName, Settings } from './schema.ts'

const VERSION = 'settings_version'

export interface StoredSettings {
  values: Readonly<Settings>
  /** Increases with every change; sent back as `expectedVersion` to reject lost updates. */
  version: number
}

/**
 * The current settings: defaults overridden by stored rows. A row that does not fit its schema (from another version)
 * is replaced by the default and listed in `ignored`.
 */
export const readSettings = async (db: Db): Promise<StoredSettings & { ignored: string[] }> => {
  const values: Record<string, unknown> = { ...DEFAULTS }
  const ignored: string[] = []
  for (const row of await db.select().from(settings).all()) {
    const field = isSettingName(row.key) ? Settings.shape[row.key] : undefined
    if (field?.safeParse(row.value).success) values[row.key] = row.value
    else ignored.push(row.key)
  }
  return { values: Object.freeze(Settings.parse(values)), version: await readVersion(db), ignored }
}

interface Writing {
  /** ms since epoch */
  now: number
  /** The version the patch is based on. */
  expectedVersion?: number
  /** Only later changes to settings in the patch conflict; otherwise any change does. */
  isPartial?: boolean
}

/**
 * Stores a patch and returns the settings that changed. Throws `settings_conflict` when `expectedVersion` is outdated,
 * `validation_error` when the merged settings are invalid,
 * `proxy_pool_not_found`.
 */
export const writeSettings = async (tx: Tx, patch: Partial<Settings>, writing: Writing): Promise<SettingName[]> => {
  const { now } = writing
  const before = await readSettings(tx)
  await requireVersion(tx, patch, { ...writing, version: before.version })
  const after = Settings.parse({ ...before.values, ...patch })
  requireConsistent(after)
  const changed = SETTING_NAMES.filter((name) => !isSameValue(after[name], before.values[name]))
  if (changed.includes('singleAccountId')) await requireAccount(tx, after.singleAccountId)
  if (changed.includes('egressDefaultPoolId')) await requirePool(tx, after.egressDefaultPoolId)
  if (changed.includes('overflowSourceId')) await requireSource(tx, after.overflowSourceId)
  for (const key of changed) await storeOne(tx, key, after[key], now)
  if (changed.length > 0) {
    const versions = [VERSION, ...changed.map(versionName)].map((name) => ({ name, value: String(before.version + 1) }))
    await tx
      .insert(facts)
      .values(versions)
      .onConflictDoUpdate({ target: facts.name, set: { value: sql`excluded.value` } })
      .run()
    notice(tx, 'settings')
  }
  return changed
}

const requireVersion = async (
  db: Db,
  patch: Partial<Settings>,
  { expectedVersion, isPartial = false, version }: Writing & { version: number },
): Promise<void> => {
  if (expectedVersion === undefined || expectedVersion === version) return
  const isTouched = isPartial && expectedVersion < version ? await hasChanged(db, patch, expectedVersion) : true
  if (isTouched) throw new AppError('settings_conflict')
}

const hasChanged = async (db: Db, patch: Partial<Settings>, since: number): Promise<boolean> =>
  (
    await db
      .select()
      .from(facts)
      .where(inArray(facts.name, Object.keys(patch).map(versionName)))
      .all()
  ).some(({ value }) => Number(value) > since)

/** Stores the version of this setting's last change; missing: never changed, as far as known. */
const versionName = (key: string): string => `${VERSION}:${key}`

const storeOne = async (tx: Tx, key: SettingName, value: unknown, now: number) => {
  if (isSameValue(value, DEFAULTS[key])) await tx.delete(settings).where(eq(settings.key, key)).run()
  else
    await tx
      .insert(settings)
      .values({ key, value, updatedAt: now })
      .onConflictDoUpdate({ target: settings.key, set: { value, updatedAt: now } })
      .run()
}

const requireConsistent = (values: Settings) => {
  if (values.routingStrategy === 'single_account' && !values.singleAccountId)
    throw new AppError('validation_error', {
      message: 'The single-account strategy needs singleAccountId.',
      details: { fields: { singleAccountId: ['is needed by the single_account strategy'] } },
    })
}

const requireAccount = async (tx: Tx, id: string | null): Promise<void> => {
  const isThere = id === null || (await tx.select().from(accounts).where(eq(accounts.id, id)).get())
  if (!isThere)
    throw new AppError('validation_error', {
      message: `There is no account "${id}".`,
      details: { fields: { singleAccountId: ['is not an account'] } },
    })
}

const requirePool = async (tx: Tx, id: string | null): Promise<void> => {
  const isThere = id === null || (await tx.select().from(egressPools).where(eq(egressPools.id, id)).get())
  if (!isThere) throw new AppError('proxy_pool_not_found', { param: 'egressDefaultPoolId' })
}

const requireSource = async (tx: Tx, id: string | null): Promise<void> => {
  const isThere = id === null || (await tx.select().from(modelSources).where(eq(modelSources.id, id)).get())
  if (!isThere)
    throw new AppError('validation_error', {
      message: `There is no model source "${id}".`,
      details: { fields: { overflowSourceId: ['is not a model source'] } },
    })
}

const readVersion = async (db: Db): Promise<number> => {
  const row = await db.select().from(facts).where(eq(facts.name, VERSION)).get()
  return row ? Number(row.value) : 1
}

const isSettingName = (name: string): name is SettingName => name in DEFAULTS
