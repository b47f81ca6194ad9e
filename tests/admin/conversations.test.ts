/** Conversations: the list by last request, its pages and search, one in detail, and who may see what. */
import { beforeEach, describe, expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { accounts } from '../../db/schema/accounts.ts'
import { requests } from '../../db/schema/requests.ts'
import type { ConversationDetail, ConversationPage } from '../../src/model/conversations/conversations.ts'
import { sha256 } from '../../src/proxy/pool/affinity.ts'
import { codexBody, getAnswer, type TestApp, testApp } from '../support/app.ts'
import { type Browser, people, problem } from '../support/people.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const NATIVE = 'POST /backend-api/codex/responses'
type Row = typeof requests.$inferInsert

let app: TestApp
let next = 0

beforeEach(async () => {
  app = await testApp({ accounts: [{ email: 'ada@example.com' }, { email: 'grace@example.com' }] })
  next = 0
})

const add = (...rows: Partial<Row>[]) =>
  commit(app.db, async (tx) => {
    for (const row of rows)
      await tx
        .insert(requests)
        .values({
          id: `trn_${String(next++).padStart(5, '0')}`,
          requestId: `req_${next}`,
          startedAt: app.clock.now(),
          route: '/v1/responses',
          kind: 'normal',
          transport: 'http',
          status: 'ok',
          httpStatus: 200,
          attempts: 1,
          totalMs: 1000,
          ...row,
        })
        .run()
  })

const ago = (ms: number) => app.clock.now() - ms
const talk = (name: string) => sha256(name)
const html = async ({ ask }: Pick<Browser, 'ask'>, path: string) =>
  (await ask(`GET ${path}`, { headers: { accept: 'text/html' } })).text()
const list = async (query = '', { ask }: Pick<Browser, 'ask'> = app) =>
  (await (await ask(`GET /api/conversations${query}`)).json()) as ConversationPage
const getIds = async (query = '') => (await list(query)).conversations.map(({ conversationId }) => conversationId)
const detail = async (id: string, { ask }: Pick<Browser, 'ask'> = app) =>
  (await (await ask(`GET /api/conversations/${id}`)).json()) as ConversationDetail

describe('the list of conversations', () => {
  test('adds up what requests used, per conversation', async () => {
    const { row } = await app.key({ name: 'laptop' })
    const [ada, grace] = app.members.map(({ id }) => id)
    const common = { conversationHash: talk('a'), keyId: row.id, model: 'gpt-5.5', inputTokens: 1000 }
    await add(
      { ...common, startedAt: ago(3000), accountId: ada, cachedInputTokens: 0, outputTokens: 10, costMicros: 5000 },
      { ...common, startedAt: ago(2000), accountId: ada, cachedInputTokens: 900, outputTokens: 20, costMicros: 1000 },
      {
        ...common,
        startedAt: ago(1000),
        accountId: grace,
        cachedInputTokens: 0,
        outputTokens: 0,
        costMicros: 4000,
        moved: true,
      },
      {
        ...common,
        startedAt: ago(500),
        accountId: ada,
        model: 'gpt-5.4',
        inputTokens: null,
        status: 'error',
        errorCode: 'server_error',
      },
      { startedAt: ago(100), conversationHash: null },
    )
    expect(await list()).toEqual({
      conversations: [
        {
          conversationId: talk('a'),
          firstRequest: new Date(ago(3000)).toISOString(),
          lastRequest: new Date(ago(500)).toISOString(),
          requestCount: 4,
          isPartial: false,
          representativeAccountId: ada!,
          representativeAccount: 'ada@example.com',
          remainingAccountCount: 1,
          apiKeyId: row.id,
          apiKeyName: 'laptop',
          representativeModel: 'gpt-5.5',
          remainingModelCount: 1,
          totalTokens: 3030,
          inputTokens: 3000,
          cachedInputTokens: 900,
          outputTokens: 30,
          cachedShare: 0.3,
          totalCostUsd: 0.01,
          errors: 1,
          moves: 1,
        },
      ],
      total: 1,
      hasMore: false,
      nextCursor: null,
      searchedTo: null,
    })
  })

  test('includes the requests of clients, under both forms of their path', async () => {
    const say = (session: string) => getAnswer(app, NATIVE, { json: codexBody(), headers: { 'session-id': session } })
    await say('one')
    await say('two')
    await app.clock.advance(10)
    await say('one')
    await app.bindings.ledger.flush()
    const [first, second] = (await list()).conversations
    expect([first!.requestCount, second!.requestCount]).toEqual([2, 1])
    expect(await list('/')).toEqual(await list())
    expect((await app.rows())[0]!.conversationHash).toBe(first!.conversationId)
  })

  test('is ordered by the last request and paged without repeats while requests arrive', async () => {
    const names = Array.from({ length: 25 }, (_, n) => `talk ${n}`)
    // Each conversation has an early and a late request, so that every page meets rows of the ones before.
    await add(...names.map((name, n) => ({ conversationHash: talk(name), startedAt: ago(DAY_MS - n) })))
    await add(...names.map((name, n) => ({ conversationHash: talk(name), startedAt: ago(Math.floor(n / 3) * 1000) })))
    const all = await getIds()
    expect(all).toHaveLength(25)
    expect(new Set(all.slice(0, 3))).toEqual(new Set(names.slice(0, 3).map(talk)))
    const seen: string[] = []
    let cursor: string | null = null
    do {
      const page: ConversationPage = await list(`?limit=4${cursor ? `&cursor=${cursor}` : ''}`)
      seen.push(...page.conversations.map(({ conversationId }) => conversationId))
      expect(page.hasMore).toBe(page.nextCursor !== null)
      expect(page.total).toBeNull()
      cursor = page.nextCursor
      if (seen.length === 8) await add({ conversationHash: talk('new') }, { conversationHash: all[20] })
    } while (cursor)
    expect(seen).toEqual(all.filter((id) => id !== all[20]))
    expect((await getIds()).slice(0, 2).toSorted()).toEqual([talk('new'), all[20]!].toSorted())
    expect(await getIds('?limit=3&offset=5')).toEqual((await getIds()).slice(5, 8))
  })

  test('keeps its order among requests of the same millisecond', async () => {
    const names = Array.from({ length: 9 }, (_, n) => talk(`same ${n}`))
    await add(...[...names, ...names].map((conversationHash) => ({ conversationHash, startedAt: ago(1000) })))
    const seen: string[] = []
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page: ConversationPage = await list(`?limit=2${cursor ? `&cursor=${cursor}` : ''}`)
      seen.push(...page.conversations.map(({ conversationId }) => conversationId))
      cursor = page.nextCursor
    }
    expect(seen).toEqual(names.toReversed())
  })

  test('covers 30 days, or less if requested', async () => {
    await add(
      ...[0.5, 3, 20, 29.9, 40].map((days) => ({ conversationHash: talk(`${days}`), startedAt: ago(days * DAY_MS) })),
      { conversationHash: talk('long'), startedAt: ago(50 * DAY_MS) },
      { conversationHash: talk('long'), startedAt: ago(2 * DAY_MS) },
    )
    const of = (...names: string[]) => names.map(talk)
    expect(await getIds()).toEqual(of('0.5', 'long', '3', '20', '29.9'))
    expect(await getIds('?timeframe=7d')).toEqual(of('0.5', 'long', '3'))
    expect(await getIds('?timeframe=1d')).toEqual(of('0.5'))
    expect(await getIds(`?since=${new Date(ago(2.5 * DAY_MS)).toISOString()}`)).toEqual(of('0.5', 'long'))
    expect(await getIds(`?since=${new Date(ago(30 * DAY_MS)).toISOString()}`)).toHaveLength(5)
    // The whole conversation counts, not only its part in that time.
    expect((await list('?timeframe=7d')).conversations[1]).toMatchObject({
      requestCount: 2,
      firstRequest: new Date(ago(50 * DAY_MS)).toISOString(),
    })
  })

  test.each([
    ['both', (now: number) => `since=${new Date(now).toISOString()}&timeframe=7d`],
    ['a time too long ago', (now: number) => `since=${new Date(now - 31 * DAY_MS).toISOString()}`],
    ['no time', () => 'since=yesterday'],
    ['an unknown timeframe', () => 'timeframe=2d'],
    ['too many rows', () => 'limit=1001'],
    ['no rows', () => 'limit=0'],
    ['a foreign cursor', () => 'cursor=abc'],
  ])('rejects %s', async (_, query) => {
    for (const path of ['/api/conversations', '/api/conversations/', '/logs/conversations'])
      expect(await problem(await app.ask(`GET ${path}?${query(app.clock.now())}`))).toEqual([422, 'validation_error'])
  })

  test('is searched by account, key, model and id of any of its requests', async () => {
    const [ada, grace] = app.members.map(({ id }) => id)
    const { row } = await app.key({ name: 'Build server' })
    await add(
      { conversationHash: talk('a'), accountId: ada, model: 'gpt-5.5', startedAt: ago(9000) },
      { conversationHash: talk('a'), accountId: grace, model: 'gpt-5.5', startedAt: ago(8000) },
      { conversationHash: talk('b'), accountId: grace, model: 'gpt-5.4-mini', keyId: row.id, startedAt: ago(7000) },
    )
    const [a, b] = [talk('a'), talk('b')]
    for (const [search, expected] of [
      ['ADA@', [a]],
      ['grace', [b, a]],
      ['build', [b]],
      [row.id, [b]],
      [ada!, [a]],
      ['MINI', [b]],
      [a, [a]],
      [a.slice(0, 8), [a]],
      ['100%', []],
      ["'; --", []],
      [sha256('nobody'), []],
    ] as const)
      expect([search, await getIds(`?search=${encodeURIComponent(search)}`)]).toEqual([search, [...expected]])
  })

  test('stops after 50,000 requests and says how far it searched', async () => {
    const rows = app.sqlite.prepare(
      `INSERT INTO requests (id, request_id, started_at, route, kind, transport, status, http_status, attempts, total_ms, conversation_hash)
       VALUES (?, 'r', ?, '/v1/responses', 'normal', 'http', 'ok', 200, 1, 1, ?)`,
    )
    const now = app.clock.now()
    app.sqlite.transaction(() => {
      for (let n = 0; n < 50_100; n++) rows.run(`a${String(n).padStart(6, '0')}`, now - n, talk('busy'))
      rows.run('b', now - 60_000, talk('quiet'))
    })()
    const first = await list()
    expect(first).toMatchObject({ total: null, hasMore: true, searchedTo: new Date(now - 49_999).toISOString() })
    expect(first.conversations).toMatchObject([{ conversationId: talk('busy'), requestCount: 50_100, isPartial: true }])
    expect(first.conversations[0]!.firstRequest).toBe(new Date(now - 50_099).toISOString())
    const second = await list(`?cursor=${first.nextCursor}`)
    expect(second.conversations.map(({ conversationId }) => conversationId)).toEqual([talk('quiet')])
    expect(second).toMatchObject({ hasMore: false, searchedTo: null })
    expect(await list('?search=nowhere')).toMatchObject({
      conversations: [],
      searchedTo: new Date(now - 9_999).toISOString(),
    })
    expect(await detail(talk('busy'))).toMatchObject({ requestCount: 50_100, isPartial: true })
  })
})

