/** Alert channels as rows: create, change and delete, each in one commit with its audit row. */
import { asc, eq } from 'drizzle-orm'
import { ZodError } from 'zod'
import { type Db, notice, type Tx } from '../../../db/commit.ts'
import { alertChannels, type ChannelKind, type LastDelivery, type QuietHours } from '../../../db/schema/alerts.ts'
import { AppError } from '../../errors.ts'
import type { Random } from '../../lib/random.ts'
import { SealError, type Sealer } from '../../lib/seal.ts'
import { type Actor, append } from '../audit/audit.ts'
import { getChanges } from '../audit/changes-of.ts'
import { getVersion, requireVersion } from '../edit-version.ts'
import {
  type ChannelPatch,
  isUsuallyPrivate,
  type NewChannel,
  needsSecret,
  type Target,
  toTarget,
} from './channel-input.ts'
import { isSecurityEvent } from './events.ts'

export type ChannelRow = typeof alertChannels.$inferSelect

interface Doing {
  actor: Actor
  sealer: Sealer
  /** Called before a target or a secret is set or changed. */
  requireConfirmation: () => void
  /** Whether the user may read the audit log, and so receive security events. */
  mayReadAudit: boolean
}

const targetContext = (id: string): string => `alert_channels/target/${id}`
const secretContext = (id: string): string => `alert_channels/secret/${id}`

/** Returns all channels, ordered by name. */
export const listChannels = (db: Db): Promise<ChannelRow[]> =>
  db.select().from(alertChannels).orderBy(asc(alertChannels.name), asc(alertChannels.id)).all()

/** Throws `not_found`. */
export const getChannel = async (db: Db, id: string): Promise<ChannelRow> => {
  const row = await db.select().from(alertChannels).where(eq(alertChannels.id, id)).get()
  if (!row) throw new AppError('not_found', { message: 'Alert channel not found.' })
  return row
}

/** The decrypted target of a channel. Null if it was encrypted with another key. */
export const openChannel = (row: ChannelRow, sealer: Sealer): { target: Target; secret: string | null } | null => {
  try {
    return {
      target: JSON.parse(sealer.open(row.targetSealed, targetContext(row.id))) as Target, // as: sealed by this file
      secret: row.secretSealed === null ? null : sealer.open(row.secretSealed, secretContext(row.id)),
    }
  } catch (err) {
    if (err instanceof SealError) return null
    throw err
  }
}

/** The version of the fields that can be changed. */
export const channelVersion = (row: ChannelRow): string => {
  const { lastDelivery, createdAt, updatedAt, ...settable } = row
  return getVersion(Object.values(settable))
}

/**
 * The caller must have checked the target. Throws `name_taken`, `validation_error`, and what `requireConfirmation`
 * does.
 */
export const createChannel = async (
  tx: Tx,
  input: NewChannel,
  { random, ...doing }: Doing & { random: Random },
): Promise<ChannelRow> => {
  doing.requireConfirmation()
  requireAuditFor(input.events, doing)
  await requireFreeName(tx, input.name, null)
  const { target, secret, quietHours, ...columns } = input
  const id = random.id('alc')
  requireSecret(input.kind, secret || null)
  await tx
    .insert(alertChannels)
    .values({
      ...columns,
      id,
      quietHours: toQuietHours(quietHours),
      allowPrivateAddress: columns.allowPrivateAddress ?? isUsuallyPrivate(input.kind),
      ...sealed(id, { target: parseTarget(input.kind, target), secret: secret || null }, doing.sealer),
      mayGetSecurity: doing.mayReadAudit,
      createdAt: doing.actor.at,
      updatedAt: doing.actor.at,
    })
    .run()
  await append(tx, doing.actor, 'alert_channel_created', {
    target: id,
    details: { name: input.name, kind: input.kind, events: input.events },
  })
  notice(tx, 'alerts')
  return getChannel(tx, id)
}

/**
 * Applies `patch`; unchanged values are ignored. A target is merged with the stored one. If its server changes,
 * passwords and tokens must be sent again. Throws `not_found`, `edit_conflict`, `name_taken`, `validation_error`,
 * `permission_required` for security events, and what `requireConfirmation` does.
 */
export const updateChannel = async (tx: Tx, id: string, input: ChannelPatch, doing: Doing): Promise<ChannelRow> => {
  const { expectedVersion, target: given, secret: newSecret, removeSecret, ...fields } = input
  const { quietHours } = fields
  const patch = { ...fields, ...(quietHours !== undefined && { quietHours: toQuietHours(quietHours) }) }
  const before = await getChannel(tx, id)
  requireVersion(expectedVersion, channelVersion(before))
  if (patch.name !== undefined) await requireFreeName(tx, patch.name, id)
  if (patch.events !== undefined) requireAuditFor(added(before.events, patch.events), doing)
  const after = mergedSecrets(before, { given, newSecret, removeSecret }, doing.sealer)
  const opensPrivate = patch.allowPrivateAddress === true && !before.allowPrivateAddress
  if (after !== null || opensPrivate) doing.requireConfirmation()
  const changes = getChanges(before, patch)
  if (after === null && Object.keys(changes).length === 0) return before
  const columns = {
    ...changes,
    ...(after && { ...sealed(id, after, doing.sealer), mayGetSecurity: doing.mayReadAudit, lastDelivery: null }),
  }
  await tx
    .update(alertChannels)
    .set({ ...columns, updatedAt: doing.actor.at })
    .where(eq(alertChannels.id, id))
    .run()
  const changed = [...Object.keys(changes), ...(after ? ['target'] : [])]
  await append(tx, doing.actor, 'alert_channel_updated', { target: id, details: { changed } })
  notice(tx, 'alerts')
  return getChannel(tx, id)
}

