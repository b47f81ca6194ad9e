/** Fills a new data folder with the demo's week, using the product's own functions. */

import { commit, type Db, type Tx } from '../../db/commit.ts'
import { usageSamples } from '../../db/schema/history.ts'
import { createPasswords } from '../../src/auth/passwords.ts'
import { openSqliteFolder } from '../../src/cli/open-folder.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/lib/durations.ts'
import { mapInOrder } from '../../src/lib/in-order.ts'
import { createLog } from '../../src/lib/log.ts'
import { type Random, seededRandom, systemRandom } from '../../src/lib/random.ts'
import { recordAccountEvent } from '../../src/model/accounts/account-events.ts'
import { importAccounts, readAuthFiles } from '../../src/model/accounts/account-import.ts'
import { type AccountEvent, nextState } from '../../src/model/accounts/account-state.ts'
import { editAccount, getAccount, getState, pauseAccount, saveState } from '../../src/model/accounts/accounts.ts'
import type { UsageSnapshot } from '../../src/model/accounts/usage-windows.ts'
import type { Actor } from '../../src/model/audit/audit.ts'
import { createKey, updateKey } from '../../src/model/keys/api-keys.ts'
import { createAdmin } from '../../src/model/users/recovery.ts'
import { addBatch } from '../../src/proxy/ledger/ledger-writer.ts'
import { type RejectedRow, Rejections } from '../../src/proxy/ledger/rejections.ts'
import { writeSettings } from '../../src/settings/store.ts'
import type { Upstream } from '../../tests/support/upstream/app.ts'
import { addAutomations } from './automations.ts'
import { busyness, CLIENTS, keyPolicies } from './clients.ts'
import { addEgress } from './egress.ts'
import { addMember } from './member.ts'
import { meterNotes } from './meter.ts'
import { DEMO_ACCOUNTS, type DemoAccount, fiveHourReset } from './pool.ts'
import { addSources } from './sources.ts'
import { WEEK_MS, week } from './week.ts'

export interface SeedOptions {
  dataDir: string
  /** The stand-in upstream, which has the accounts already (`addToUpstream`). */
  upstream: Upstream
  /** The end of the week, ms since epoch. */
  now: number
  seed: number
  requests?: number
}

export interface Seeded {
  username: string
  password: string
  /** Key name → the key itself. */
  keys: ReadonlyMap<string, string>
}

export const DEFAULT_SEED = 1
export const DEFAULT_REQUESTS = 20_000
const LARGEST_SEED = 2 ** 32 - 1
const USERNAME = 'demo'
const MEMBERS_KEY = 'desktop'

/** Throws a message for the user if `text` is not an integer from 0 to `largest`. */
export const wholeNumber = (option: string, text: string, largest: number): number => {
  const number = Number(text)
  if (/^\d+$/.test(text) && number <= largest) return number
  throw new RangeError(`${option} must be a whole number from 0 to ${largest}, not ${JSON.stringify(text)}.`)
}

export const parseSeed = (text: string): number => wholeNumber('--seed', text, LARGEST_SEED)

/** Stores everything, or nothing if it throws. The folder must not have a database. */
export const seedDemo = async ({
  dataDir,
  upstream,
  now,
  seed,
  requests = DEFAULT_REQUESTS,
}: SeedOptions): Promise<Seeded> => {
  const random = seededRandom(seed)
  const password = systemRandom.token(9)
  const hash = await (await createPasswords()).hash(password)
  const clock = { ...systemClock, now: () => now }
  const { db, engine, sealer, close } = await openSqliteFolder(
    { DATA_DIR: dataDir, ENCRYPTION_KEY_FILE: undefined },
    { clock, random: systemRandom },
  )
  try {
    const keys = await commit(db, async (tx) => {
      const at = now - WEEK_MS - DAY_MS
      const admin = await createAdmin(tx, { id: systemRandom.id('usr'), username: USERNAME, hash, actor: actorAt(at) })
      const memberId = await addMember(tx, {
        inviter: admin,
        actor: { ...actorAt(at), id: admin.row.id },
        passwordHash: hash,
      })
      const accountIds = await addAccounts(tx, { upstream, at, random, sealer })
      const issued = await mapInOrder(CLIENTS, async ({ key: name }) => ({
        name,
        ...(await createKey(tx, { name, ownerUserId: name === MEMBERS_KEY ? memberId : admin.row.id }, doing(at))),
      }))
      await addAutomations(tx, { accountIds, actor: actorAt(at), now })
      const keyIds = new Map(issued.map(({ name, row }) => [name, row.id]))
      const entries = week({ now, requests, random, accountIds, keyIds })
      const rejected = await rejectedRows(db, now)
      addBatch(engine.sqlite, {
        process: 0,
        entries,
        usage: getUsage(accountIds, now),
        meters: meterNotes({ entries, accountIds, now }),
        rejected,
      })
      await addSamples(tx, accountIds, now)
      const changes = [...accountChanges(tx, accountIds, now), ...keyChanges(tx, keyIds, now)]
      for (const { apply } of changes.toSorted((a, b) => a.at - b.at)) await apply()
      await addSources(tx, { ...doing(at), sealer, testedAt: now - 12 * MINUTE_MS })
      await addEgress(tx, {
        ...doing(at),
        sealer,
        accountId: accountIds.get('tony') ?? '',
        testedAt: now - 12 * MINUTE_MS,
      })
      await writeSettings(tx, { apiKeyAuthEnabled: true, keyHolderPage: true, plannerMode: 'advise' }, { now })
      return new Map(issued.map(({ name, key }) => [name, key]))
    })
    return { username: USERNAME, password, keys }
  } finally {
    close()
  }
}

