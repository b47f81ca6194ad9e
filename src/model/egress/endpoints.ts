/** Outbound proxies as rows: the endpoints with their sealed passwords. */
import { asc, eq } from 'drizzle-orm'
import { type Db, notice, type Tx } from '../../../db/commit.ts'
import { type EgressTest, egressEndpoints, egressMembers, egressPools } from '../../../db/schema/egress.ts'
import { AppError } from '../../errors.ts'
import type { Random } from '../../lib/random.ts'
import { SealError, type Sealer } from '../../lib/seal.ts'
import { type Actor, append } from '../audit/audit.ts'
import { getChanges } from '../audit/changes-of.ts'
import type { EndpointEdit, NewEndpoint } from './input.ts'

export type EgressEndpointRow = typeof egressEndpoints.$inferSelect
export type EgressPoolRow = typeof egressPools.$inferSelect
export type EgressMemberRow = typeof egressMembers.$inferSelect

/** Oldest first. */
export const listEndpoints = (db: Db): Promise<EgressEndpointRow[]> =>
  db.select().from(egressEndpoints).orderBy(asc(egressEndpoints.createdAt), asc(egressEndpoints.id)).all()

/** Oldest first. */
export const listPools = (db: Db): Promise<EgressPoolRow[]> =>
  db.select().from(egressPools).orderBy(asc(egressPools.createdAt), asc(egressPools.id)).all()

/** In the order in which each pool uses them. */
export const listMembers = (db: Db): Promise<EgressMemberRow[]> =>
  db.select().from(egressMembers).orderBy(asc(egressMembers.sortOrder), asc(egressMembers.endpointId)).all()

/** Throws `proxy_endpoint_not_found`. */
export const getEndpoint = async (db: Db, id: string): Promise<EgressEndpointRow> => {
  const row = await db.select().from(egressEndpoints).where(eq(egressEndpoints.id, id)).get()
  if (!row) throw new AppError('proxy_endpoint_not_found')
  return row
}

/** The proxy URL with its credentials; null: the stored password cannot be read. */
export const endpointUrl = (row: EgressEndpointRow, sealer: Sealer): string | null => {
  const { scheme, host, port, username, passwordSealed } = row
  try {
    const password = passwordSealed === null ? '' : sealer.open(passwordSealed, passwordContext(row.id))
    const login = [username ?? '', password].map(encodeURIComponent).join(':')
    return `${scheme}://${login === ':' ? '' : `${login}@`}${host.includes(':') ? `[${host}]` : host}:${port}`
  } catch (err) {
    if (err instanceof SealError) return null
    throw err
  }
}

const passwordContext = (id: string): string => `egress_endpoints/password/${id}`

interface Doing {
  sealer: Sealer
  actor: Actor
}

/** Throws `name_taken`. */
export const createEndpoint = async (
  tx: Tx,
  { password, ...input }: NewEndpoint,
  { sealer, actor, random }: Doing & { random: Random },
): Promise<EgressEndpointRow> => {
  await requireFreeName(tx, input.name, null)
  const id = random.id('egr')
  const passwordSealed = password ? sealer.seal(password, passwordContext(id)) : null
  await tx
    .insert(egressEndpoints)
    .values({ id, ...input, passwordSealed, createdAt: actor.at })
    .run()
  await append(tx, actor, 'proxy_endpoint_created', {
    target: id,
    details: { ...input, hasPassword: password !== null },
  })
  notice(tx, 'egress')
  return getEndpoint(tx, id)
}

/**
 * Unchanged values are ignored; a missing or empty password keeps the stored one, null removes it. The password does not
 * go to another host: a change of scheme, host or port needs it again. Throws `proxy_endpoint_not_found`, `name_taken`,
 * `proxy_password_required`.
 */
export const editEndpoint = async (
  tx: Tx,
  id: string,
  { password, ...edit }: EndpointEdit,
  { sealer, actor }: Doing,
): Promise<EgressEndpointRow> => {
  const before = await getEndpoint(tx, id)
  const change = getChanges(before, edit)
  if (change.name !== undefined) await requireFreeName(tx, change.name, id)
  const isElsewhere = change.scheme !== undefined || change.host !== undefined || change.port !== undefined
  if (isElsewhere && before.passwordSealed !== null && !password && password !== null)
    throw new AppError('proxy_password_required', { param: 'password' })
  const isNewPassword = password === null ? before.passwordSealed !== null : Boolean(password)
  if (Object.keys(change).length === 0 && !isNewPassword) return before
  const passwordSealed = password ? sealer.seal(password, passwordContext(id)) : null
  // The test was about the old values.
  const isTested = Object.keys(change).every((name) => name === 'name' || name === 'isActive') && !isNewPassword
  await tx
    .update(egressEndpoints)
    .set({ ...change, ...(isNewPassword && { passwordSealed }), ...(!isTested && { lastTest: null }) })
    .where(eq(egressEndpoints.id, id))
    .run()
  await append(tx, actor, 'proxy_endpoint_updated', {
    target: id,
    details: { ...change, hasNewPassword: isNewPassword },
  })
  notice(tx, 'egress')
  return getEndpoint(tx, id)
}

/** Takes it out of its pools too; a pool that is left without one has no route. Throws `proxy_endpoint_not_found`. */
export const deleteEndpoint = async (tx: Tx, id: string, actor: Actor): Promise<void> => {
  const { name } = await getEndpoint(tx, id)
  await tx.delete(egressEndpoints).where(eq(egressEndpoints.id, id)).run()
  await append(tx, actor, 'proxy_endpoint_deleted', { target: id, details: { name } })
  notice(tx, 'egress')
}

/** Stores the result of a test, unless the endpoint was deleted or changed in the meantime. */
export const recordTest = async (
  tx: Tx,
  tested: EgressEndpointRow,
  lastTest: EgressTest,
  actor: Actor,
): Promise<void> => {
  const row = await tx.select().from(egressEndpoints).where(eq(egressEndpoints.id, tested.id)).get()
  if (!row || endpointKey(row) !== endpointKey(tested)) return
  await tx.update(egressEndpoints).set({ lastTest }).where(eq(egressEndpoints.id, row.id)).run()
  await append(tx, actor, 'proxy_endpoint_tested', { target: row.id, details: { ok: lastTest.ok } })
}

/** The same for two rows that lead through the same proxy. */
export const endpointKey = ({ scheme, host, port, username, passwordSealed }: EgressEndpointRow): string =>
  JSON.stringify([scheme, host, port, username, passwordSealed])

const requireFreeName = async (tx: Tx, name: string, own: string | null): Promise<void> => {
  const other = await tx.select().from(egressEndpoints).where(eq(egressEndpoints.name, name)).get()
  if (other && other.id !== own) throw new AppError('name_taken', { param: 'name' })
}
