/** `sluice alerts`: what needs attention, and tests of the channels. */
import { commit } from '../../db/commit.ts'
import { systemClock } from '../lib/clock.ts'
import { systemRandom } from '../lib/random.ts'
import { type ChannelRow, listChannels, openChannel, recordLastDelivery } from '../model/alerts/channels.ts'
import { openIncidents } from '../model/alerts/incidents.ts'
import { getInstall } from '../model/alerts/install.ts'
import { testMessage } from '../model/alerts/messages.ts'
import { toAlert } from '../model/alerts/views.ts'
import { append } from '../model/audit/audit.ts'
import { spanText } from '../model/overview/account-matters.ts'
import { type SendDeps, sendAlert } from '../upstream/alerts/send.ts'
import { createDial } from '../upstream/dial.ts'
import { createLookup, GuardedFetch } from '../upstream/guarded-fetch.ts'
import { type CliIo, cliActor, getConfig, printJson, type Run, withFolder } from './command.ts'
import { findOne } from './find.ts'
import { listing } from './listing.ts'
import { table } from './table.ts'

interface Options {
  json?: true
}

/** The active alerts, newest first. */
export const listAlerts: Run<Options> = (io, _args, { json }) =>
  withFolder(io, async ({ db }) => {
    const rows = (await openIncidents(db)).filter(({ raisedAt }) => raisedAt !== null)
    const alerts = rows.toSorted((a, b) => b.since - a.since).map((row) => toAlert(row, { hidesAccounts: false }))
    if (json) printJson(io, alerts)
    else if (alerts.length === 0) io.stdout('No active alerts.\n')
    else {
      const cells = alerts.map(({ severity, since, text, acknowledgedAt }) => [
        SEVERITIES[severity],
        spanText(systemClock.now() - Date.parse(since)),
        text + (acknowledgedAt === null ? '' : ' (acknowledged)'),
      ])
      io.stdout(table(['SEVERITY', 'FOR', 'ALERT'], cells))
    }
    return 0
  })

const SEVERITIES = { info: 'info', warning: 'warning', bad: 'error' } as const

export const listAllChannels = listing({
  all: listChannels,
  getName: ({ name }) => name,
  headings: ['NAME', 'KIND', 'STATE'],
  cells: ({ name, kind, isActive, lastDelivery }) => [
    name,
    kind,
    isActive ? (lastDelivery === null ? 'not used yet' : lastDelivery.ok ? 'working' : 'failing') : 'off',
  ],
  none: 'No alert channels. Add one in the dashboard under Settings › Alerts.',
  document: (channels) =>
    channels.map(({ id, name, kind, isActive, lastDelivery }) => ({ id, name, kind, isActive, lastDelivery })),
})

/** Exits with 1 when a test could not be sent. */
export const testAlerts: Run = (io, [name]) =>
  withFolder(io, async ({ db, sealer }) => {
    const channels = await listChannels(db)
    if (channels.length === 0) {
      io.stderr('There is no alert channel yet. Add one in the dashboard under Settings › Alerts.\n')
      return 1
    }
    const wanted = name === undefined ? channels : [findOne(CHANNELS, channels, name)]
    const deps = getDeps(io)
    let failed = 0
    for (const channel of wanted) {
      const error = await sendTest(deps, channel, { io, opened: openChannel(channel, sealer) })
      const at = systemClock.now()
      await commit(db, async (tx) => {
        const details = { ok: error === null }
        await append(tx, { ...cliActor(), at }, 'alert_channel_tested', { target: channel.id, details })
        await recordLastDelivery(tx, channel.id, { at, ok: error === null, error })
      })
      if (error !== null) failed++
      io.stdout(`${channel.name}: ${error ?? 'sent'}\n`)
    }
    return failed === 0 ? 0 : 1
  })

const CHANNELS = {
  what: 'alert channel',
  listedBy: 'alerts channels',
  all: listChannels,
  getNames: ({ name }: ChannelRow) => [name],
}

const sendTest = async (
  deps: SendDeps,
  channel: ChannelRow,
  { io, opened }: { io: CliIo; opened: ReturnType<typeof openChannel> },
): Promise<string | null> => {
  if (opened === null) return 'The target cannot be decrypted. Set it again.'
  const now = systemClock.now()
  const message = testMessage({ id: systemRandom.orderedId('ald', now), now, install: getInstall(getConfig(io)) })
  return sendAlert(deps, { ...channel, ...opened }, message)
}

const getDeps = (io: CliIo): SendDeps => {
  const config = getConfig(io)
  const options = { trustsSocketEnvironment: config.UPSTREAM_WEBSOCKET_TRUST_ENV, random: systemRandom }
  const guardedFetch = new GuardedFetch({
    dial: createDial(config.raw, io.fetch, options),
    lookup: createLookup(),
    own: () => ({ port: config.PORT, publicUrl: config.PUBLIC_URL }),
  })
  return { guardedFetch, clock: systemClock }
}
