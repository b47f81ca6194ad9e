/** Reads the request log of codex-lb: totals per hour, and the rows of the last 30 days. */
import type { Database } from 'bun:sqlite'
import { REQUEST_KINDS, type requestHours, type requests } from '../../../db/schema/requests.ts'
import type { Clock } from '../../lib/clock.ts'
import { DAY_MS, HOUR_MS } from '../../lib/durations.ts'
import { CountedClients } from '../log/counted-clients.ts'
import { NO_COUNTS } from '../sums.ts'
import { asText, asTime, type CodexLbRow, getRows, readInSlices } from './codex-lb-rows.ts'

/** Account and key IDs are those of the other program. */
export interface FoundHistory {
  /** Identifies the installation, so that each request of its log is imported once. */
  origin: string
  /** The last ID of the log that was imported before. 0 if none was. */
  after: number
  /** Those that were not imported before, without warm-ups. */
  requests: number
  rows: number
  /** The first and the last of all requests, ms since epoch. */
  from: number
  to: number
  /** Oldest first. Empty if everything was imported before. */
  parts: readonly HistoryPart[]
  /** Key IDs → hex SHA-256 of the keys. */
  keyHashes: ReadonlyMap<string, string>
}

/** Consecutive requests of the log. */
export interface HistoryPart {
  /** The ID of the last one in the log. */
  lastId: number
  hours: readonly HourTotal[]
  /** Started in the last 30 days. */
  rows: readonly LoggedRequest[]
}

export type HourTotal = Required<typeof requestHours.$inferInsert>
export type LoggedRequest = Omit<typeof requests.$inferInsert, 'id'>

const ROW_DAYS = 30
/** The plan is kept in memory. */
export const MAX_LOGGED_ROWS = 50_000

/** Totals and rows per part: a commit of a few milliseconds. */
const PART_SIZE = 100

interface Reading {
  origin: string
  after: number
  clock: Pick<Clock, 'sleep' | 'now'>
}

/** Null if there are no requests. Warm-ups are not counted, as in Sluice. */
export const readHistory = async (store: Database, { origin, after, clock }: Reading): Promise<FoundHistory | null> => {
  const now = clock.now()
  const parts: { lastId: number; hours: HourTotal[]; rows: LoggedRequest[] }[] = []
  const clients = new CountedClients()
  let hours = new Map<string, HourTotal>()
  let rows: LoggedRequest[] = []
  let [count, kept, lastId, from, to] = [0, 0, 0, Number.POSITIVE_INFINITY, 0]
  const endPart = () => {
    if (lastId > after && lastId !== parts.at(-1)?.lastId) parts.push({ lastId, hours: [...hours.values()], rows })
    kept += rows.length
    hours = new Map()
    rows = []
    if (kept > 2 * MAX_LOGGED_ROWS) kept = keepNewest(parts)
  }
  await readInSlices(store, 'request_logs', clock, (row) => {
    const at = asTime(row.requested_at)
    if (at === null || at > now || asText(row.deleted_at) !== null) return
    from = Math.min(from, at)
    to = Math.max(to, at)
    if (Number(row.id) <= after) return
    lastId = Number(row.id)
    const request = toRequest(row, at)
    if (request.kind !== 'warmup') {
      count++
      addTo(hours, request, clients)
    }
    if (at >= now - ROW_DAYS * DAY_MS) rows.push(request)
    if (hours.size + rows.length >= PART_SIZE) endPart()
  })
  endPart()
  if (to === 0) return null
  const keyHashes = new Map(
    getRows(store, 'api_keys').map((row) => [String(row.id), (asText(row.key_hash) ?? '').toLowerCase()]),
  )
  return { origin, after, requests: count, rows: keepNewest(parts), from, to, parts, keyHashes }
}

/** Drops the oldest rows beyond the maximum. Returns how many are left. */
const keepNewest = (parts: readonly { rows: LoggedRequest[] }[]): number => {
  let kept = 0
  for (const part of parts.toReversed()) {
    const room = MAX_LOGGED_ROWS - kept
    if (part.rows.length > room) part.rows = room > 0 ? part.rows.slice(-room) : []
    kept += part.rows.length
  }
  return kept
}

const STATUSES = { success: 'ok', cancelled: 'cancelled' } as const
const HTTP_STATUSES = { ok: 200, cancelled: 499, error: 502 }

const toRequest = (row: CodexLbRow, at: number): LoggedRequest => {
  const given = asText(row.status)
  const status = given === 'success' || given === 'cancelled' ? STATUSES[given] : 'error'
  const requestId = asText(row.request_id) ?? `codex-lb-${row.id}`
  const cost = asNumber(row.cost_usd)
  return {
    requestId,
    startedAt: at,
    route: 'codex-lb', // it does not store the path
    kind: REQUEST_KINDS.find((kind) => kind === row.request_kind) ?? 'normal',
    transport: asTransport(row.transport) ?? 'http',
    upstreamTransport: asTransport(row.upstream_transport),
    keyId: asText(row.api_key_id),
    accountId: asText(row.account_id),
    model: asText(row.model),
    reasoningEffort: asText(row.reasoning_effort),
    serviceTier: asText(row.service_tier),
    responseId: requestId.startsWith('resp_') ? requestId : null,
    status,
    httpStatus: (status === 'error' ? asNumber(row.upstream_status_code) : null) ?? HTTP_STATUSES[status],
    errorCode: asText(row.error_code),
    errorMessage: asText(row.error_message),
    inputTokens: asNumber(row.input_tokens),
    cachedInputTokens: asNumber(row.cached_input_tokens),
    outputTokens: asNumber(row.output_tokens),
    reasoningTokens: asNumber(row.reasoning_tokens),
    costMicros: cost === null ? null : Math.round(cost * 1e6),
    clientIp: asText(row.client_ip),
    userAgent: asText(row.useragent),
    attempts: 1,
    firstEventMs: asNumber(row.latency_first_token_ms),
    totalMs: asNumber(row.latency_ms) ?? 0,
  }
}

const asNumber = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null

const asTransport = (value: unknown): 'http' | 'websocket' | null =>
  value === 'http' || value === 'websocket' ? value : null

const addTo = (hours: Map<string, HourTotal>, request: LoggedRequest, clients: CountedClients): void => {
  const { startedAt, status } = request
  const hour = startedAt - (startedAt % HOUR_MS)
  const place = {
    hour,
    accountId: request.accountId ?? '',
    keyId: request.keyId ?? '',
    model: request.model ?? '',
    client: clients.countedAs(request.userAgent ?? null, hour),
    sourceId: '',
  }
  const total = hours.getOrInsertComputed(Object.values(place).join('\0'), () => ({ ...place, ...NO_COUNTS }))
  const tokens = (request.inputTokens ?? 0) + (request.outputTokens ?? 0)
  total.requests++
  if (status === 'error') total.errors++
  if (status === 'cancelled') total.cancelled++
  total.inputTokens += request.inputTokens ?? 0
  total.cachedInputTokens += request.cachedInputTokens ?? 0
  total.outputTokens += request.outputTokens ?? 0
  total.costMicros += request.costMicros ?? 0
  if (request.costMicros === null && tokens > 0) total.unpriced++
}
