/** The sign-in methods, and what happens to new users announced by the reverse proxy. */
import { eq } from 'drizzle-orm'
import { type Db, notice, type Tx } from '../../../db/commit.ts'
import { authProviders } from '../../../db/schema/people.ts'
import type { Config } from '../../boot/env.ts'
import { AppError } from '../../errors.ts'
import { append } from '../audit/audit.ts'
import { getChanges } from '../audit/changes-of.ts'
import { type Caller, requireGrantable } from './delegation.ts'
import { ADMIN_ROLE_ID, getRole } from './roles.ts'

export type ProviderRow = typeof authProviders.$inferSelect
const PROXY_PROVIDER_ID = 'idp_trusted_header'
const PASSWORD_PROVIDER_ID = 'idp_password'

const UNTOUCHED = {
  unknownIdentityRoleId: null,
  linkByEmail: false,
  idpMfaEnforced: false,
  createdAt: 0,
  updatedAt: 0,
} as const

/** Defaults: new identities become Admin (spec §2). */
const DEFAULTS: readonly ProviderRow[] = [
  { ...UNTOUCHED, id: PASSWORD_PROVIDER_ID, kind: 'password', label: 'Password' },
  {
    ...UNTOUCHED,
    id: PROXY_PROVIDER_ID,
    kind: 'trusted_header',
    label: 'Reverse proxy',
    unknownIdentityRoleId: ADMIN_ROLE_ID,
  },
]

export const listProviders = async (db: Db): Promise<ProviderRow[]> => {
  const stored = new Map((await db.select().from(authProviders).all()).map((row) => [row.id, row]))
  return DEFAULTS.map((row) => stored.get(row.id) ?? row)
}

/** Whether the authentication mode uses this method. */
export const isActive = ({ kind }: ProviderRow, mode: AuthMode): boolean =>
  kind === 'trusted_header' ? mode === 'trusted_header' : mode !== 'disabled'

export const activeProviders = async (db: Db, mode: AuthMode): Promise<ProviderRow[]> =>
  (await listProviders(db)).filter((row) => isActive(row, mode))

/** The provider of this id, by default the reverse proxy. Throws `provider_not_found`. */
export const getProvider = async (db: Db, id = PROXY_PROVIDER_ID): Promise<ProviderRow> => {
  const provider =
    (await db.select().from(authProviders).where(eq(authProviders.id, id)).get()) ??
    DEFAULTS.find((row) => row.id === id)
  if (!provider) throw new AppError('provider_not_found')
  return provider
}

type AuthMode = Config['DASHBOARD_AUTH_MODE']

type ProviderPatch = Partial<Pick<ProviderRow, 'label' | 'unknownIdentityRoleId' | 'linkByEmail' | 'idpMfaEnforced'>>

/**
 * Applies to identities that arrive later; unchanged values are ignored. `unknownIdentityRoleId` is a slug or an id,
 * null: reject unknown users. Throws `provider_not_found`, `role_not_found`, `role_not_assignable`,
 * `insufficient_delegation`, `validation_error`.
 */
export const updateProvider = async (
  tx: Tx,
  id: string,
  patch: ProviderPatch,
  caller: Caller,
): Promise<ProviderRow> => {
  const before = await getProvider(tx, id)
  const { actor } = caller
  requireFitting(before, patch)
  const change = getChanges(before, { ...patch, ...(await roleChange(tx, before, patch, caller)) })
  if (Object.keys(change).length === 0) return before
  const row = { ...before, ...change, createdAt: before.createdAt || actor.at, updatedAt: actor.at }
  await tx.insert(authProviders).values(row).onConflictDoUpdate({ target: authProviders.id, set: row }).run()
  await append(tx, actor, 'provider_updated', { target: row.id, details: { changed: Object.keys(change), to: change } })
  notice(tx, 'people')
  return row
}

/** A form also posts the unchanged role; only a new one must be grantable by the caller. */
const roleChange = async (
  tx: Tx,
  before: ProviderRow,
  { unknownIdentityRoleId: wanted }: ProviderPatch,
  caller: Caller,
) => {
  if (wanted === undefined || wanted === null) return {}
  const role = await getRole(tx, wanted)
  if (role.id !== before.unknownIdentityRoleId) requireGrantable(caller, role)
  return { unknownIdentityRoleId: role.id }
}

/** Only the reverse proxy brings unknown users. */
const requireFitting = ({ kind }: ProviderRow, { label: _, ...rest }: ProviderPatch): void => {
  const names = Object.keys(rest)
  if (kind === 'trusted_header' || names.length === 0) return
  const fields = Object.fromEntries(names.map((name) => [name, ['is for the reverse proxy only']]))
  throw new AppError('validation_error', { param: names[0], details: { fields } })
}
