/** Two years of a busy pool, written directly into the tables: a log of requests with attempts, and hourly totals. */
import type { Database, SQLQueryBindings } from 'bun:sqlite'
import { getTableColumns, getTableName, type Table } from 'drizzle-orm'
import { toSnakeCase } from 'drizzle-orm/casing'
import { attempts, requestHours, requests } from '../db/schema/requests.ts'
import { type Random, seededRandom } from '../src/lib/random.ts'

interface HistoryPlan {
  /** The end of the history, ms since epoch. */
  now: number
  accountIds: readonly string[]
  keyIds: readonly string[]
  logRows: number
  /** The newest of the `hours`, over which the log rows are spread evenly. */
  logHours: number
  hours: number
}

export const HOUR_MS = 3_600_000
/** Shares of the requests. */
const MODELS = ['gpt-5.5', 'gpt-5.5', 'gpt-5.5', 'gpt-5.5-codex', 'gpt-5.5-codex', 'gpt-5.4-mini', 'gpt-5.3'] as const
const FAILED = 0.03
const CANCELLED = 0.02
const CODES = ['rate_limit_exceeded', 'server_error', 'upstream_timeout', 'usage_limit_reached'] as const
/** An account, a key and a model that are in use at the same time. Every hour some end and others start. */
const TALKS = 50
const LEAVE = 0.3
/** Only failed and the newest requests have their routing explanation, as retention leaves it. */
export const EXPLAINED = 10_000
const ROUTE = '/backend-api/codex/responses'

interface Conversation {
  accountId: string
  keyId: string
  model: string
  conversation: string
}

/** Runs in one transaction. Totals of hours with a log are computed from its rows; the others are generated. */
export function writeHistory(sqlite: Database, plan: HistoryPlan): void {
  const random = seededRandom(7)
  const addTurn = inserter(sqlite, requests)
  const addAttempt = inserter(sqlite, attempts)
  const addHour = inserter(sqlite, requestHours)
  const considered = explanations(plan.accountIds, random)
  const first = plan.now - (plan.now % HOUR_MS) - (plan.hours - 1) * HOUR_MS
  const perHour = plan.logRows / plan.logHours
  let talks: Conversation[] = Array.from({ length: TALKS }, () => newConversation(plan, random))
  let written = 0
  for (let hour = 0; hour < plan.hours; hour++) {
    const at = first + hour * HOUR_MS
    talks = talks.map((talk) => (random.float() < LEAVE ? newConversation(plan, random) : talk))
    const logged = hour - (plan.hours - plan.logHours) + 1
    if (logged <= 0) {
      for (const sum of generateHour(talks, at, random)) addHour(sum)
      continue
    }
    const length = Math.min(HOUR_MS, plan.now - at)
    const until = Math.round(logged * perHour)
    const sums = new Map<string, HourSum>()
    for (const count = until - written; written < until; written++) {
      const startedAt = at + Math.floor(((count - (until - written)) / count) * length)
      const talk = talks[Math.floor(random.float() * TALKS)]!
      const turn = getTurn(talk, { id: random.orderedId('trn', startedAt), startedAt, random })
      addTurn(turn)
      const isExplained = turn.status === 'error' || written >= plan.logRows - EXPLAINED
      addAttempt(getAttempt(turn, isExplained ? considered[written % considered.length]! : null))
      addUp(sums, turn, at)
    }
    for (const sum of sums.values()) addHour(sum)
  }
}

type Turn = typeof requests.$inferInsert
type HourSum = typeof requestHours.$inferInsert

const newConversation = ({ accountIds, keyIds }: HistoryPlan, random: Random): Conversation => ({
  accountId: one(accountIds, random),
  keyId: one(keyIds, random),
  model: one(MODELS, random),
  conversation: Buffer.from(random.bytes(32)).toString('base64url'),
})

const one = <T>(list: readonly T[], random: Random): T => list[Math.floor(random.float() * list.length)]!