describe('one conversation', () => {
  test('shows accounts, models, account changes and how its requests ended', async () => {
    const [ada, grace] = app.members.map(({ id }) => id)
    const common = { conversationHash: talk('a'), model: 'gpt-5.5', userAgent: 'codex_exec/0.169 (x)' }
    const used = { inputTokens: 100, outputTokens: 10, costMicros: 2000 }
    await add(
      { ...common, ...used, startedAt: ago(3000), accountId: ada, cachedInputTokens: 20, reasoningEffort: 'high' },
      {
        ...common,
        ...used,
        startedAt: ago(2000),
        accountId: grace,
        cachedInputTokens: 40,
        moved: true,
        movedTokens: 60,
      },
      { ...common, startedAt: ago(1000), accountId: grace, status: 'cancelled', httpStatus: 499 },
      { ...common, startedAt: ago(500), status: 'error', errorCode: 'usage_limit_reached', userAgent: 'curl/8' },
    )
    expect(await detail(talk('a'))).toEqual({
      conversationId: talk('a'),
      requestCount: 4,
      isPartial: false,
      totalTokens: 220,
      inputTokens: 200,
      cachedInputTokens: 60,
      outputTokens: 20,
      cachedShare: 0.3,
      totalCostUsd: 0.004,
      errors: 1,
      moves: 1,
      start: new Date(ago(3000)).toISOString(),
      latest: new Date(ago(500)).toISOString(),
      cancelled: 1,
      totalElapsedTime: 4000,
      movedInputTokens: 60,
      avoidableMoves: 0,
      accountCount: 2,
      accounts: [
        { accountId: grace!, accountName: 'grace@example.com', requestCount: 2 },
        { accountId: ada!, accountName: 'ada@example.com', requestCount: 1 },
      ],
      apiKeyId: null,
      apiKeyName: null,
      dominantUseragentGroup: 'codex_exec',
      dominantClientName: 'codex_exec',
      modelStats: [
        {
          modelEffort: { model: 'gpt-5.5', reasoningEffort: null },
          reqs: 3,
          totalElapsedTime: 3000,
          totalInputTokens: 100,
          cachedInputTokens: 40,
          totalOutputTokens: 10,
          totalCostUsd: 0.002,
        },
        {
          modelEffort: { model: 'gpt-5.5', reasoningEffort: 'high' },
          reqs: 1,
          totalElapsedTime: 1000,
          totalInputTokens: 100,
          cachedInputTokens: 20,
          totalOutputTokens: 10,
          totalCostUsd: 0.002,
        },
      ],
      outcomes: [
        { status: 'ok', moved: false },
        { status: 'ok', moved: true },
        { status: 'cancelled', moved: false },
        { status: 'rate_limit', moved: false },
      ],
    })
  })

  test.each(['nothing', 'a%2Fb', '%25', sha256('nobody')])('an unknown one is not found: %s', async (id) => {
    expect(await problem(await app.ask(`GET /api/conversations/${id}`))).toEqual([404, 'not_found'])
    expect((await app.ask(`GET /logs/conversations/${id}`)).status).toBe(404)
  })
})

