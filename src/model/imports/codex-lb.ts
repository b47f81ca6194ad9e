/**
 * Reads the database of codex-lb (`store.db`, with `encryption.key`): accounts, API keys, settings and the firewall
 * list. The columns are from its public schema.
 */
import type { Database } from 'bun:sqlite'
import { ROUTING_POLICIES } from '../../../db/schema/accounts.ts'
import { AppError } from '../../errors.ts'
import type { Clock } from '../../lib/clock.ts'
import { openFernet } from '../../lib/fernet.ts'
import { inSlices } from '../../lib/slices.ts'
import { type SettingName, Settings } from '../../settings/schema.ts'
import { getIdentity, type ImportedAccount, UNKNOWN_PLAN, unusableField } from '../accounts/auth-json.ts'
import { readHistory } from './codex-lb-history.ts'
import { asText, asTime, type CodexLbRow, getRows, readCodexLbKeys, requireCodexLb } from './codex-lb-rows.ts'
import { type AccountExtras, type Found, type FoundAccount, type FoundSetting, found, type LeftOut } from './found.ts'

interface Reading {
  /** The file name for messages. */
  name: string
  /** The content of `encryption.key`. Null if it was not provided. */
  key: Buffer | null
  clock: Pick<Clock, 'sleep' | 'now'>
  /** The ID up to which the request log of an installation was imported before. */
  readImportedUpTo: (origin: string) => Promise<number>
}

/**
 * `store` must be a private copy that nothing writes to. Throws `invalid_import` for another program's database, an
 * unsupported schema, a missing key, and a key that decrypts none of the tokens.
 */
export const readCodexLb = async (store: Database, { name, key, clock, readImportedUpTo }: Reading): Promise<Found> => {
  requireCodexLb(store, name)
  const rows = getRows(store, 'accounts').filter((row) => asText(row.delete_requested_at) === null)
  if (key === null)
    throw refuse(name, 'is encrypted. Add the file encryption.key, which codex-lb keeps in the same folder.')
  const accounts = await inSlices(clock, rows, async (slice) => slice.map((row) => readAccount(row, key)), ROWS)
  if (rows.length > 0 && accounts.every(({ problem }) => problem === WRONG_KEY))
    throw refuse(
      name,
      'cannot be decrypted: encryption.key belongs to another codex-lb. Use the one from the same folder.',
    )
  const { settings, leftOut } = readSettings(store)
  const origin = getOrigin(key)
  return found('codex-lb', name, {
    accounts,
    keys: readCodexLbKeys(store),
    settings,
    firewall: getRows(store, 'api_firewall_allowlist').flatMap((row) => asText(row.ip_address) ?? []),
    leftOut,
    history: await readHistory(store, { origin, after: await readImportedUpTo(origin), clock }),
    notes: ['Usage history and dashboard users of codex-lb are not imported.'],
  })
}

/** The key belongs to one installation. */
const getOrigin = (key: Buffer): string => new Bun.CryptoHasher('sha256').update(key).digest('hex').slice(0, 16)

/** Accounts per slice. Each has three tokens to decrypt; a slice takes a few milliseconds. */
const ROWS = 50

const WRONG_KEY = 'Its tokens were encrypted with another key.'

const readAccount = (row: CodexLbRow, key: Buffer): FoundAccount => {
  const label = asText(row.email) ?? asText(row.id) ?? 'An account'
  const base = {
    label,
    account: null,
    refreshToken: null,
    problem: null,
    extras: getExtras(row),
    foreignId: asText(row.id),
  }
  const [accessToken, refreshToken, idToken] = [
    openFernet(key, asBlob(row.access_token_encrypted)),
    openFernet(key, asBlob(row.refresh_token_encrypted)),
    openFernet(key, asBlob(row.id_token_encrypted)),
  ]
  if (accessToken === null || refreshToken === null || idToken === null) return { ...base, problem: WRONG_KEY }
  const account = { identity: getRowIdentity(row, idToken), tokens: { accessToken, refreshToken, idToken } }
  const problem = unusableField(account)
  if (problem) return { ...base, problem: `It is not usable: ${problem}.` }
  return { ...base, account: { ...account, lastRefreshAt: asTime(row.last_refresh) } }
}

/**
 * Prefers columns to the claims of the ID token, because they are newer. Only for the user ID the claim comes first:
 * that column was added later and may be empty in older rows.
 */
const getRowIdentity = (row: CodexLbRow, idToken: string): ImportedAccount['identity'] => {
  const claimed = getIdentity(idToken)
  return {
    email: asText(row.email) ?? claimed?.email ?? '',
    chatgptAccountId: asText(row.chatgpt_account_id) ?? claimed?.chatgptAccountId ?? null,
    chatgptUserId: claimed?.chatgptUserId ?? asText(row.chatgpt_user_id),
    planType: asText(row.plan_type) ?? claimed?.planType ?? UNKNOWN_PLAN,
    workspaceId: asText(row.workspace_id) ?? claimed?.workspaceId ?? null,
    workspaceLabel: asText(row.workspace_label) ?? claimed?.workspaceLabel ?? null,
    seatType: asText(row.seat_type) ?? claimed?.seatType ?? null,
  }
}

const STATES = ['paused', 'reauth_required', 'deactivated'] as const

const getExtras = (row: CodexLbRow): AccountExtras => {
  const alias = asText(row.alias)
  const routingPolicy = ROUTING_POLICIES.find((policy) => policy === row.routing_policy)
  const status = asText(row.status)?.toLowerCase() // early versions stored the names of the values, in capitals
  const state = STATES.find((one) => one === status)
  return {
    ...(alias !== null && { alias }),
    ...(routingPolicy && { routingPolicy }),
    ...(row.security_work_authorized === 1 && { securityWorkAuthorized: true }),
    ...(state && { state }),
  }
}

const asBlob = (value: unknown): string => {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('latin1')
  return asText(value) ?? ''
}

/** codex-lb column → Sluice setting, in the same unit. */
const SETTINGS: readonly [column: string, name: SettingName][] = [
  ['routing_strategy', 'routingStrategy'],
  ['prefer_earlier_reset_accounts', 'preferEarlierResetAccounts'],
  ['single_account_id', 'singleAccountId'],
  ['proxy_account_stream_limit', 'proxyAccountStreamLimit'],
  ['api_key_auth_enabled', 'apiKeyAuthEnabled'],
  ['hide_upstream_quota_from_api_keys', 'hideUpstreamQuotaFromApiKeys'],
]

const readSettings = (store: Database): { settings: FoundSetting[]; leftOut: LeftOut[] } => {
  const [row = {}] = getRows(store, 'dashboard_settings')
  const settings: FoundSetting[] = []
  const leftOut: LeftOut[] = []
  for (const [column, name] of SETTINGS) {
    const stored = row[column] ?? null
    if (stored === null) continue // unset, or a version without it
    const schema = Settings.shape[name]
    const value = schema.safeParse(stored).success ? stored : stored === 1 || stored === 0 ? stored === 1 : stored
    if (schema.safeParse(value).success) settings.push({ name, value })
    else
      leftOut.push({
        kind: 'setting',
        label: name,
        reason: `codex-lb has “${String(stored).slice(0, 60)}”, which Sluice does not have.`,
      })
  }
  return { settings, leftOut }
}

const refuse = (name: string, why: string): AppError =>
  new AppError('invalid_import', { message: `${name} ${why}`, param: name })
