/** The request log: each filter, stable pagination while rows arrive, hidden fields, and deletion. */
import { beforeEach, describe, expect, test } from 'bun:test'
import { eq, sql } from 'drizzle-orm'
import { commit, type Db } from '../../db/commit.ts'
import { accounts, affinity } from '../../db/schema/accounts.ts'
import { apiKeys } from '../../db/schema/keys.ts'
import { attempts, requestHours, requests } from '../../db/schema/requests.ts'
import { retain } from '../../src/jobs/retention.ts'
import { requestLog, requestLogOptions, requestLogs } from '../../src/model/log/request-log.ts'
import { LogFilters, LogQuery } from '../../src/model/log/request-log-query.ts'
import { ManualClock } from '../support/clock.ts'
import { testDb } from '../support/db.ts'

const START = Date.UTC(2026, 0, 10)
const DAY_MS = 86_400_000
const ALL = { scope: 'all' as const, sensitive: true }
const LITTLE = { scope: 'all' as const, sensitive: false }

let db: Db

beforeEach(async () => {
  db = testDb().db
  await commit(db, async (tx) => {
    await tx
      .insert(accounts)
      .values([anAccount('acc_a', 'Main seat'), anAccount('acc_b', null)])
      .run()
    await tx
      .insert(apiKeys)
      .values({ id: 'key_a', name: 'Laptop', keyHash: 'h', keyPrefix: 'sk-1', createdAt: 0 })
      .run()
  })
})

const anAccount = (id: string, alias: string | null): typeof accounts.$inferInsert => ({
  id,
  alias,
  email: `${id}@example.com`,
  planType: 'pro',
  accessTokenSealed: '',
  refreshTokenSealed: '',
  idTokenSealed: '',
  lastRefreshAt: 0,
  createdAt: 0,
})

type Row = typeof requests.$inferInsert

const aRow = (id: string, row: Partial<Row> = {}): Row => ({
  id,
  requestId: `client-${id}`,
  startedAt: START,
  route: '/v1/responses',
  kind: 'normal',
  transport: 'http',
  status: 'ok',
  httpStatus: 200,
  attempts: 1,
  totalMs: 10.5,
  ...row,
})

const add = (...rows: Row[]) => commit(db, async (tx) => void (await tx.insert(requests).values(rows).run()))

const ids = async (asked: Record<string, unknown>, visibility = ALL) =>
  (await requestLogs(db, LogQuery.parse(asked), visibility)).requests.map(({ id }) => id).sort()