describe('permissions for conversations', () => {
  const PATHS = [
    '/api/conversations',
    '/api/conversations/',
    `/api/conversations/${talk('a')}`,
    '/logs/conversations',
    `/logs/conversations/${talk('a')}`,
  ]

  test('conversations are not available to Operators, Viewers, Members and guests', async () => {
    await add({ conversationHash: talk('a') })
    const { as, guest } = people(app)
    for (const [name, browser, status] of [
      ['admin', await as('admin'), 200],
      ['operator', await as('operator'), 403],
      ['viewer', await as('viewer'), 403],
      ['member', await as('member'), 403],
      ['guest', await guest('192.0.2.9'), 403],
    ] as const)
      for (const path of PATHS)
        expect([name, path, (await browser.ask(`GET ${path}`)).status]).toEqual([name, path, status])
    const refused = await (await as('operator')).ask('GET /api/conversations')
    expect((await refused.json()).error).toMatchObject({ code: 'permission_required', param: 'conversations:read' })
  })

  test('accounts and keys are hidden from a role without them, and cannot be searched for', async () => {
    const { row } = await app.key({ name: 'laptop' })
    await add({ conversationHash: talk('a'), keyId: row.id, accountId: app.members[0]!.id })
    const { as, addRole } = people(app)
    await addRole('reader', { 'dashboard:read': 'all', 'conversations:read': 'all' })
    const reader = await as('reader')
    for (const path of PATHS) {
      const text = await (await reader.ask(`GET ${path}`)).text()
      for (const secret of ['ada@example.com', 'laptop', row.id])
        expect([path, text.includes(secret)]).toEqual([path, false])
      expect(await html(reader, path)).not.toContain('laptop')
    }
    expect((await list('', reader)).conversations[0]).toMatchObject({ representativeAccount: 'a***@example.com' })
    for (const search of ['ada%40', 'laptop', row.id])
      expect((await list(`?search=${search}`, reader)).conversations).toEqual([])
    expect((await list('?search=example', reader)).conversations).toHaveLength(1)
  })

  test('a deleted account or key is marked as deleted', async () => {
    await add({ conversationHash: talk('a'), accountId: 'acc_gone', keyId: 'key_gone' })
    await app.db.select().from(accounts).all()
    expect((await list()).conversations[0]).toMatchObject({ representativeAccount: null, apiKeyName: null })
    const page = await html(await people(app).as('admin'), '/logs/conversations')
    expect(page).toContain('deleted account')
    expect(page).toContain('deleted key')
  })
})

