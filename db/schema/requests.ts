/** The request log: one row per request, one per attempt, and hourly totals, all written by the ledger. */
import { sql } from 'drizzle-orm'
import { index, integer, primaryKey, real, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** What a request was: a model request (`normal`, `compaction`, `prewarm`), or one of another surface. */
export const REQUEST_KINDS = [
  'normal',
  'compaction',
  'prewarm',
  'warmup',
  'image',
  'audio',
  'file',
  'control',
  'live',
  'embedding',
] as const

const REQUEST_STATUSES = ['ok', 'error', 'cancelled'] as const

export const requests = sqliteTable(
  'requests',
  {
    /**
     * Our random ID, ascending with time, so that rows are appended. `requestId` is shown to the client, which may have
     * chosen it.
     */
    id: text().primaryKey(),
    requestId: text().notNull(),
    startedAt: integer().notNull(),
    route: text().notNull(),
    kind: text({ enum: REQUEST_KINDS }).notNull(),
    transport: text({ enum: ['http', 'websocket'] }).notNull(),
    upstreamTransport: text({ enum: ['http', 'websocket'] }),
    keyId: text(),
    /** The client sent an unknown key where none was required. */
    unrecognizedKey: integer({ mode: 'boolean' }).notNull().default(false),
    accountId: text(),
    /** The model source that served it instead of an account. */
    sourceId: text(),
    /** The pool was used up, so a model source served it. */
    overflow: integer({ mode: 'boolean' }).notNull().default(false),
    model: text(),
    reasoningEffort: text(),
    serviceTier: text(),
    responseId: text(),
    conversationHash: text(),
    /** The conversation left the account that owned it. */
    moved: integer({ mode: 'boolean' }).notNull().default(false),
    /** That account could have served the request, and the move cost more than staying. */
    moveAvoidable: integer({ mode: 'boolean' }).notNull().default(false),
    /** Tokens that the move sent uncached: at most those that were cached on that account. */
    movedTokens: integer().notNull().default(0),
    /** The account's included quota was used up and its paid credits were used. */
    paidCredits: integer({ mode: 'boolean' }).notNull().default(false),
    /** Whether the key's owner had used up their share and borrowed from idle users. */
    borrowed: integer({ mode: 'boolean' }).notNull().default(false),
    status: text({ enum: REQUEST_STATUSES }).notNull(),
    httpStatus: integer().notNull(),
    /**
     * request · auth · select · connect · first_event · upstream · stream · finish: the phase that failed or was
     * cancelled.
     */
    phase: text(),
    errorCode: text(),
    errorMessage: text(),
    /** Why no outbound proxy was available, if that is why it failed. */
    egressReason: text(),
    inputTokens: integer(),
    cachedInputTokens: integer(),
    outputTokens: integer(),
    reasoningTokens: integer(),
    costMicros: integer(),
    clientIp: text(),
    userAgent: text(),
    attempts: integer().notNull(),
    /** Milliseconds with three decimals. */
    admitMs: real(),
    selectMs: real(),
    connectMs: real(),
    firstEventMs: real(),
    totalMs: real().notNull(),
  },
  (t) => [
    index('requests_started').on(t.startedAt, t.id),
    index('requests_account').on(t.accountId, t.startedAt),
    index('requests_key').on(t.keyId, t.startedAt),
    index('requests_model').on(t.model, t.startedAt),
    index('requests_request').on(t.requestId),
    index('requests_conversation').on(t.conversationHash, t.startedAt).where(sql`${t.conversationHash} IS NOT NULL`),
    index('requests_source').on(t.sourceId, t.startedAt).where(sql`${t.sourceId} IS NOT NULL`),
    /**
     * Rare statuses that users filter by. The index has the other filter columns, so that only rows that are shown are
     * read.
     */
    index('requests_trouble')
      .on(t.startedAt, t.id, t.status, t.errorCode, t.accountId, t.keyId, t.model)
      .where(sql`${t.status} <> 'ok'`),
    /** Rows are written when a turn ends, so new rows are found by their end. */
    index('requests_ended').on(sql`${t.startedAt} + ${t.totalMs}`),
  ],
)

export const attempts = sqliteTable(
  'attempts',
  {
    requestRowId: text()
      .notNull()
      .references(() => requests.id, { onDelete: 'cascade' }),
    n: integer().notNull(),
    accountId: text(),
    startedAt: integer().notNull(),
    durationMs: real().notNull(),
    outcome: text({ enum: ['ok', 'failed', 'cancelled'] }).notNull(),
    upstreamStatus: integer(),
    code: text(),
    message: text(),
    /** Every candidate with its score or the reason it was skipped: `proxy/pool/select.ts` Considered[]. */
    considered: text({ mode: 'json' }).$type<unknown[]>(),
  },
  (t) => [primaryKey({ columns: [t.requestRowId, t.n] })],
)

/** The columns that are summed. A function, because a column object belongs to one table. */
const sums = () => ({
  requests: integer().notNull(),
  errors: integer().notNull(),
  cancelled: integer().notNull(),
  inputTokens: integer().notNull(),
  cachedInputTokens: integer().notNull(),
  outputTokens: integer().notNull(),
  costMicros: integer().notNull(),
  unpriced: integer().notNull(),
  /** Requests that moved their conversation to another account, and those of them that were avoidable. */
  moves: integer().notNull().default(0),
  avoidableMoves: integer().notNull().default(0),
  /** The sum of the requests' `movedTokens`. */
  movedTokens: integer().notNull().default(0),
})

/**
 * Hourly totals. Key columns hold an empty string for "none", because they cannot be null. WITHOUT ROWID stores the
 * rows of an hour together.
 */
export const requestHours = sqliteTable(
  'request_hours',
  {
    hour: integer().notNull(),
    accountId: text().notNull(),
    keyId: text().notNull(),
    model: text().notNull(),
    /** The client program from its user agent, such as `codex_exec`. `other`: the hour has too many of them. */
    client: text().notNull().default(''),
    /** The model source; empty: an account served it, or none did. */
    sourceId: text().notNull().default(''),
    ...sums(),
  },
  (t) => [
    primaryKey({ columns: [t.hour, t.accountId, t.keyId, t.model, t.client, t.sourceId] }),
    index('request_hours_account').on(t.accountId, t.hour),
    index('request_hours_key').on(t.keyId, t.hour),
  ],
)

/** The dimension the totals are grouped by. `all`: not grouped, and `id` is empty. */
export const DIMENSIONS = ['all', 'account', 'key', 'model', 'client', 'source'] as const

/**
 * Totals of days and longer spans, computed from `request_hours` by `model/reports/request-spans.ts`. A report over
 * years reads thousands of rows instead of a million. WITHOUT ROWID, like the hours.
 */
export const requestSpans = sqliteTable(
  'request_spans',
  {
    /** How long the span is; `start` is a multiple of it. */
    spanHours: integer().notNull(),
    dimension: text({ enum: DIMENSIONS }).notNull(),
    /** ms since epoch */
    start: integer().notNull(),
    /** The ID of an account, key or source, or the name of a model or client. Empty: none. */
    id: text().notNull(),
    ...sums(),
    /**
     * For days: bit n is set when there was a request in hour n (UTC), from which the days of any time zone can be
     * found.
     */
    activeHours: integer().notNull(),
  },
  (t) => [primaryKey({ columns: [t.spanHours, t.dimension, t.start, t.id] })],
)

/** A histogram of 64 buckets, as counts of the buckets that are not empty. */
export type Histogram = [bucket: number, count: number][]

/**
 * Figures of reports that cannot be computed from hourly totals, per hour with requests. Written when the hour is over,
 * so that a report does not read the log.
 */
export const requestDigests = sqliteTable('request_digests', {
  /** Start of the hour, ms since epoch. */
  hour: integer().primaryKey(),
  reasoningTokens: integer().notNull(),
  /** Time to the first token. */
  firstToken: text({ mode: 'json' }).$type<Histogram>().notNull(),
  /** Output tokens per second. */
  speed: text({ mode: 'json' }).$type<Histogram>().notNull(),
  /** The first eight digits of the hash of each conversation. */
  conversations: text({ mode: 'json' }).$type<string[]>().notNull(),
})