type Ids = ReadonlyMap<string, string>

const actorAt = (at: number): Actor => ({ id: 'cli', method: 'cli', address: null, at })

/** Keys are secrets, so they are never made from the seed. */
const doing = (at: number) => ({ actor: actorAt(at), scope: 'all' as const, random: systemRandom })

interface Adding {
  upstream: Upstream
  at: number
  random: Random
  sealer: Awaited<ReturnType<typeof openSqliteFolder>>['sealer']
}

const addAccounts = async (tx: Tx, { upstream, at, random, sealer }: Adding): Promise<Map<string, string>> => {
  const files = upstream.accounts.map((account) => ({ name: `${account.email}.json`, text: account.authJson() }))
  const rows = await importAccounts(tx, readAuthFiles(files).accounts, { sealer, random, actor: actorAt(at) })
  const idOf = new Map(rows.map(({ email, id }) => [email, id]))
  return new Map(DEMO_ACCOUNTS.map(({ name, email }) => [name, idOf.get(email) ?? '']))
}

const getUsage = (accountIds: Ids, now: number): Map<string, UsageSnapshot> =>
  new Map(DEMO_ACCOUNTS.map((account) => [accountIds.get(account.name) ?? '', getSnapshot(account, now)]))

const getSnapshot = (account: DemoAccount, now: number): UsageSnapshot => ({
  at: now,
  windows: {
    fiveHour: { usedPercent: account.fiveHourPercent, windowMinutes: 300, resetAt: fiveHourReset(account, now) },
    weekly: { usedPercent: account.weeklyPercent, windowMinutes: 10_080, resetAt: now + account.weeklyResetMs },
    monthly: null,
  },
  credits: null,
  planType: account.plan,
})

/**
 * What each account had used, hour by hour until it became unavailable. Both windows fill during the day and restart.
 */
const addSamples = async (tx: Tx, accountIds: Ids, now: number): Promise<void> => {
  const rows = DEMO_ACCOUNTS.flatMap((account) => {
    const accountId = accountIds.get(account.name) ?? ''
    return sampledHours(account, now).map(({ hour, weekly }) => ({
      accountId,
      hour,
      weeklyUsed: weekly,
      fiveHourUsed: Math.min(100, loadAt(hour, now) * (40 + 6 * (Math.floor(hour / HOUR_MS) % 5))),
    }))
  })
  await tx.insert(usageSamples).values(rows).run()
}

const sampledHours = (account: DemoAccount, now: number): { hour: number; weekly: number }[] => {
  const resetAt = now + account.weeklyResetMs - WEEK_MS
  const isGone = account.status === 'paused' || account.status === 'deactivated' || account.status === 'reauth_required'
  const end = isGone ? now - account.sinceMs : now
  const hours: number[] = []
  for (let hour = now - (now % HOUR_MS) - WEEK_MS + HOUR_MS; hour < end; hour += HOUR_MS) hours.push(hour)
  const used = (from: number, to: number) =>
    hours.reduce((sum, hour) => sum + (hour >= from && hour < to ? loadAt(hour, now) : 0), 0)
  const before = Math.max(1, used(0, resetAt))
  const since = Math.max(1, used(resetAt, end))
  return hours.map((hour) => {
    const isBefore = hour < resetAt
    const share = isBefore ? 0.3 + (0.6 * used(0, hour)) / before : used(resetAt, hour + HOUR_MS) / since
    return { hour, weekly: isBefore ? 100 * share : account.weeklyPercent * share }
  })
}

