/** The tables of codex-lb as rows, the check of its schema, and its API keys with their limits. */
import type { Database } from 'bun:sqlite'
import { LIMIT_TYPES, LIMIT_WINDOWS } from '../../../db/schema/keys.ts'
import { AppError } from '../../errors.ts'
import type { Clock } from '../../lib/clock.ts'
import { parseJson } from '../../lib/json.ts'
import { NewKey } from '../keys/key-input.ts'
import type { KeptLimit } from '../keys/key-limits.ts'
import type { FoundKey } from './found.ts'

/** One row. Columns that this version does not have are undefined. */
export type CodexLbRow = Readonly<Record<string, unknown>>

/** The columns that every supported version has. */
const NEEDED: Readonly<Record<string, readonly string[]>> = {
  accounts: [
    'id',
    'email',
    'plan_type',
    'status',
    'access_token_encrypted',
    'refresh_token_encrypted',
    'id_token_encrypted',
    'last_refresh',
  ],
  api_keys: ['id', 'name', 'key_hash', 'key_prefix', 'allowed_models', 'expires_at', 'is_active', 'created_at'],
  api_key_limits: [
    'api_key_id',
    'limit_type',
    'limit_window',
    'max_value',
    'current_value',
    'model_filter',
    'reset_at',
  ],
}

/** Throws `invalid_import` for another program's database, and for a schema without the required columns. */
export const requireCodexLb = (store: Database, name: string): void => {
  const refuse = (why: string): never => {
    throw new AppError('invalid_import', { message: `${name} ${why}`, param: name })
  }
  const tables = readTables(store, refuse)
  if (tables.has('request_hours') && tables.has('facts'))
    refuse('is a Sluice database. Run this on the other installation: sluice export accounts')
  if (!tables.has('accounts') || !tables.has('alembic_version'))
    refuse('is an SQLite database, but not from codex-lb: it has no tables accounts and alembic_version.')
  const revision = asText(getRows(store, 'alembic_version')[0]?.version_num) ?? 'none'
  for (const [table, columns] of Object.entries(NEEDED)) {
    const present = new Set(getColumns(store, table))
    const missing = columns.find((column) => !present.has(column))
    if (missing)
      refuse(
        `has a schema that Sluice cannot read (revision ${revision}): ${table}.${missing} is missing. Update codex-lb, start it once, stop it and try again. If codex-lb is up to date, update Sluice.`,
      )
  }
}

const readTables = (store: Database, refuse: (why: string) => never): Set<string> => {
  try {
    const rows = store.query<{ name: string }, []>("SELECT name FROM sqlite_master WHERE type = 'table'").all()
    return new Set(rows.map(({ name }) => name))
  } catch {
    return refuse('is damaged, or was copied while codex-lb wrote to it. Stop codex-lb and copy it again.')
  }
}

const getColumns = (store: Database, table: string): string[] =>
  store
    .query<{ name: string }, []>(`SELECT name FROM pragma_table_info('${table}')`)
    .all()
    .map(({ name }) => name)

/** Rejects views and computed columns: they run SQL from the file, which may never end. */
const isPlainTable = (store: Database, table: string): boolean => {
  const kind = store.query<{ type: string }, [string]>('SELECT type FROM sqlite_master WHERE name = ?').get(table)
  const computed = store.query(`SELECT 1 FROM pragma_table_xinfo('${table}') WHERE hidden <> 0`).get()
  return kind?.type === 'table' && computed === null
}

/** All rows of `table`, or none if this version does not have it. `table` must be one of the names in this file. */
export const getRows = (store: Database, table: string): CodexLbRow[] => {
  if (getColumns(store, table).length === 0) return []
  if (!isPlainTable(store, table))
    throw new AppError('invalid_import', { message: `${table} is not a table of codex-lb.` })
  try {
    return store.query<CodexLbRow, []>(`SELECT * FROM ${table}`).all()
  } catch (cause) {
    throw damaged(table, cause)
  }
}

const SLICE = 500
const PAUSE_MS = 2

/** Calls `each` for all rows of a table with an `id`, by `id`, with pauses: logs can have millions of rows. */
export const readInSlices = async (
  store: Database,
  table: 'request_logs',
  clock: Pick<Clock, 'sleep'>,
  each: (row: CodexLbRow) => void,
): Promise<void> => {
  if (!getColumns(store, table).includes('id')) return
  if (!isPlainTable(store, table))
    throw new AppError('invalid_import', { message: `${table} is not a table of codex-lb.` })
  const next = store.query<CodexLbRow, [number]>(`SELECT * FROM ${table} WHERE id > ? ORDER BY id LIMIT ${SLICE}`)
  try {
    for (let after = -1; ; ) {
      const rows = next.all(after)
      for (const row of rows) each(row)
      if (rows.length < SLICE) return
      after = Number(rows.at(-1)?.id)
      await clock.sleep(PAUSE_MS)
    }
  } catch (cause) {
    throw damaged(table, cause)
  }
}