describe('the conversation pages', () => {
  test('lead from the log to a conversation, its requests, and its sticky session', async () => {
    for (let n = 0; n < 2; n++) await getAnswer(app, NATIVE, { json: codexBody(), headers: { 'session-id': 'one' } })
    const [row] = await app.rows()
    const admin = await people(app).as('admin')
    const path = `/logs/conversations/${row!.conversationHash}`
    expect(await html(admin, '/logs')).toContain('href="/logs/conversations"')
    expect(await html(admin, '/logs/conversations')).toContain(`href="${path}"`)
    for (const request of [`/logs/${row!.id}`, `/logs?open=${row!.id}`])
      expect(await html(admin, request)).toContain(`href="${path}"`)
    const page = await html(admin, path)
    for (const { id } of await app.rows()) expect(page).toContain(`href="/logs/${id}"`)
    const session = /\/settings\/routing\/sessions\?keyQuery=[0-9a-f]{16}/.exec(page)?.[0]
    expect(await html(admin, `/logs/${row!.id}`)).toContain(session!)
    expect(await html(admin, session!)).toContain('value="conversation:')
    expect(page).toContain('2 completed')
  })

  test('an Operator can open the sticky sessions of a request’s account, but no conversation', async () => {
    await getAnswer(app, NATIVE, { json: codexBody(), headers: { 'session-id': 'one' } })
    const [row] = await app.rows()
    const { as } = people(app)
    const page = await html(await as('operator'), `/logs/${row!.id}`)
    expect(page).toContain(`/settings/routing/sessions?accountQuery=${row!.accountId}`)
    for (const role of ['operator', 'viewer']) {
      const text = await html(await as(role), `/logs?open=${row!.id}`)
      expect(text).not.toContain('/logs/conversations')
      expect(text).not.toContain('keyQuery')
      if (role === 'viewer') expect(text).not.toContain('/settings/routing/sessions')
    }
  })

  test('a long conversation is paged', async () => {
    await add(...Array.from({ length: 60 }, (_, n) => ({ conversationHash: talk('a'), startedAt: ago(n * 1000) })))
    const admin = await people(app).as('admin')
    const path = `/logs/conversations/${talk('a')}`
    const first = await html(admin, path)
    const older = /href="([^"]*cursor=[^"]*)" rel="next"/.exec(first)?.[1]
    expect(first.match(/class="row-link"/g)).toHaveLength(50)
    expect((await html(admin, older!)).match(/class="row-link"/g)).toHaveLength(10)
  })
})