describe('filters', () => {
  beforeEach(() =>
    add(
      aRow('1', {
        accountId: 'acc_a',
        keyId: 'key_a',
        model: 'strong',
        reasoningEffort: 'high',
        conversationHash: 'talk',
      }),
      aRow('2', {
        accountId: 'acc_b',
        model: 'strong',
        startedAt: START + 1000,
        clientIp: '192.0.2.7',
        userAgent: 'codex_cli/1.0 x',
      }),
      aRow('3', { model: 'weak', reasoningEffort: 'low', status: 'cancelled', startedAt: START + 2000 }),
      aRow('4', { status: 'error', errorCode: 'usage_limit_reached', startedAt: START + 3000 }),
      aRow('5', { status: 'error', errorCode: 'insufficient_quota', errorMessage: '100%_used up' }),
      aRow('6', { status: 'error', errorCode: 'upstream_error', errorMessage: '100 percent used' }),
      aRow('7', { status: 'error', responseId: 'resp_A\\B' }),
    ),
  )

  test.each<[Record<string, unknown>, string]>([
    [{}, '1234567'],
    [{ accountId: 'acc_a' }, '1'],
    [{ accountId: ['acc_a', 'acc_b'] }, '12'],
    [{ apiKeyId: ['key_a', 'key_gone'] }, '1'],
    [{ model: 'strong' }, '12'],
    [{ model: ['strong', 'weak'], reasoningEffort: 'low' }, '3'],
    [{ modelOption: ['strong:::', 'weak:::low'] }, '23'],
    [{ modelOption: 'strong:::high' }, '1'],
    [{ client: 'codex_cli' }, '2'],
    [{ client: 'codex' }, ''],
    [{ client: 'CODEX_CLI' }, ''],
    [{ client: ['codex%', 'codex_cli'] }, '2'],
    [{ conversation_id: 'talk' }, '1'],
    [{ since: '2026-01-10T00:00:01Z' }, '234'],
    [{ since: '2026-01-10T02:00:01+02:00', until: '2026-01-10T00:00:02' }, '23'],
    [{ status: 'ok' }, '12'],
    [{ status: 'cancelled' }, '3'],
    [{ status: 'rate_limit' }, '4'],
    [{ status: 'quota' }, '5'],
    [{ status: 'error' }, '67'],
    [{ status: ['rate_limit', 'cancelled'] }, '34'],
    [{ status: ['all', 'ok'] }, '1234567'],
    [{ status: 'error', model: 'strong' }, ''],
    [{ code: ['upstream_error', 'insufficient_quota '] }, '56'],
    [{ status: '', code: '', model: '', conversation_id: '', since: '', cursor: '' }, '1234567'],
    [{ search: ' CLIENT-3 ' }, '3'],
    [{ search: 'main seat' }, '1'],
    [{ search: 'acc_b@example' }, '2'],
    [{ search: 'laptop' }, '1'],
    [{ search: '100%' }, '5'],
    [{ search: '%_u' }, '5'],
    [{ search: '_' }, '124567'],
    [{ search: 'A\\b' }, '7'],
    [{ search: "' OR 1=1 --" }, ''],
    [{ search: '192.0.2' }, '2'],
  ])('%j finds %s', async (asked, found) => {
    expect((await ids(asked)).join('')).toBe(found)
    expect((await requestLogs(db, LogQuery.parse(asked), ALL)).total).toBe(found.length)
  })

  test('addresses and user agents are neither shown nor searched without the permission', async () => {
    expect(await ids({ search: '192.0.2' }, LITTLE)).toEqual([])
    expect(await ids({ search: 'codex_cli' }, LITTLE)).toEqual([])
    expect(await requestLog(db, '2', LITTLE)).toMatchObject({
      clientIp: null,
      useragent: null,
      useragentGroup: 'codex_cli',
    })
    expect(await requestLog(db, '2', ALL)).toMatchObject({ clientIp: '192.0.2.7', useragent: 'codex_cli/1.0 x' })
    expect((await requestLog(db, '1', LITTLE))?.conversationId).toBeNull()
    expect((await requestLog(db, '1', ALL))?.conversationId).toBe('talk')
  })

  test('accounts, their errors and keys are not searched for users who cannot see them', async () => {
    const hidden = (search: string, visibility: object) => ids({ search }, { ...ALL, ...visibility })
    for (const search of ['main seat', '100 percent']) {
      expect(await hidden(search, { hidesKeys: true })).toHaveLength(1)
      expect(await hidden(search, { scope: 'all', hidesAccounts: true })).toEqual([])
    }
    for (const search of ['laptop', 'key_a']) {
      expect(await hidden(search, { scope: 'all', hidesAccounts: true })).toEqual(['1'])
      expect(await hidden(search, { hidesKeys: true })).toEqual([])
    }
  })

  test('the options are the values that occur under the filters', async () => {
    expect(await requestLogOptions(db, LogFilters.parse({}), ALL)).toEqual({
      accountIds: ['acc_a', 'acc_b'],
      modelOptions: [
        { model: 'strong', reasoningEffort: null },
        { model: 'strong', reasoningEffort: 'high' },
        { model: 'weak', reasoningEffort: 'low' },
      ],
      apiKeys: [{ id: 'key_a', name: 'Laptop', keyPrefix: 'sk-1' }],
      statuses: ['ok', 'cancelled', 'rate_limit', 'quota', 'error'],
    })
    expect(await requestLogOptions(db, LogFilters.parse({ model: 'weak' }), ALL)).toMatchObject({
      accountIds: [],
      modelOptions: [{ model: 'weak' }],
      statuses: ['cancelled'],
    })
  })

  test.each([
    { limit: '0' },
    { limit: '1001' },
    { status: 'fine' },
    { since: 'yesterday' },
    { cursor: 'bm9uc2Vuc2U' },
    { limit: '1.5' },
    { offset: '-1' },
    { offset: '1.5' },
    { offset: '10001' },
    { client: 'codex_exec/0.169.0' },
    { client: 'codex exec' },
    { model: Array.from({ length: 201 }, () => 'x') },
  ])('%j is rejected', (asked) => {
    expect(LogQuery.safeParse(asked).success).toBe(false)
  })
})

