/** `sluice status`: server and pool on one screen, from the database and the running server's health. */
import { resolve } from 'node:path'
import type { Db } from '../../db/commit.ts'
import { ACCOUNT_STATUSES } from '../../db/schema/accounts.ts'
import type { Config } from '../boot/env.ts'
import { VERSION } from '../boot/version.ts'
import { systemClock } from '../lib/clock.ts'
import { HOUR_MS } from '../lib/durations.ts'
import { isoOrNull } from '../lib/iso.ts'
import { nextState } from '../model/accounts/account-state.ts'
import { getState, getUsage, listAccounts } from '../model/accounts/accounts.ts'
import { nextReset } from '../model/accounts/usage-windows.ts'
import { toApiKey } from '../model/keys/api-key-view.ts'
import { listKeys } from '../model/keys/api-keys.ts'
import { keyState } from '../model/keys/key-list.ts'
import { rejectedLately } from '../model/log/rejected-clients.ts'
import { outcomesSince } from '../model/log/request-log-tail.ts'
import { plural, STATE_WORDS } from '../model/overview/pool-words.ts'
import { readSettings } from '../settings/store.ts'
import { getConfig, printJson, type Run, withFolder } from './command.ts'
import { NOT_RUNNING, ownUrl, READY, readiness } from './own-server.ts'
import { shortTime } from './table.ts'

/** Exit code 0 even when the server is not running: scripts use `healthcheck`. */
export const status: Run = (io, _args, { json }) =>
  withFolder(io, async ({ db }) => {
    const config = getConfig(io)
    const report = { ...(await storedFacts(db)), ...serverFacts(config, await readiness(config)) }
    if (json) printJson(io, report)
    else io.stdout(inWords(report))
    return 0
  })

type Report = Awaited<ReturnType<typeof storedFacts>> & ReturnType<typeof serverFacts>

const serverFacts = (config: Config, server: string) => ({
  version: VERSION,
  server,
  url: ownUrl(config),
  dataFolder: resolve(config.DATA_DIR),
})

const storedFacts = async (db: Db) => {
  const now = systemClock.now()
  const { ok, error, cancelled } = await outcomesSince(db, now - HOUR_MS)
  const keys = await listKeys(db, 'all')
  const active = keys.filter((row) => keyState(toApiKey(row, now)) === 'active').length
  return {
    accounts: await accountsByState(db, now),
    keys: { active, inactive: keys.length - active },
    keysRequired: (await readSettings(db)).values.apiKeyAuthEnabled,
    lastHour: {
      requests: ok + error + cancelled,
      errors: error,
      cancelled,
      rejected: (await rejectedLately(db, now)).reduce((sum, { count }) => sum + count, 0),
    },
  }
}

/** The number of accounts in each state, and when the next of them should change. */
const accountsByState = async (db: Db, now: number) => {
  const usage = await getUsage(db)
  const accounts = (await listAccounts(db)).map((row) => {
    const { status, until, nextCheckAt } = nextState(getState(row), { kind: 'tick', at: now })
    const windows = Object.values(usage.get(row.id)?.windows ?? {})
    const resets = windows.flatMap((window) => nextReset(window, now) ?? [])
    return { status, next: until ?? nextCheckAt ?? earliest(status === 'active' ? resets : []) }
  })
  return ACCOUNT_STATUSES.flatMap((status) => {
    const group = accounts.filter((account) => account.status === status)
    const nextResetAt = isoOrNull(earliest(group.flatMap(({ next }) => next ?? [])))
    return group.length === 0 ? [] : [{ status, count: group.length, nextResetAt }]
  })
}

const earliest = (times: readonly number[]): number | null => (times.length === 0 ? null : Math.min(...times))

const inWords = (report: Report): string => {
  const { accounts, keys, keysRequired, lastHour } = report
  const total = accounts.reduce((sum, { count }) => sum + count, 0)
  const { requests, errors, cancelled, rejected } = lastHour
  const lines: [label: string, text: string][] = [
    ['Server', serverInWords(report)],
    ['URL', report.url],
    ['Dashboard', `${report.url}/dashboard`],
    ['Data folder', report.dataFolder],
    ['Accounts', total === 0 ? 'none yet. To add one: sluice accounts add' : plural(total, 'account')],
    ...accounts.map((group): [string, string] => ['', stateInWords(group)]),
    [
      'Keys',
      `${keys.active} active${keys.inactive > 0 ? `, ${keys.inactive} not active` : ''}; ${keysRequired ? 'required' : 'optional on this machine'}`,
    ],
    [
      'Last hour',
      `${plural(requests, 'request')}, ${plural(errors, 'error')}, ${cancelled} cancelled, ${rejected} rejected`,
    ],
  ]
  return lines.map(([label, text]) => `${label.padEnd(13)}${text}\n`).join('')
}

const serverInWords = ({ version, server, accounts }: Report): string => {
  if (server === NOT_RUNNING) return `Sluice ${version}, not running`
  if (server !== READY) return `Sluice ${version}, not serving: ${server}`
  const isServing = accounts.some(({ status }) => status === 'active')
  return `Sluice ${version}, ${isServing ? 'serving' : 'running, but no account is available'}`
}

const stateInWords = ({ status, count, nextResetAt }: Report['accounts'][number]): string => {
  const time = nextResetAt === null ? '' : `, next reset ${shortTime(Date.parse(nextResetAt))}`
  return `${count} ${STATE_WORDS[status]}${time}`
}