const getTurn = (
  talk: Conversation,
  { id, startedAt, random }: { id: string; startedAt: number; random: Random },
): Turn => {
  const chance = random.float()
  const status = chance < FAILED ? 'error' : chance < FAILED + CANCELLED ? 'cancelled' : 'ok'
  const isError = status === 'error'
  const inputTokens = 2000 + Math.floor(random.float() * 90_000)
  const firstEventMs = 300 + random.float() * 4000
  return {
    id,
    requestId: random.orderedId('req', startedAt),
    startedAt,
    route: ROUTE,
    kind: 'normal',
    transport: 'http',
    upstreamTransport: 'websocket',
    keyId: talk.keyId,
    accountId: talk.accountId,
    model: talk.model,
    reasoningEffort: chance < 0.5 ? 'medium' : 'high',
    serviceTier: 'auto',
    responseId: isError ? null : `resp_${id}`,
    conversationHash: talk.conversation,
    status,
    httpStatus: isError ? 502 : 200,
    phase: isError ? 'first_event' : null,
    errorCode: isError ? one(CODES, random) : null,
    errorMessage: isError ? 'The service said that it is overloaded; please try again.' : null,
    inputTokens: isError ? null : inputTokens,
    cachedInputTokens: isError ? null : Math.floor(inputTokens * 0.8),
    outputTokens: isError ? null : Math.floor(random.float() * 2000),
    reasoningTokens: isError ? null : Math.floor(random.float() * 500),
    costMicros: isError ? null : Math.floor(inputTokens * 0.6),
    clientIp: `10.0.${Math.floor(random.float() * 4)}.${Math.floor(random.float() * 250)}`,
    userAgent: 'codex_exec/0.169.0 (Debian 12.0.0; x86_64) xterm',
    attempts: 1,
    admitMs: 0.1,
    selectMs: 0.3,
    connectMs: 40,
    firstEventMs,
    totalMs: firstEventMs + random.float() * 20_000,
  }
}

const getAttempt = (turn: Turn, considered: string | null) => ({
  requestRowId: turn.id,
  n: 1,
  accountId: turn.accountId,
  startedAt: turn.startedAt,
  durationMs: turn.totalMs,
  outcome: turn.status === 'ok' ? 'ok' : turn.status === 'error' ? 'failed' : 'cancelled',
  upstreamStatus: turn.httpStatus,
  code: turn.errorCode,
  message: turn.errorMessage,
  considered,
})

/**
 * Routing explanations of all accounts as JSON. A few are reused, because serialising one takes longer than storing it.
 */
const explanations = (accountIds: readonly string[], random: Random): string[] =>
  Array.from({ length: 20 }, () =>
    JSON.stringify(
      accountIds.map((id) => {
        const isSkipped = random.float() < 0.1
        return { id, score: isSkipped ? null : random.float(), skipped: isSkipped ? 'rate_limited' : null, until: null }
      }),
    ),
  )

const generateHour = (talks: readonly Conversation[], hour: number, random: Random): Iterable<HourSum> => {
  const sums = new Map<string, HourSum>()
  for (const talk of talks)
    for (let n = 0; n < 2; n++) addUp(sums, getTurn(talk, { id: '', startedAt: hour, random }), hour)
  return sums.values()
}

const addUp = (sums: Map<string, HourSum>, turn: Turn, hour: number): void => {
  const { accountId, keyId, model } = turn
  const place = { hour, accountId: accountId ?? '', keyId: keyId ?? '', model: model ?? '' }
  const name = `${place.accountId} ${place.keyId} ${place.model}`
  const sum = sums.get(name) ?? { ...place, ...NOTHING }
  sum.requests++
  if (turn.status === 'error') sum.errors++
  if (turn.status === 'cancelled') sum.cancelled++
  sum.inputTokens += turn.inputTokens ?? 0
  sum.cachedInputTokens += turn.cachedInputTokens ?? 0
  sum.outputTokens += turn.outputTokens ?? 0
  sum.costMicros += turn.costMicros ?? 0
  sums.set(name, sum)
}

const NOTHING = {
  requests: 0,
  errors: 0,
  cancelled: 0,
  inputTokens: 0,
  cachedInputTokens: 0,
  outputTokens: 0,
  costMicros: 0,
  unpriced: 0,
}

/** Writes a row of `table` with its values as they are. JSON must be serialised already. */
export function inserter<T extends Table>(sqlite: Database, table: T) {
  const columns = Object.entries(getTableColumns(table))
  const names = columns.map(([property]) => toSnakeCase(property))
  const statement = sqlite.prepare(
    `INSERT INTO ${getTableName(table)} (${names}) VALUES (${columns.map(() => '?')}) ON CONFLICT DO NOTHING`,
  )
  return (row: { [Property in keyof T['$inferInsert']]: unknown }): void => {
    const given: Record<string, unknown> = row
    const values = columns.map(
      ([property, column]) => given[property] ?? (column.hasDefault ? column.mapToDriverValue(column.default) : null),
    )
    statement.run(...(values as SQLQueryBindings[])) // as: texts, numbers and null
  }
}