describe('pages', () => {
  test('following the cursor shows every row once, even with equal times and new rows', async () => {
    await add(...Array.from({ length: 23 }, (_, i) => aRow(`r${i}`, { startedAt: START + Math.floor(i / 4) })))
    const seen: string[] = []
    let cursor: string | null = null
    let arrivals = 0
    do {
      const page = await requestLogs(db, LogQuery.parse({ limit: '5', ...(cursor && { cursor }) }), ALL)
      seen.push(...page.requests.map(({ id }) => id))
      expect(page.hasMore).toBe(page.nextCursor !== null)
      await add(aRow(`new${arrivals++}`, { startedAt: START + DAY_MS }))
      cursor = page.nextCursor
    } while (cursor !== null)
    expect(seen.filter((id) => id.startsWith('new'))).toEqual([])
    expect(seen).toHaveLength(23)
    expect(new Set(seen).size).toBe(23)
  })

  test('newest first, with an offset for clients that count', async () => {
    await add(...Array.from({ length: 5 }, (_, i) => aRow(`r${i}`, { startedAt: START + i })))
    const page = await requestLogs(db, LogQuery.parse({ limit: '2', offset: '1' }), ALL)
    expect(page.requests.map(({ id }) => id)).toEqual(['r3', 'r2'])
    expect(page).toMatchObject({ total: 5, hasMore: true })
  })

  test('counting stops at ten thousand', async () => {
    await add(aRow('r0', { model: 'rare' }))
    await commit(db, async (tx) => {
      await tx.run(sql`WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 10000)
        INSERT INTO requests (id, request_id, started_at, route, kind, transport, status, http_status, attempts, total_ms)
        SELECT 'r' || n, 'r', ${START}, '/', 'normal', 'http', 'ok', 200, 1, 1 FROM n`)
    })
    expect(await requestLogs(db, LogQuery.parse({}), ALL)).toMatchObject({ total: null, moreThan: 10_000 })
    await commit(db, async (tx) => void (await tx.delete(requests).where(eq(requests.model, 'rare')).run()))
    expect(await requestLogs(db, LogQuery.parse({}), ALL)).toMatchObject({ total: 10_000, moreThan: null })
  })
})

describe('one request', () => {
  test('shows tokens, cost, phases and each attempt with the candidates', async () => {
    await add(
      aRow('1', {
        accountId: 'acc_a',
        keyId: 'key_a',
        inputTokens: 100,
        cachedInputTokens: 30,
        outputTokens: 20,
        costMicros: 1_250_000,
        admitMs: 0.1,
        selectMs: 0.25,
        connectMs: 5.125,
        firstEventMs: 80,
        phase: 'finish',
        attempts: 3,
        moved: true,
      }),
    )
    await commit(db, async (tx) => {
      const attempt = { requestRowId: '1', startedAt: START, durationMs: 3 }
      const considered = [
        { id: 'acc_a', score: 0.5, skipped: null, until: null },
        { id: 'acc_b', skipped: 'tried', until: START },
        7,
      ]
      await tx
        .insert(attempts)
        .values({ ...attempt, n: 2, accountId: 'acc_a', outcome: 'ok', upstreamStatus: 200 })
        .run()
      await tx
        .insert(attempts)
        .values({ ...attempt, n: 3, outcome: 'failed', code: 'no_accounts' })
        .run()
      await tx
        .insert(attempts)
        .values({
          ...attempt,
          n: 1,
          accountId: 'acc_gone',
          outcome: 'failed',
          upstreamStatus: 429,
          code: 'usage_limit_reached',
          considered,
        })
        .run()
    })
    expect(await requestLog(db, '1', ALL)).toMatchObject({
      requestedAt: '2026-01-10T00:00:00.000Z',
      accountName: 'Main seat',
      planType: 'pro',
      apiKeyName: 'Laptop',
      tokens: 120,
      costUsd: 1.25,
      failurePhase: null,
      upstreamStatusCode: 200,
      upstreamErrorCode: null,
      attemptCount: 3,
      movedAccount: true,
      latencyMs: 10.5,
      phases: { admitMs: 0.1, selectMs: 0.25, connectMs: 5.125, firstEventMs: 80, totalMs: 10.5 },
      attempts: [
        {
          n: 1,
          accountId: 'acc_gone',
          accountName: null,
          code: 'usage_limit_reached',
          isExplained: true,
          considered: [
            { accountName: 'Main seat', score: 0.5, skipped: null, reason: null, until: null },
            {
              accountId: 'acc_b',
              score: null,
              skipped: 'tried',
              reason: 'already failed for this request',
              until: '2026-01-10T00:00:00.000Z',
            },
          ],
        },
        { n: 2, accountName: 'Main seat', isExplained: false, considered: [] },
        { n: 3, accountName: null },
      ],
    })
    expect(await requestLog(db, '2', ALL)).toBeNull()
  })

  test('shows where it failed, and unknown tokens are not zero', async () => {
    await add(aRow('1', { status: 'error', phase: 'connect', errorCode: 'upstream_unreachable' }))
    expect(await requestLog(db, '1', ALL)).toMatchObject({ failurePhase: 'connect', tokens: null, costUsd: null })
    await add(aRow('2', { inputTokens: 5 }), aRow('3', { outputTokens: 7 }))
    expect(await requestLog(db, '2', ALL)).toMatchObject({ tokens: 5, cachedInputTokens: null, outputTokens: null })
    expect(await requestLog(db, '3', ALL)).toMatchObject({ tokens: 7, inputTokens: null })
  })

  test('impossible values are omitted: more cached than input tokens, reasoning without output', async () => {
    await add(
      aRow('1', { inputTokens: 5, cachedInputTokens: 9, reasoningTokens: 3 }),
      aRow('2', { cachedInputTokens: 9 }),
    )
    expect(await requestLog(db, '1', ALL)).toMatchObject({ tokens: 8, cachedInputTokens: 5, outputTokens: 3 })
    expect((await requestLog(db, '1', ALL))?.outputTokensRaw).toBeNull()
    expect((await requestLog(db, '2', ALL))?.cachedInputTokens).toBe(0)
  })

  test('a page names account and key, and survives their deletion', async () => {
    await add(
      aRow('1', { accountId: 'acc_b', keyId: 'key_a' }),
      aRow('2', { accountId: 'gone', keyId: 'gone', startedAt: START + 1 }),
    )
    expect((await requestLogs(db, LogQuery.parse({}), ALL)).requests).toMatchObject([
      { id: '2', accountName: null, apiKeyName: null },
      { id: '1', accountName: 'acc_b@example.com', apiKeyName: 'Laptop' },
    ])
  })
})

