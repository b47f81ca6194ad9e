/** `/settings/alerts`: the pages about alerts and their channels. */
import { z } from 'zod'
import {
  AlertChannelPage,
  type ChannelPage,
  NewAlertChannelPage,
  type NewChannelPage,
} from '../../../views/alerts/channel.tsx'
import { type AlertsPage, AlertsPageView } from '../../../views/alerts/list.tsx'
import type { AlertsFrame } from '../../../views/alerts/words.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { requires } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { getPathId } from '../../http/path-id.ts'
import { query } from '../../http/query.ts'
import { reply } from '../../http/reply.tsx'
import { viewerZone } from '../../http/viewer-clock.ts'
import { iso } from '../../lib/iso.ts'
import { isUsuallyPrivate, NewChannel } from '../../model/alerts/channel-input.ts'
import { getChannel } from '../../model/alerts/channels.ts'
import { ALERT_EVENTS, EVENT_NAMES, isSecurityEvent } from '../../model/alerts/events.ts'
import { toChannel } from '../../model/alerts/views.ts'
import { holds, mayWrite } from '../../model/users/permissions.ts'
import { pastAlerts, shownChannels, shownDeliveries, standingAlerts } from '../alerts.ts'
import { getFormFeedback } from '../form-feedback.ts'
import { getFrame, settingsOfTab } from './frame.ts'

const getPage = (c: Ctx): AlertsFrame => {
  const { grants } = c.var.principal
  const { done, problem } = getFormFeedback(c)
  return {
    frame: getFrame(c, 'alerts'),
    now: iso(c.env.clock.now()),
    done,
    problem,
    canWrite: mayWrite(grants),
    canSetTargets: mayWrite(grants) && holds(grants, 'security:write'),
    events: EVENT_NAMES.map((name) => ({
      name,
      label: ALERT_EVENTS[name].label,
      severity: ALERT_EVENTS[name].severity,
      isSecurity: isSecurityEvent(name),
      isOffered: !isSecurityEvent(name) || holds(grants, 'audit:read'),
    })),
  }
}

const PAST_SHOWN = 20
const LOG_SHOWN = 50

export const showAlerts = createHandlers(requires('ops:write'), async (c) => {
  const value: AlertsPage = {
    ...getPage(c),
    standing: standingAlerts(c),
    past: await pastAlerts(c, PAST_SHOWN),
    channels: await shownChannels(c),
    deliveries: await shownDeliveries(c, { channelId: null, limit: LOG_SHOWN }),
    settings: await settingsOfTab(c, 'alerts'),
  }
  return reply(c, value, AlertsPageView)
})

const NewQuery = z.object({ kind: NewChannel.shape.kind.optional() })

export const showNewAlertChannel = createHandlers(requires('security:write'), query(NewQuery), (c) => {
  const { kind = null } = c.req.valid('query')
  const value: NewChannelPage = {
    ...getPage(c),
    kind,
    isPrivate: kind !== null && isUsuallyPrivate(kind),
    timezone: viewerZone(c) ?? 'UTC',
  }
  return reply(c, value, NewAlertChannelPage)
})

/** Throws `not_found`. */
export const showAlertChannel = createHandlers(requires('ops:write'), async (c) => {
  const row = await getChannel(c.env.db, getPathId(c))
  const value: ChannelPage = {
    ...getPage(c),
    channel: toChannel(row, c.env.sealer),
    timezone: viewerZone(c) ?? 'UTC',
    deliveries: await shownDeliveries(c, { channelId: row.id, limit: LOG_SHOWN }),
  }
  return reply(c, value, AlertChannelPage)
})