/** Also deletes its deliveries. Throws `not_found`. */
export const deleteChannel = async (tx: Tx, id: string, actor: Actor): Promise<void> => {
  const { name } = await getChannel(tx, id)
  await tx.delete(alertChannels).where(eq(alertChannels.id, id)).run()
  await append(tx, actor, 'alert_channel_deleted', { target: id, details: { name } })
  notice(tx, 'alerts')
}

/** Stores the result of the newest message. */
export const recordLastDelivery = async (tx: Tx, id: string, lastDelivery: LastDelivery): Promise<void> => {
  await tx.update(alertChannels).set({ lastDelivery }).where(eq(alertChannels.id, id)).run()
  notice(tx, 'alerts')
}

/** Parses `given` as a target. Throws `validation_error`. */
export const parseTarget = (kind: ChannelKind, given: unknown): Target => {
  try {
    return toTarget(kind, withoutEmpty(given))
  } catch (err) {
    if (!(err instanceof ZodError)) throw err
    const fields = Object.fromEntries(err.issues.map(({ path, message }) => [path.join('.'), [message]]))
    throw new AppError('validation_error', { param: Object.keys(fields)[0], details: { fields } })
  }
}

/** The stored target with the fields of `given`. Null if `given` changes nothing. Throws `validation_error`. */
export const mergedTarget = (
  row: ChannelRow,
  given: ChannelPatch['target'],
  sealer: Sealer,
): { target: Target; isElsewhere: boolean } | null => {
  const set = withoutEmpty(given)
  if (Object.keys(set).length === 0) return null
  const stored = openChannel(row, sealer)?.target
  const { kind, ...members } = stored ?? { kind: row.kind }
  const target = parseTarget(row.kind, { ...members, ...set })
  if (stored && Bun.deepEquals(stored, target)) return null
  const isElsewhere = stored === undefined || getDestination(stored) !== getDestination(target)
  if (isElsewhere && stored?.kind === 'smtp' && stored.password && !set.password) throw neededAgain('target.password')
  return { target, isElsewhere }
}

/** The server of a target as pages show it: a host with its port, without path and secrets. */
export const getServer = (target: Target): string =>
  target.kind === 'smtp' ? `${target.host}:${target.port}` : new URL(target.url).host

/** The server that gets passwords and tokens, and whether the connection is encrypted. */
const getDestination = (target: Target): string =>
  target.kind === 'smtp' ? `${target.tls} ${getServer(target)}` : new URL(target.url).origin

interface Secrets {
  given: ChannelPatch['target']
  newSecret: string | undefined
  removeSecret: boolean | undefined
}

const mergedSecrets = (
  before: ChannelRow,
  { given, newSecret, removeSecret }: Secrets,
  sealer: Sealer,
): { target: Target; secret: string | null } | null => {
  const merged = mergedTarget(before, given, sealer)
  const removes = removeSecret === true && before.secretSealed !== null
  const sets = Boolean(newSecret)
  if (merged === null && !sets && !removes) return null
  if (merged?.isElsewhere && before.secretSealed !== null && !sets && !removes) throw neededAgain('secret')
  const stored = openChannel(before, sealer)
  const target = merged?.target ?? stored?.target
  if (!target) throw neededAgain('target')
  const secret = sets ? (newSecret ?? null) : removes ? null : (stored?.secret ?? null)
  requireSecret(before.kind, secret)
  return { target, secret }
}

const sealed = (id: string, { target, secret }: { target: Target; secret: string | null }, sealer: Sealer) => ({
  targetSealed: sealer.seal(JSON.stringify(target), targetContext(id)),
  secretSealed: secret === null ? null : sealer.seal(secret, secretContext(id)),
})

const toQuietHours = (quiet: QuietHours | null): QuietHours | null =>
  quiet === null || quiet.from === '' ? null : quiet

const withoutEmpty = (given: unknown): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(given ?? {}).filter(
      ([, value]) =>
        value !== '' && value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0),
    ),
  )

const added = (before: readonly string[] | null, after: readonly string[] | null): string[] =>
  (after ?? []).filter((event) => !before?.includes(event))

const requireAuditFor = (events: readonly string[] | null, { mayReadAudit }: Pick<Doing, 'mayReadAudit'>): void => {
  if (mayReadAudit || !events?.some(isSecurityEvent)) return
  throw new AppError('permission_required', {
    param: 'audit:read',
    message: 'Security events can only be sent by users who may read the audit log.',
  })
}

const requireSecret = (kind: ChannelKind, secret: string | null): void => {
  if (needsSecret(kind) && !secret) throw invalidField('secret', 'is required for this kind of channel')
}

const neededAgain = (field: string): AppError => invalidField(field, 'Enter it again, because you changed the server.')

const invalidField = (field: string, message: string): AppError =>
  new AppError('validation_error', { param: field, details: { fields: { [field]: [message] } } })

const requireFreeName = async (db: Db, name: string, own: string | null): Promise<void> => {
  const other = await db.select().from(alertChannels).where(eq(alertChannels.name, name)).get()
  if (other && other.id !== own) throw new AppError('name_taken', { param: 'name' })
}