describe('retention', () => {
  const forget = async (requestLogRetentionDays: number, clock = new ManualClock(START)) => {
    const settings = {
      current: () => ({ requestLogRetentionDays, auditRetentionDays: 0, conversationAffinityMaxAgeDays: 30 }),
    }
    const done = retain({ db, clock, settings }, new AbortController().signal)
    await clock.advance('10s')
    await done
  }

  const addOld = async (count: number) => {
    await add(...Array.from({ length: count }, (_, i) => aRow(`old${i}`, { startedAt: START - 8 * DAY_MS - i })))
    await commit(db, async (tx) => {
      for (let i = 0; i < count; i++)
        await tx
          .insert(attempts)
          .values({ requestRowId: `old${i}`, n: 1, startedAt: 0, durationMs: 1, outcome: 'ok' })
          .run()
    })
  }

  test('old rows are deleted with their attempts, the rest stays', async () => {
    await addOld(1)
    await add(aRow('young', { startedAt: START - 7 * DAY_MS }))
    await forget(7)
    expect(await ids({ limit: 1000 })).toEqual(['young'])
    expect(await db.select().from(attempts).all()).toEqual([])
  })

  test('their hourly totals stay', async () => {
    await addOld(3)
    const hour = START - 8 * DAY_MS
    const counted = { requests: 3, errors: 1, cancelled: 0, inputTokens: 300, cachedInputTokens: 20, outputTokens: 30 }
    const sums = {
      hour,
      accountId: 'acc_a',
      keyId: '',
      model: 'strong',
      client: '',
      sourceId: '',
      ...counted,
      costMicros: 5,
      unpriced: 0,
      ...{ moves: 0, avoidableMoves: 0, movedTokens: 0 },
    }
    await commit(db, async (tx) => void (await tx.insert(requestHours).values(sums).run()))
    await forget(1)
    expect(await ids({ limit: 1000 })).toEqual([])
    expect(await db.select().from(requestHours).all()).toEqual([sums])
  })

  test('at most 100 at a time, with a pause in which it can be stopped', async () => {
    await addOld(1100)
    const clock = new ManualClock(START)
    const stop = new AbortController()
    const settings = {
      current: () => ({ requestLogRetentionDays: 7, auditRetentionDays: 0, conversationAffinityMaxAgeDays: 30 }),
    }
    const running = retain({ db, clock, settings }, stop.signal)
    expect(await ids({ limit: 1000 })).toHaveLength(1000)
    await clock.advance('50ms')
    expect(await ids({ limit: 1000 })).toHaveLength(900)
    stop.abort(new Error('stopped'))
    await expect(running).rejects.toThrow('stopped')
    expect(await ids({ limit: 1000 })).toHaveLength(900)
  })

  test('zero days keeps the log forever, and owners expire on their own', async () => {
    await addOld(3)
    const owner = (keyHash: string, days: number) =>
      ({
        kind: 'ciphertext',
        keyHash,
        accountId: 'acc_a',
        mixed: false,
        usedAt: START - days * DAY_MS,
        units: 0,
        moveUnits: 0,
        cachedTokens: 0,
      }) as const
    await commit(
      db,
      async (tx) =>
        void (await tx
          .insert(affinity)
          .values([owner('old', 31), owner('young', 29)])
          .run()),
    )
    await forget(0)
    expect(await ids({ limit: 1000 })).toHaveLength(3)
    expect(await db.select().from(affinity).all()).toEqual([owner('young', 29)])
  })
})