/** 0 at night, about 1 in the busiest hours. */
const loadAt = (hour: number, now: number): number =>
  CLIENTS.reduce((sum, client) => sum + busyness(client, hour, now), 0) / 700

/** A change made during the week. Applied in order, so that the audit log is plausible. */
interface Change {
  at: number
  apply(): Promise<unknown>
}

const accountChanges = (tx: Tx, accountIds: Ids, now: number): Change[] =>
  DEMO_ACCOUNTS.flatMap((account) => {
    const id = accountIds.get(account.name) ?? ''
    const { alias, isLastResort, status } = account
    const at = now - account.sinceMs
    const change = (when: number, apply: (actor: Actor) => Promise<unknown>) => ({
      at: when,
      apply: () => apply(actorAt(when)),
    })
    const changes: Change[] = []
    if (alias) changes.push(change(now - 6 * DAY_MS, (actor) => editAccount(tx, id, { alias }, actor)))
    if (isLastResort)
      changes.push(change(now - 5 * DAY_MS, (actor) => editAccount(tx, id, { routingPolicy: 'preserve' }, actor)))
    if (status === 'paused') changes.push(change(at, (actor) => pauseAccount(tx, id, actor)))
    const event = getEvent(account, at, now)
    if (event) changes.push(change(at, () => applyEvent(tx, id, event)))
    return changes
  })

const applyEvent = async (tx: Tx, accountId: string, event: AccountEvent): Promise<void> => {
  const state = nextState(getState(await getAccount(tx, accountId)), event)
  await saveState(tx, accountId, state)
  await recordAccountEvent(tx, { accountId, at: event.at, kind: 'state', result: state.status, detail: state.evidence })
}

/** The event that led to the account's state. */
const getEvent = ({ status, endsInMs = 0 }: DemoAccount, at: number, now: number): AccountEvent | null => {
  const limited = { at, resetAt: now + endsInMs, retryAfterMs: null, cause: 'usage_limit_reached' }
  const evidence = '429 usage_limit_reached: The usage limit has been reached'
  switch (status) {
    case 'rate_limited':
    case 'quota_exceeded':
      return { kind: status, ...limited, evidence }
    case 'reauth_required':
      return { kind: 'auth_failed', at, code: 'token_invalidated', evidence: '401 token_invalidated' }
    case 'deactivated':
      return { kind: 'auth_failed', at, code: 'account_deactivated', evidence: '401 account_deactivated' }
    default:
      return null
  }
}

/** Limits are set at the end of the week and include its usage. */
const keyChanges = (tx: Tx, keyIds: Ids, now: number): Change[] => {
  const policies = keyPolicies(now)
  return CLIENTS.map(({ key, endedMs }) => {
    const at = now - (endedMs ?? 0)
    const patch = { ...policies[key], ...(endedMs !== undefined && { isActive: false }) }
    return { at, apply: async () => void (await updateKey(tx, keyIds.get(key) ?? '', patch, doing(at))) }
  })
}

/** A client with a wrong key in the last hour, and one that was rejected yesterday. */
const rejectedRows = async (db: Db, now: number): Promise<RejectedRow[]> => {
  let at = now
  const silent = createLog({ level: 'error', format: 'text', now: () => at, write: () => {} })
  const rejections = await Rejections.open({ db, clock: { now: () => at }, log: silent })
  const reject = (agoMs: number, request: Parameters<Rejections['note']>[0]) => {
    at = now - agoMs
    rejections.note(request)
  }
  for (let n = 9; n > 0; n -= 1)
    reject(DAY_MS + n * 20_000, {
      reason: 'missing_key',
      ip: '192.168.1.77',
      route: '/v1/models',
      userAgent: 'curl/8.14.1',
    })
  for (let n = 42; n > 0; n -= 1)
    reject(5 * MINUTE_MS + n * 45_000, {
      reason: 'unknown_key',
      keyStart: 'sk-old-k',
      ip: '192.168.1.44',
      route: '/v1/chat/completions',
      userAgent: 'OpenAI/JS 6.9.0',
    })
  return rejections.take()
}
