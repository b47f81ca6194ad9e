/** `/api/alerts`: standing and past alerts, and the channels they are sent to. */
import { z } from 'zod'
import { commit } from '../../db/commit.ts'
import { Bell } from '../../views/bell.tsx'
import { actor, demand, requireStepUp, requireWrite } from '../auth/principal.ts'
import type { Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { getBell } from '../http/bell.ts'
import { body } from '../http/body.ts'
import { requires, signedIn, writes } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { getPathId } from '../http/path-id.ts'
import { query } from '../http/query.ts'
import { proceed, reply } from '../http/reply.tsx'

import { ChannelPatch, isUsuallyPrivate, NewChannel, type Target } from '../model/alerts/channel-input.ts'
import {
  type ChannelRow,
  createChannel,
  deleteChannel,
  getChannel,
  listChannels,
  mergedTarget,
  openChannel,
  parseTarget,
  recordLastDelivery,
  updateChannel,
} from '../model/alerts/channels.ts'
import { listDeliveries } from '../model/alerts/deliveries.ts'
import { acknowledge, pastIncidents } from '../model/alerts/incidents.ts'
import { getInstall } from '../model/alerts/install.ts'
import { testMessage } from '../model/alerts/messages.ts'
import { maySeeAlert } from '../model/alerts/standing.ts'
import { toAlert, toChannel, toDelivery } from '../model/alerts/views.ts'
import { append } from '../model/audit/audit.ts'
import { holds } from '../model/users/permissions.ts'
import { problemOfTarget, sendAlert } from '../upstream/alerts/send.ts'
import { getHiddenFields } from './visibility.ts'

export const ALERTS_PAGE = '/settings/alerts'
const MAX_PAST = 100
const MAX_LOG = 1000

export const listAlerts = createHandlers(requires('ops:write'), async (c) =>
  c.json({ standing: standingAlerts(c), past: await pastAlerts(c, MAX_PAST) }),
)

export const standingAlerts = (c: Ctx) => c.env.alerts.for(c.var.principal.grants).map((row) => toAlert(row, hidden(c)))

export const pastAlerts = async (c: Ctx, limit: number) =>
  (await pastIncidents(c.env.db, limit))
    .filter(({ event }) => maySeeAlert(c.var.principal.grants, event))
    .map((row) => toAlert(row, hidden(c)))

const hidden = (c: Ctx) => getHiddenFields(c.var.principal)

/** Throws `not_found`. */
export const acknowledgeAlert = createHandlers(requires('ops:write', { audit: 'alert_acknowledged' }), async (c) => {
  const key = c.req.param('key') ?? ''
  const isVisible = c.env.alerts.for(c.var.principal.grants).some((row) => row.key === key)
  if (!isVisible) throw new AppError('not_found', { message: 'There is no active alert with this key.' })
  const row = await commit(c.env.db, (tx) => acknowledge(tx, key, actor(c)))
  return proceed(c, toAlert(row, hidden(c)), `${ALERTS_PAGE}?done=alert_acknowledged`)
})

export const DeliveriesQuery = z.object({
  channelId: z.string().max(64).optional().describe('Only this channel (ID).'),
  limit: z.coerce.number().int().min(1).max(MAX_LOG).default(100).describe('Rows.'),
})

export const listAlertDeliveries = createHandlers(requires('ops:write'), query(DeliveriesQuery), async (c) => {
  const { channelId = null, limit } = c.req.valid('query')
  return c.json({ items: await shownDeliveries(c, { channelId, limit }) })
})

export const shownDeliveries = async (c: Ctx, which: { channelId: string | null; limit: number }) =>
  (await listDeliveries(c.env.db, which))
    .filter(({ incident }) => maySeeAlert(c.var.principal.grants, incident.event))
    .map((row) => toDelivery(row, hidden(c)))

export const listAlertChannels = createHandlers(requires('ops:write'), async (c) =>
  c.json({ channels: await shownChannels(c) }),
)

export const shownChannels = async (c: Ctx) => (await listChannels(c.env.db)).map((row) => toChannel(row, c.env.sealer))

/** Throws `validation_error`, `name_taken`, `permission_required`. */
export const createAlertChannel = createHandlers(
  requires('security:write', { stepUp: true, audit: 'alert_channel_created' }),
  body(NewChannel),
  async (c) => {
    const input = c.req.valid('json')
    const target = parseTarget(input.kind, input.target)
    await requireAllowed(c, target, input.allowPrivateAddress ?? isUsuallyPrivate(input.kind))
    const { random } = c.env
    const row = await commit(c.env.db, (tx) => createChannel(tx, input, { ...getDoing(c), random }))
    return proceed(c, toChannel(row, c.env.sealer), `${ALERTS_PAGE}/${row.id}?done=alert_channel_created`)
  },
)

/** Throws the same errors, and `not_found`, `edit_conflict`, and the errors of a confirmation. */
export const editAlertChannel = createHandlers(
  writes({
    audit: 'alert_channel_updated',
    sometimes: { permission: 'security:write', when: 'target or secret changes' },
  }),
  body(ChannelPatch),
  async (c) => {
    requireWrite(c.var.principal)
    const input = c.req.valid('json')
    const { db, sealer } = c.env
    const before = await getChannel(db, getPathId(c))
    const merged = mergedTarget(before, input.target, sealer)
    const allowsPrivate = input.allowPrivateAddress ?? before.allowPrivateAddress
    if (merged !== null) {
      requireConfirmation(c) // before the host name is looked up
      await requireAllowed(c, merged.target, allowsPrivate)
    }
    const row = await commit(db, (tx) => updateChannel(tx, before.id, input, getDoing(c)))
    return proceed(c, toChannel(row, sealer), `${ALERTS_PAGE}/${row.id}?done=alert_channel_updated`)
  },
)

/** Throws `not_found`. */
export const deleteAlertChannel = createHandlers(writes({ audit: 'alert_channel_deleted' }), async (c) => {
  await commit(c.env.db, (tx) => deleteChannel(tx, getPathId(c), actor(c)))
  return proceed(c, null, `${ALERTS_PAGE}?done=alert_channel_deleted`)
})

/** Answers 200 even if the message could not be sent, with the reason. Throws `not_found`. */
export const testAlertChannel = createHandlers(writes({ audit: 'alert_channel_tested' }), async (c) => {
  const who = actor(c)
  const row = await getChannel(c.env.db, getPathId(c))
  const error = await sendTest(c, row)
  const at = c.env.clock.now()
  await commit(c.env.db, async (tx) => {
    await append(tx, { ...who, at }, 'alert_channel_tested', { target: row.id, details: { ok: error === null } })
    await recordLastDelivery(tx, row.id, { at, ok: error === null, error })
  })
  const value = { ok: error === null, error }
  return proceed(c, value, `${ALERTS_PAGE}/${row.id}?done=alert_channel_${error === null ? 'tested' : 'failed'}`)
})

const sendTest = async (c: Ctx, row: ChannelRow): Promise<string | null> => {
  const { clock, random, sealer, env } = c.env
  const opened = openChannel(row, sealer)
  if (opened === null) return 'The target cannot be decrypted. Set it again.'
  const now = clock.now()
  const message = testMessage({ id: random.orderedId('ald', now), now, install: getInstall(env) })
  return sendAlert(c.env, { ...row, ...opened }, message, c.req.raw.signal)
}

/** The bell on every page. */
export const showBell = createHandlers(signedIn(), (c) => reply(c, getBell(c), Bell))

const getDoing = (c: Ctx) => ({
  actor: actor(c),
  sealer: c.env.sealer,
  requireConfirmation: () => requireConfirmation(c),
  mayReadAudit: holds(c.var.principal.grants, 'audit:read'),
})

const requireConfirmation = (c: Ctx): void => {
  demand(c.var.principal, 'security:write')
  requireStepUp(c.var.principal, c.env.clock.now())
}

const requireAllowed = async (c: Ctx, target: Target, allowsPrivate: boolean): Promise<void> => {
  const problem = await problemOfTarget(c.env, target, allowsPrivate)
  if (problem === null) return
  const param = target.kind === 'smtp' ? 'target.host' : 'target.url'
  throw new AppError('validation_error', { param, details: { fields: { [param]: [problem] } } })
}
