/**
 * A data folder of the size in the dashboard's targets: 200 accounts, 100 keys, a million requests, two years of hourly
 * totals.
 */
import type { Database } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { commit, type Db } from '../db/commit.ts'
import { openDatabase } from '../db/open.ts'
import { accountUsage, affinity } from '../db/schema/accounts.ts'
import { accountEvents, usageSamples } from '../db/schema/history.ts'
import { apiKeyLimits, apiKeys } from '../db/schema/keys.ts'
import { users } from '../db/schema/people.ts'
import { type Random, seededRandom } from '../src/lib/random.ts'
import { append } from '../src/model/audit/audit.ts'
import { addUpHours } from '../src/model/reports/request-spans.ts'
import { EXPLAINED, HOUR_MS, inserter, writeHistory } from './dashboard-history.ts'
import { benchAuthJsons, type SluiceSeed, seedSluice } from './targets.ts'

export interface BigSizes {
  accounts: number
  keys: number
  /** Days in the log; 0: an empty log. */
  rows: number
  /** Days with hourly totals. */
  days: number
}

export interface BigFolder extends SluiceSeed {
  sizes: BigSizes
  accountIds: readonly string[]
  keyIds: readonly string[]
}

export const ADMIN = { username: 'bench', password: 'the password of the benchmark' } as const

const LOG_DAYS = 30
const DAY_MS = 24 * HOUR_MS
const AUDIT_ROWS = 20_000
const PEOPLE = 20
const SAMPLE_DAYS = 35
const EVENTS_EACH = 60
const SESSIONS = 100_000

/** Reuses the folder under `kept` if it was filled before. Otherwise fills a new one, under `kept` if given. */
export async function bigFolder(seed: SluiceSeed, sizes: BigSizes, workDir: string, kept?: string): Promise<BigFolder> {
  if (kept === undefined) return fillFolder(seed, sizes, workDir)
  const note = join(kept, `folder-${Object.values(sizes).join('-')}.json`)
  if (existsSync(note)) {
    const known = (await Bun.file(note).json()) as BigFolder // as: written below
    return { ...known, command: seed.command, upstreamUrl: seed.upstreamUrl }
  }
  await mkdir(kept, { recursive: true })
  const folder = await fillFolder(seed, sizes, kept)
  await Bun.write(note, JSON.stringify(folder))
  return folder
}

/** Adds accounts and a key with the command line, and the rest directly into the tables. */
async function fillFolder(seed: SluiceSeed, sizes: BigSizes, workDir: string): Promise<BigFolder> {
  const folder = await seedSluice(seed.command, seed.upstreamUrl, workDir, {
    authJsons: benchAuthJsons(sizes.accounts),
  })
  const passwordHash = await Bun.password.hash(ADMIN.password, {
    algorithm: 'argon2id',
    memoryCost: 19_456,
    timeCost: 2,
  })
  const { sqlite, db } = openDatabase(join(folder.dataDir, 'sluice.db'))
  for (const pragma of ['synchronous = OFF', 'cache_size = -800000']) sqlite.run(`PRAGMA ${pragma}`)
  const now = Date.now()
  const accountIds = getIds(sqlite, 'accounts')
  sqlite.transaction(() => {
    addKeys(sqlite, sizes.keys - 1, now)
    addPeople(sqlite, passwordHash, now)
    addPast(sqlite, accountIds, now)
    if (sizes.rows > 0) addSessions(sqlite, accountIds, now)
    const keyIds = getIds(sqlite, 'api_keys')
    const logHours = Math.min(LOG_DAYS, sizes.days) * 24
    const plan = { now, accountIds, keyIds, logRows: sizes.rows, logHours, hours: sizes.days * 24 }
    if (sizes.rows > 0) writeHistory(sqlite, plan)
    for (const statement of SUM_UP) sqlite.run(statement)
  })()
  const before = now - (now % HOUR_MS)
  while (await commit(db, (tx) => addUpHours(tx, { before, rows: 50_000 })));
  await addAudit(db, now)
  sqlite.run('PRAGMA wal_checkpoint(TRUNCATE)')
  const keyIds = getIds(sqlite, 'api_keys')
  sqlite.close()
  return { ...folder, sizes, accountIds, keyIds }
}

const getIds = (sqlite: Database, table: 'accounts' | 'api_keys'): string[] =>
  sqlite
    .query<{ id: string }, []>(`SELECT id FROM ${table}`)
    .all()
    .map(({ id }) => id)

