/** Batches of ended turns, and the accounts and keys they are for. */
import { commit, type Db } from '../../../db/commit.ts'
import { accounts } from '../../../db/schema/accounts.ts'
import { apiKeyLimits, apiKeys } from '../../../db/schema/keys.ts'
import { HOUR_MS } from '../../../src/lib/durations.ts'
import type { LedgerBatch, LedgerEntry } from '../../../src/proxy/ledger/ledger-batch.ts'

export const START = Date.UTC(2026, 0, 1, 12)
export const RESET_AT = START + 5 * HOUR_MS
const ACCOUNTS = ['acc_a', 'acc_b', 'acc_c']
const KEYS = ['key_a', 'key_b', 'key_c']

export const fill = (db: Db): Promise<void> =>
  commit(db, async (tx) => {
    for (const id of ACCOUNTS) await tx.insert(accounts).values(anAccount(id)).run()
    for (const id of KEYS) {
      await tx.insert(apiKeys).values({ id, name: id, keyHash: id, keyPrefix: 'sk-', createdAt: 0 }).run()
      await tx.insert(apiKeyLimits).values(aLimit(id)).run()
    }
  })

const anAccount = (id: string): typeof accounts.$inferInsert => ({
  id,
  email: `${id}@example.com`,
  planType: 'pro',
  accessTokenSealed: '',
  refreshTokenSealed: '',
  idTokenSealed: '',
  lastRefreshAt: 0,
  createdAt: 0,
})

const aLimit = (keyId: string): typeof apiKeyLimits.$inferInsert => ({
  id: `lim_${keyId}`,
  keyId,
  limitType: 'total_tokens',
  limitWindow: '5h',
  maxValue: 1e9,
  resetAt: RESET_AT,
  leases: { 1: 100, 2: 50 },
})

export const batchOf = (entries: LedgerEntry[], rest: Partial<LedgerBatch> = {}): LedgerBatch => ({
  process: 1,
  entries,
  usage: new Map(),
  meters: [],
  rejected: [],
  ...rest,
})

let made = 0
export const anEntry = (
  row: Partial<LedgerEntry['row']> = {},
  rest: Partial<Omit<LedgerEntry, 'row'>> = {},
): LedgerEntry => ({
  row: {
    id: `req_${++made}`,
    requestId: `client-${made}`,
    startedAt: START,
    route: '/v1/responses',
    kind: 'normal',
    transport: 'http',
    keyId: 'key_a',
    accountId: 'acc_a',
    model: 'strong',
    status: 'ok',
    httpStatus: 200,
    inputTokens: 100,
    cachedInputTokens: 40,
    outputTokens: 10,
    costMicros: 7,
    attempts: 1,
    totalMs: 12.345,
    ...row,
  },
  attempts: [],
  hourModel: 'strong',
  limitDeltas: [],
  isServiceFault: false,
  affinity: [],
  ...rest,
})

export const anAttempt = (n: number, accountId: string): LedgerEntry['attempts'][number] => ({
  n,
  accountId,
  startedAt: START,
  durationMs: 1.5,
  outcome: n === 1 ? 'failed' : 'ok',
  upstreamStatus: n === 1 ? 429 : 200,
  code: null,
  message: n === 1 ? 'too "many" requests' : null,
  considered: [{ id: accountId, score: 0.5, skipped: null, until: null }],
})

export const aSnapshot = (at: number) => ({
  at,
  windows: { fiveHour: null, weekly: null, monthly: null },
  credits: null,
  planType: 'pro',
})

export const owner = (keyHash: string, accountId: string) =>
  ({
    kind: 'conversation',
    keyHash,
    accountId,
    mixed: keyHash === 'talk',
    usedAt: START,
    units: 8,
    moveUnits: 2.5,
    cachedTokens: 2_000,
  }) as const

export const delta = (keyId: string, amount: number, resetAt = RESET_AT) => ({
  limitId: `lim_${keyId}`,
  keyId,
  delta: amount,
  leased: amount,
  resetAt,
})

export const aRejection = (client: string, count: number): LedgerBatch['rejected'][number] => ({
  minute: START,
  client,
  reason: 'firewall',
  count,
  lastAt: START + count,
  keyStart: count === 2 ? 'sk-12345' : null,
  keyId: null,
  model: null,
  route: '/v1/responses',
  userAgent: null,
})

export const randomBatch = (random: () => number, size: number): LedgerBatch => {
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)]! // never empty
  const upTo = (most: number) => Math.floor(random() * most)
  const entry = (): LedgerEntry => {
    const [keyId, accountId] = [pick([...KEYS, null, 'key_gone']), pick([...ACCOUNTS, null, 'acc_gone'])]
    return anEntry(
      {
        keyId,
        accountId,
        startedAt: START + upTo(4 * HOUR_MS),
        status: pick(['ok', 'error', 'cancelled']),
        kind: pick(['normal', 'image', 'warmup']),
        model: pick(['strong', null, 'weak']),
        costMicros: pick([null, upTo(1000)]),
        userAgent: pick([null, 'codex_exec/1', `random-${upTo(50)}/1`]),
        errorMessage: pick([null, `'"\\{},\n${upTo(9)}`]),
        firstEventMs: pick([null, random() * 1000]),
      },
      {
        hourModel: pick(['strong', null, 'weak']),
        attempts: accountId ? [anAttempt(1, accountId)] : [],
        limitDeltas: keyId ? [{ ...delta(keyId, 1 + upTo(9), RESET_AT + upTo(3) * HOUR_MS), leased: upTo(3) }] : [],
        affinity: accountId ? [owner(`talk-${upTo(40)}`, accountId)] : [],
      },
    )
  }
  return batchOf(Array.from({ length: size }, entry), {
    usage: new Map([[pick(ACCOUNTS), aSnapshot(START + upTo(1000))]]),
    rejected: [aRejection(pick(['::1', '10.0.0.1', '10.0.0.2']), 1 + upTo(5))],
  })
}
