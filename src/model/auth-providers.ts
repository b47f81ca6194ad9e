/** The ways to sign in, and what becomes of people whom the reverse proxy announces first. */
import { eq } from 'drizzle-orm'
import { type Db, notice, type Tx } from '../../db/commit.ts'
import { authProviders } from '../../db/schema/people.ts'
import type { Config } from '../env.ts'
import { AppError } from '../errors.ts'
import { append } from './audit.ts'
import { changesOf } from './changes-of.ts'
import { type Caller, demandGrantable } from './delegation.ts'
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

/** As they are until somebody changes one: new identities become Admin (spec §2). */
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

export const listProviders = (db: Db): ProviderRow[] => {
  const stored = new Map(
    db
      .select()
      .from(authProviders)
      .all()
      .map((row) => [row.id, row]),
  )
  return DEFAULTS.map((row) => stored.get(row.id) ?? row)
}

/** The authentication mode lets people in this way. */
export const isActive = ({ kind }: ProviderRow, mode: AuthMode): boolean =>
  kind === 'trusted_header' ? mode === 'trusted_header' : mode !== 'disabled'

export const activeProviders = (db: Db, mode: AuthMode): ProviderRow[] =>
  listProviders(db).filter((row) => isActive(row, mode))

/** The reverse proxy's, or the one of this id. Throws `provider_not_found`. */
export const getProvider = (db: Db, id = PROXY_PROVIDER_ID): ProviderRow => {
  const provider =
    db.select().from(authProviders).where(eq(authProviders.id, id)).get() ?? DEFAULTS.find((row) => row.id === id)
  if (!provider) throw new AppError('provider_not_found')
  return provider
}

type AuthMode = Config['DASHBOARD_AUTH_MODE']

type ProviderPatch = Partial<Pick<ProviderRow, 'label' | 'unknownIdentityRoleId' | 'linkByEmail' | 'idpMfaEnforced'>>

/**
 * Holds for identities that arrive from now on; what stands already is no change. `unknownIdentityRoleId` is a slug or an id, null: refuse strangers.
 * Throws `provider_not_found`, `role_not_found`, `role_not_assignable`, `insufficient_delegation`, `validation_error`.
 */
export const updateProvider = (tx: Tx, id: string, patch: ProviderPatch, caller: Caller): ProviderRow => {
  const before = getProvider(tx, id)
  const { actor } = caller
  demandFitting(before, patch)
  const change = changesOf(before, { ...patch, ...roleChange(tx, before, patch, caller) })
  if (Object.keys(change).length === 0) return before
  const row = { ...before, ...change, createdAt: before.createdAt || actor.at, updatedAt: actor.at }
  tx.insert(authProviders).values(row).onConflictDoUpdate({ target: authProviders.id, set: row }).run()
  append(tx, actor, 'provider_updated', { target: row.id, details: { changed: Object.keys(change), to: change } })
  notice(tx, 'people')
  return row
}

/** A form posts the role that stands, too: only another one has to be the caller's to give. */
const roleChange = (tx: Tx, before: ProviderRow, { unknownIdentityRoleId: wanted }: ProviderPatch, caller: Caller) => {
  if (wanted === undefined || wanted === null) return {}
  const role = getRole(tx, wanted)
  if (role.id !== before.unknownIdentityRoleId) demandGrantable(caller, role)
  return { unknownIdentityRoleId: role.id }
}

/** Passwords bring no strangers. */
const demandFitting = ({ kind }: ProviderRow, { label: _, ...rest }: ProviderPatch): void => {
  const names = Object.keys(rest)
  if (kind === 'trusted_header' || names.length === 0) return
  const fields = Object.fromEntries(names.map((name) => [name, ['is for the reverse proxy only']]))
  throw new AppError('validation_error', { param: names[0], details: { fields } })
}