/** In addition to the driver's key. Half of them have a limit. */
const addKeys = (sqlite: Database, count: number, now: number): void => {
  const addKey = inserter(sqlite, apiKeys)
  const addLimit = inserter(sqlite, apiKeyLimits)
  for (let n = 0; n < count; n++) {
    const id = `key_bench${String(n).padStart(3, '0')}`
    addKey({ id, name: `Key of desk ${n}`, keyHash: `hash ${n}`, keyPrefix: 'sk-bench', createdAt: now - 400 * DAY_MS })
    const limit = { id: `lim_${n}`, keyId: id, limitType: 'cost_usd', limitWindow: 'weekly', maxValue: 50_000_000 }
    if (n % 2 === 0) addLimit({ ...limit, currentValue: 400_000 * n, resetAt: now + 3 * DAY_MS })
  }
}

const addPeople = (sqlite: Database, passwordHash: string, now: number): void => {
  const add = inserter(sqlite, users)
  for (let n = 0; n < PEOPLE; n++) {
    const who = n === 0 ? { username: ADMIN.username, passwordHash } : { username: `person${n}`, passwordHash: null }
    add({ id: `usr_${n}`, ...who, roleId: n < 2 ? 'role_admin' : 'role_viewer', status: 'active', createdAt: now })
  }
}

/** Usage samples and events of all accounts. */
const addPast = (sqlite: Database, accountIds: readonly string[], now: number): void => {
  const random = seededRandom(11)
  const addSample = inserter(sqlite, usageSamples)
  const addEvent = inserter(sqlite, accountEvents)
  const addUsage = inserter(sqlite, accountUsage)
  const hour = now - (now % HOUR_MS)
  for (const accountId of accountIds) {
    for (let n = SAMPLE_DAYS * 24; n > 0; n--) {
      const used = { fiveHourUsed: 100 * random.float(), weeklyUsed: 100 * random.float() }
      addSample({ accountId, hour: hour - n * HOUR_MS, ...used })
    }
    addUsage({ accountId, at: now, snapshot: JSON.stringify(usageNow(random, now)) })
  }
  for (let n = EVENTS_EACH; n > 0; n--)
    for (const accountId of accountIds) {
      const isBlock = n % 2 === 0
      addEvent({
        accountId,
        at: now - n * 12 * HOUR_MS,
        kind: 'state',
        result: isBlock ? 'rate_limited' : 'active',
        detail: isBlock ? 'The service answered 429: the usage limit has been reached.' : null,
      })
    }
}

/** Owners of conversations and ciphertext, as many of each as are kept in memory. */
const addSessions = (sqlite: Database, accountIds: readonly string[], now: number): void => {
  const random = seededRandom(13)
  const add = inserter(sqlite, affinity)
  for (let n = 0; n < SESSIONS; n++)
    for (const kind of ['conversation', 'ciphertext']) {
      const accountId = accountIds[n % accountIds.length]
      const keyHash = Buffer.from(random.bytes(32)).toString('base64url')
      add({ kind, keyHash, accountId, usedAt: now - n * 20_000 })
    }
}

const usageNow = (random: Random, now: number) => ({
  at: now,
  windows: {
    fiveHour: { usedPercent: 100 * random.float(), windowMinutes: 300, resetAt: now + 2 * HOUR_MS },
    weekly: { usedPercent: 100 * random.float(), windowMinutes: 10_080, resetAt: now + 3 * DAY_MS },
    monthly: null,
  },
  credits: null,
  planType: 'plus',
})

const TOKENS = 'sum(input_tokens), sum(cached_input_tokens), sum(output_tokens), sum(cost_micros)'

/** The ledger's state beside the hourly totals, and how far retention has removed explanations. */
const SUM_UP = [
  `INSERT INTO account_totals (account_id, requests, input_tokens, cached_input_tokens, output_tokens, cost_micros)
   SELECT account_id, sum(requests), ${TOKENS} FROM request_hours GROUP BY account_id`,
  `UPDATE api_keys SET (request_count, input_tokens, cached_input_tokens, output_tokens, cost_micros) =
   (SELECT coalesce(sum(requests), 0), coalesce(sum(input_tokens), 0), coalesce(sum(cached_input_tokens), 0),
      coalesce(sum(output_tokens), 0), coalesce(sum(cost_micros), 0) FROM request_hours WHERE key_id = api_keys.id)`,
  `INSERT INTO facts SELECT 'considered_trimmed_through', started_at || ' ' || id FROM requests
   ORDER BY started_at DESC, id DESC LIMIT 1 OFFSET ${EXPLAINED}`,
]

const addAudit = (db: Db, now: number): Promise<void> =>
  commit(db, async (tx) => {
    const admin = { id: 'usr_0', name: ADMIN.username, role: 'admin', method: 'password', address: '10.0.0.1' }
    for (let n = AUDIT_ROWS; n > 0; n--) await append(tx, { ...admin, at: now - n * 60_000 }, 'login_success')
  })