const damaged = (table: string, cause: unknown): AppError =>
  new AppError('invalid_import', {
    message: `The table ${table} is damaged, or was copied while codex-lb wrote to it. Stop codex-lb and copy the database again.`,
    cause,
  })

export const asText = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null)

/** ms since epoch: codex-lb stores UTC without a zone. */
export const asTime = (value: unknown): number | null => {
  const [, date, time] = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)/.exec(asText(value) ?? '') ?? []
  const at = Date.parse(`${date}T${time}Z`)
  return Number.isNaN(at) ? null : at
}

export const readCodexLbKeys = (store: Database): FoundKey[] => {
  const limits = Map.groupBy(getRows(store, 'api_key_limits'), (row) => String(row.api_key_id))
  const accounts = Map.groupBy(getRows(store, 'api_key_accounts'), (row) => String(row.api_key_id))
  return getRows(store, 'api_keys').map((row) => {
    const id = String(row.id)
    const assigned = (accounts.get(id) ?? []).flatMap(({ account_id: account }) => asText(account) ?? [])
    return readKey(row, limits.get(id) ?? [], assigned)
  })
}

const readKey = (row: CodexLbRow, limitRows: readonly CodexLbRow[], assigned: readonly string[]): FoundKey => {
  const label = asText(row.name) ?? 'A key'
  const hash = (asText(row.key_hash) ?? '').toLowerCase()
  const limits = limitRows.map(readLimit)
  const usable = limits.flatMap((limit) => (typeof limit === 'string' ? [] : [limit]))
  const problem = limits.find((limit) => typeof limit === 'string' && limit !== INERT)
  const input = NewKey.safeParse({
    name: label,
    allowedModels: asList(row.allowed_models),
    applyToCodexModel: row.apply_to_codex_model === 1,
    enforcedModel: asText(row.enforced_model),
    enforcedReasoningEffort: asText(row.enforced_reasoning_effort),
    allowedReasoningEfforts: asList(row.allowed_reasoning_efforts),
    enforcedServiceTier: asText(row.enforced_service_tier),
    trafficClass: asText(row.traffic_class) ?? 'foreground',
    transportPolicyOverride: asText(row.transport_policy_override),
    usageSections: getSections(row.usage_sections),
    expiresAt: toIso(asTime(row.expires_at)),
    limits: usable.map(({ currentValue, resetAt, ...limit }) => limit),
  })
  const base = { label, hash, prefix: asText(row.key_prefix) ?? '', isActive: row.is_active !== 0, limits: usable }
  const field = input.error?.issues[0]?.path.join('.')
  return {
    ...base,
    input: input.data ?? { name: label },
    foreignAccountIds: row.account_assignment_scope_enabled === 1 ? assigned : null,
    notes: getNotes(row, limits),
    problem: !/^[0-9a-f]{64}$/.test(hash)
      ? 'Its hash is not a SHA-256.'
      : field
        ? `Sluice has no equivalent of its ${field}, so the key would have different rights.`
        : typeof problem === 'string'
          ? problem
          : null,
  }
}

const getNotes = (row: CodexLbRow, limits: readonly (KeptLimit | string)[]): string[] => [
  ...(limits.includes(INERT) ? ['Its credit limit is left out, because codex-lb never enforced it.'] : []),
  ...(row.source_assignment_scope_enabled === 1 ? ['It was limited to model sources, which are not imported.'] : []),
]

const INERT = 'credits'

/** Window names of early versions. */
const EARLY_WINDOWS: Readonly<Record<string, string>> = { five_hours: '5h', seven_days: '7d' }

/** Returns the limit, or the reason it can't be used. */
const readLimit = (row: CodexLbRow): KeptLimit | string => {
  const type = (asText(row.limit_type) ?? '').toLowerCase()
  const window = (asText(row.limit_window) ?? '').toLowerCase()
  if (type === INERT) return INERT
  const limitType = LIMIT_TYPES.find((one) => one === type)
  const limitWindow = LIMIT_WINDOWS.find((one) => one === (EARLY_WINDOWS[window] ?? window))
  const resetAt = asTime(row.reset_at)
  const { max_value: maxValue, current_value: currentValue } = row
  if (!limitType || !limitWindow || resetAt === null || typeof maxValue !== 'number')
    return `It has a limit that Sluice does not know (${type || 'no type'}, ${window || 'no window'}).`
  const used = typeof currentValue === 'number' ? Math.max(0, currentValue) : 0
  return { limitType, limitWindow, maxValue, modelFilter: asText(row.model_filter) ?? '', currentValue: used, resetAt }
}

const asList = (value: unknown): unknown => {
  const list = parseJson(asText(value) ?? 'null')
  return Array.isArray(list) ? list : list === null ? null : undefined
}

const getSections = (value: unknown): string | undefined => {
  const text = asText(value)
  const list = text?.startsWith('[') ? parseJson(text) : null
  return Array.isArray(list) ? list.join(',') : (text ?? undefined)
}

const toIso = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString())
