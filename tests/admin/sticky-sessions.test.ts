/** Sticky sessions: the list, its filters and pages, deleting, and releasing an account; in the database and for running requests. */
import { describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { commit, onChange } from '../../db/commit.ts'
import { affinity } from '../../db/schema/accounts.ts'
import { stickyKey } from '../../src/model/sticky/session-key.ts'
import { sha256, threadHash } from '../../src/proxy/pool/affinity.ts'
import type { StickyPage } from '../../views/settings/sessions.tsx'
import {
  advanceClockDuring,
  codexBody,
  expectNothingLeft,
  getAnswer,
  type StreamEvent,
  type TestApp,
  testApp,
} from '../support/app.ts'
import { type Browser, people, problem } from '../support/people.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const DAY_MS = 86_400_000
type Row = typeof affinity.$inferInsert
type Item = Record<string, unknown>

const setUp = async (accounts = [{ email: 'ada@example.com' }, { email: 'grace@example.com' }]) => {
  const app = await testApp({ accounts, settings: { routingStrategy: 'round_robin' } })
  const [ada, grace] = app.members as [(typeof app.members)[0], (typeof app.members)[0]]
  return { app, ada, grace }
}

const keep = (app: TestApp, ...rows: Partial<Row>[]) =>
  commit(app.db, async (tx) => {
    for (const row of rows)
      await tx
        .insert(affinity)
        .values({ kind: 'conversation', keyHash: sha256('x'), accountId: app.members[0]!.id, usedAt: 0, ...row })
        .run()
  })

const list = async (app: Pick<TestApp, 'ask'>, query = '') =>
  (await (await app.ask(`GET /api/sticky-sessions${query}`)).json()) as StickyPage

const getRows = ({ db }: TestApp) => db.select().from(affinity).all()
const servedBy = async (app: TestApp) => (await app.rows()).map(({ accountId }) => accountId)
const getAudit = async (app: TestApp) =>
  (await people(app).audit())
    .filter(({ event }) => event !== 'account_imported')
    .map(({ event, target, details }) => ({ event, target, details }))

const turn = (app: TestApp, session: string, text = 'hello') =>
  getAnswer(app, NATIVE, { json: codexBody(text), headers: { 'session-id': session } })

describe('the list of sticky sessions', () => {
  test('shows what a request created, by the start of its hash', async () => {
    const { app } = await setUp()
    await turn(app, 'one')
    await app.bindings.ledger.flush()
    const { entries, total, hasMore, stalePromptCacheCount } = await list(app)
    expect({ total, hasMore, stalePromptCacheCount }).toEqual({ total: 2, hasMore: false, stalePromptCacheCount: 0 })
    const hash = threadHash('one', null)
    const usedAt = (await getRows(app))[0]!.usedAt
    expect(entries.find(({ kind }) => kind === 'conversation')).toEqual({
      key: stickyKey(hash),
      displayName: null,
      kind: 'conversation',
      accountId: (await servedBy(app))[0]!,
      accountName: expect.stringContaining('@example.com'),
      createdAt: null,
      updatedAt: new Date(usedAt).toISOString(),
      expiresAt: new Date(usedAt + 30 * DAY_MS).toISOString(),
      isStale: false,
    })
    expect(stickyKey(hash)).toBe(Buffer.from(hash, 'base64url').toString('hex').slice(0, 16))
    expect(JSON.stringify(entries)).not.toContain(hash)
  })

  test('omits uploaded files, and says so while the sessions of a deleted account are being removed', async () => {
    const { app } = await setUp()
    await keep(app, { kind: 'file', keyHash: sha256('file') }, { accountId: 'acc_gone', keyHash: sha256('gone') })
    expect(await list(app)).toMatchObject({ entries: [{ accountName: 'Deleted account' }], total: 1 })
    for (const kind of ['conversation', 'ciphertext'])
      expect(await list(app, `?kind=${kind}`)).toMatchObject({ total: kind === 'conversation' ? 1 : 0 })
  })

  test('is filtered by kind, age, account and key, sorted, and paged', async () => {
    const { app, ada, grace } = await setUp()
    const now = app.clock.now()
    const hashes = Array.from({ length: 40 }, (_, n) => sha256(`session ${n}`))
    await keep(
      app,
      ...hashes.map(
        (keyHash, n): Partial<Row> => ({
          keyHash,
          kind: n % 4 === 0 ? 'ciphertext' : 'conversation',
          accountId: n % 2 === 0 ? ada.id : grace.id,
          usedAt: now - n * DAY_MS,
        }),
      ),
    )
    const of = (wanted: (n: number) => boolean) => hashes.filter((_, n) => wanted(n)).map(stickyKey)
    const keys = async (query: string) => (await list(app, query)).entries.map(({ key }) => key)
    expect(await keys('')).toEqual(of(() => true))
    expect(await keys('?sortDir=asc')).toEqual(of(() => true).toReversed())
    expect(await keys('?kind=ciphertext')).toEqual(of((n) => n % 4 === 0))
    expect(await keys('?staleOnly=true')).toEqual(of((n) => n > 30))
    expect(await keys('?accountQuery=GRACE')).toEqual(of((n) => n % 2 === 1))
    expect(await keys(`?accountQuery=${ada.id}&kind=conversation`)).toEqual(of((n) => n % 4 === 2))
    expect(await keys('?accountQuery=nobody')).toEqual([])
    expect(await keys('?sortBy=key&sortDir=asc')).toEqual(of(() => true).toSorted())
    expect(await keys('?sortBy=key&limit=9&offset=7')).toEqual(
      of(() => true)
        .toSorted()
        .toReversed()
        .slice(7, 16),
    )
    expect(await keys('?sortBy=account&limit=5&offset=18')).toEqual(
      [...of((n) => n % 2 === 1), ...of((n) => n % 2 === 0)].slice(18, 23),
    )
    expect(await keys('?sortBy=account&sortDir=asc')).toEqual([...of((n) => n % 2 === 0), ...of((n) => n % 2 === 1)])
    expect(await keys('?sortBy=created_at&limit=3&offset=2')).toEqual(of((n) => n >= 2 && n < 5))
    expect(await list(app, '?limit=3&offset=36')).toMatchObject({ total: 40, hasMore: true, stalePromptCacheCount: 9 })
    expect(await list(app, '?limit=3&offset=37')).toMatchObject({ hasMore: false })
    for (const length of [1, 2, 3, 4, 5, 6, 7, 15, 16]) {
      const start = stickyKey(hashes[7]!).slice(0, length)
      const expected = of(() => true).filter((key) => key.startsWith(start))
      expect([length, await keys(`?keyQuery=${start.toUpperCase()}`)]).toEqual([length, expected])
    }
    expect(await keys(`?keyQuery=${hashes[9]}`)).toEqual([stickyKey(hashes[9]!)])
    for (const other of ['g', '%25', `${stickyKey(hashes[0]!)}0`]) expect(await keys(`?keyQuery=${other}`)).toEqual([])
  })

  test.each(['kind=prompt_cache', 'limit=501', 'limit=0', 'offset=-1', 'sortBy=name', 'staleOnly=maybe'])(
    'rejects %s',
    async (query) => {
      expect(await problem(await (await setUp()).app.ask(`GET /api/sticky-sessions?${query}`))).toEqual([
        422,
        'validation_error',
      ])
    },
  )

  test('is for operators, and names accounts only to users who manage them', async () => {
    const { app, ada } = await setUp()
    await keep(app, { accountId: ada.id })
    const { as, guest, addRole } = people(app)
    await addRole('tuner', { 'dashboard:read': 'all', 'ops:write': 'all' })
    const statusFor = async ({ ask }: Browser, path: string) => (await ask(`GET ${path}`)).status
    for (const path of ['/api/sticky-sessions', '/settings/routing/sessions']) {
      expect(await statusFor(await as('operator'), path)).toBe(200)
      expect(await statusFor(await as('viewer'), path)).toBe(403)
      expect(await statusFor(await guest('192.0.2.9'), path)).toBe(403)
    }
    const tuner = await as('tuner')
    expect(JSON.stringify(await list(tuner))).not.toContain('ada@')
    expect(await list(tuner, '?accountQuery=ada%40example')).toMatchObject({ total: 0 })
    expect(await list(tuner, `?accountQuery=${ada.id}`)).toMatchObject({ total: 1 })
    expect(await problem(await tuner.ask('POST /api/sticky-sessions/purge', { json: { staleOnly: true } }))).toEqual([
      403,
      'read_only_access',
    ])
  })
})

describe('deleting', () => {
  test('lets the next request use any account, and is recorded', async () => {
    const { app } = await setUp()
    await turn(app, 'one')
    const [first] = await servedBy(app)
    const key = stickyKey(threadHash('one', null))
    const answer = await app.ask(`DELETE /api/sticky-sessions/conversation/${key}`)
    expect([answer.status, await answer.json()]).toEqual([200, { status: 'deleted' }])
    expect((await getRows(app)).map(({ kind }) => kind)).toEqual(['ciphertext'])
    expect(await getAudit(app)).toEqual([{ event: 'sticky_sessions_deleted', target: null, details: { count: 1 } }])
    await app.clock.advance(10)
    await turn(app, 'one')
    expect((await servedBy(app))[1]).not.toBe(first!)
    expect((await app.rows())[1]!.moved).toBe(false)
    expect(await problem(await app.ask(`DELETE /api/sticky-sessions/ciphertext/${key}`))).toEqual([
      404,
      'sticky_session_not_found',
    ])
  })

  test.each(['a/b', 'a%2Fb', '%2e%2e%2fx', 'ffffffffffffffff', 'conversation', '%25'])(
    'an unknown key is not found: %s',
    async (key) => {
      const { app } = await setUp()
      expect(await problem(await app.ask(`DELETE /api/sticky-sessions/conversation/${key}`))).toEqual([
        404,
        'sticky_session_not_found',
      ])
      expect(await getAudit(app)).toEqual([])
    },
  )

  test('several names those that are gone', async () => {
    const { app } = await setUp()
    const [one, two] = [sha256('one'), sha256('two')]
    await keep(app, { keyHash: one }, { keyHash: two, kind: 'ciphertext' })
    const sessions = [
      { kind: 'conversation', key: stickyKey(one) },
      { kind: 'conversation', key: stickyKey(two) },
      { kind: 'ciphertext', key: 'a/b' },
    ]
    const answer = await app.ask('POST /api/sticky-sessions/delete', { json: { sessions } })
    expect(await answer.json()).toEqual({
      deletedCount: 1,
      deleted: [sessions[0]],
      failed: sessions.slice(1).map((one) => ({ ...one, reason: 'sticky_session_not_found' })),
    })
    expect((await getRows(app)).map(({ keyHash }) => keyHash)).toEqual([two])
  })

  const session = { kind: 'conversation', key: '0000000000000000' }
  test.each<[string, string, unknown]>([
    ['none', 'delete', { sessions: [] }],
    ['one twice', 'delete', { sessions: [session, session] }],
    ['too many', 'delete', { sessions: Array.from({ length: 501 }, (_, n) => ({ ...session, key: String(n) })) }],
    ['an unknown kind', 'delete', { sessions: [{ ...session, kind: 'file' }] }],
    ['no key', 'delete', { sessions: [{ kind: 'conversation' }] }],
    ['more than expired ones', 'purge', { staleOnly: false }],
    ['a purge without confirmation', 'purge', {}],
    ['an unknown filter', 'delete-filtered', { model: 'gpt-5.5' }],
  ])('rejects %s', async (_, route, json) => {
    const { app } = await setUp()
    await keep(app, {})
    expect(await problem(await app.ask(`POST /api/sticky-sessions/${route}`, { json }))).toEqual([
      422,
      'validation_error',
    ])
    expect(await getRows(app)).toHaveLength(1)
  })

  test('expired ones leaves the others', async () => {
    const { app } = await setUp()
    const now = app.clock.now()
    await keep(app, { usedAt: now - 31 * DAY_MS }, { keyHash: sha256('y'), usedAt: now - 29 * DAY_MS })
    const answer = await app.ask('POST /api/sticky-sessions/purge', { json: { staleOnly: true } })
    expect(await answer.json()).toEqual({ deletedCount: 1 })
    expect((await getRows(app)).map(({ keyHash }) => keyHash)).toEqual([sha256('y')])
  })

  test('10,000 by filter are deleted in small steps while requests are served, which keep what they use', async () => {
    const { app, ada, grace } = await setUp()
    await turn(app, 'busy')
    await turn(app, 'idle')
    await app.bindings.ledger.flush()
    const now = app.clock.now()
    for (let n = 0; n < 10_000; n += 500)
      await keep(app, ...Array.from({ length: 500 }, (_, m) => ({ keyHash: sha256(`${n + m}`), usedAt: now })))
    await keep(app, { kind: 'file', keyHash: sha256('file'), usedAt: now })
    await app.restart() // so that they are in memory, too
    expect(app.bindings.affinity.counts().conversation).toBe(10_002)
    const steps: number[] = []
    let before = (await getRows(app)).length
    const seen = () => {
      const after = app.sqlite.query<{ n: number }, []>('SELECT count(*) AS n FROM affinity').get()!.n
      if (after < before) steps.push(before - after)
      before = after
    }
    let isDone = false
    const deleting = app
      .ask('POST /api/sticky-sessions/delete-filtered', { json: { kind: 'conversation' } })
      .finally(() => {
        isDone = true
      })
    let served = 0
    while (!isDone) {
      await app.clock.advance(10)
      seen()
      if (!isDone) {
        const answer = await app.ask(NATIVE, { json: codexBody(), headers: { 'session-id': 'busy' } })
        await advanceClockDuring(app, answer.text(), 1)
        served++
        seen()
      }
    }
    expect(await (await deleting).json()).toMatchObject({ deletedCount: expect.any(Number) })
    expect(served).toBeGreaterThan(10)
    expect(steps.length).toBeGreaterThan(40)
    await app.bindings.ledger.flush()
    const left = (await getRows(app)).filter(({ kind }) => kind !== 'ciphertext')
    expect(left.map(({ keyHash }) => keyHash).toSorted()).toEqual([threadHash('busy', null), sha256('file')].toSorted())
    const { affinity: owners } = app.bindings
    expect(owners.counts()).toMatchObject({ conversation: 1, file: 1 })
    const filtered = (await getAudit(app)).filter(({ event }) => event === 'sticky_sessions_deleted')
    expect(filtered).toEqual([
      { event: 'sticky_sessions_deleted', target: null, details: { count: 10_002, kind: 'conversation' } },
    ])
    expect(new Set([ada.id, grace.id]).size).toBe(2)
    await expectNothingLeft(app)
  })

  test('changes at most 100 rows in one commit', async () => {
    const { app } = await setUp()
    await keep(app, ...Array.from({ length: 950 }, (_, n) => ({ keyHash: sha256(`${n}`) })))
    const left: number[] = []
    const sleep = app.clock.sleep.bind(app.clock)
    app.clock.sleep = async (ms, signal) => {
      left.push((await getRows(app)).length)
      return sleep(ms, signal)
    }
    await advanceClockDuring(app, app.ask('POST /api/sticky-sessions/delete-filtered', { json: {} }), 10)
    expect(left.slice(0, 4)).toEqual([850, 750, 650, 550])
    expect(await getRows(app)).toEqual([])
  })

  test('is not undone by a request that ended just before', async () => {
    const { app } = await setUp()
    const response = await app.ask(NATIVE, { json: codexBody(), headers: { 'session-id': 'one' } })
    await response.text()
    expect(app.bindings.ledger.pending).toBeGreaterThan(0)
    const key = stickyKey(threadHash('one', null))
    expect((await app.ask(`DELETE /api/sticky-sessions/conversation/${key}`)).status).toBe(200)
    await app.bindings.ledger.flush()
    expect((await getRows(app)).filter(({ kind }) => kind === 'conversation')).toEqual([])
  })
})

/** A client that sends its whole history. */
const talkOn = (app: TestApp, headers: Record<string, string>) => {
  const history: Item[] = []
  return async (text: string) => {
    history.push({ type: 'message', role: 'user', content: [{ type: 'input_text', text }] })
    const answer = await getAnswer(app, NATIVE, { json: { ...codexBody(), input: history }, headers })
    history.push(...getOutput(answer.events))
    await app.clock.advance(10)
    return answer.status
  }
}

const getOutput = (events: StreamEvent[]): Item[] =>
  events.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item as Item) // as: what this event carries

const reasoningIn = (app: TestApp): number =>
  (JSON.parse(app.upstream.requests.at(-1)!.bodyText).input as Item[]).filter(({ type }) => type === 'reasoning').length

describe('releasing an account', () => {
  for (const [name, headers] of [
    ['named', { 'session-id': 'one' }],
    ['known by its ciphertext alone', {}],
  ] as const)
    test(`lets a conversation ${name} use another account without the account’s ciphertext, also after a restart`, async () => {
      const { app, ada, grace } = await setUp()
      await app.prefer(ada.id)
      const say = talkOn(app, headers)
      await say('one')
      app.sqlite.run(`UPDATE accounts SET routing_policy = 'normal'`)
      await app.prefer(grace.id)
      await say('two')
      expect(await servedBy(app)).toEqual([ada.id, ada.id])
      const answer = await app.ask(`POST /api/accounts/${ada.id}/release`)
      const releasedCount = 'session-id' in headers ? 1 : 0
      expect([answer.status, await answer.json()]).toEqual([200, { status: 'released', releasedCount }])
      await app.restart()
      expect(await say('three')).toBe(200)
      expect((await servedBy(app))[2]).toBe(grace.id)
      expect(reasoningIn(app)).toBe(0)
      expect((await app.attemptRows()).filter(({ outcome }) => outcome !== 'ok')).toEqual([])
      await say('four')
      expect((await servedBy(app))[3]).toBe(grace.id)
      expect(reasoningIn(app)).toBe(1)
      expect(await getAudit(app)).toEqual([
        { event: 'account_released', target: ada.id, details: { conversations: releasedCount } },
      ])
      await expectNothingLeft(app)
    })

  test('keeps a compacted history on it, which no other account can read', async () => {
    const { app, ada, grace } = await setUp()
    await app.prefer(ada.id)
    const summary = await getAnswer(app, 'POST /backend-api/codex/responses/compact', {
      json: { model: 'gpt-5.5', instructions: 'Be brief.', input: codexBody().input },
    })
    const compacted = (JSON.parse(summary.text) as { output: Item[] }).output
    app.sqlite.run(`UPDATE accounts SET routing_policy = 'normal'`)
    await app.prefer(grace.id)
    await app.ask(`POST /api/accounts/${ada.id}/release`)
    const json = { ...codexBody(), input: [...compacted, ...codexBody().input] }
    expect((await getAnswer(app, NATIVE, { json })).status).toBe(200)
    expect((await servedBy(app)).at(-1)).toBe(ada.id)
  })

  test('does not affect other accounts and uploaded files', async () => {
    const { app, ada, grace } = await setUp()
    await keep(
      app,
      { keyHash: sha256('a'), accountId: ada.id },
      { keyHash: sha256('b'), accountId: grace.id },
      { keyHash: sha256('c'), accountId: ada.id, kind: 'file' },
    )
    await app.ask(`POST /api/accounts/${ada.id}/release`)
    expect((await getRows(app)).map(({ keyHash }) => keyHash).toSorted()).toEqual([sha256('b'), sha256('c')].toSorted())
  })

  test('requires an existing account and the permission to make changes', async () => {
    const { app, ada } = await setUp()
    const { as } = people(app)
    expect(await problem(await app.ask('POST /api/accounts/acc_none/release'))).toEqual([404, 'account_not_found'])
    expect(await problem(await (await as('viewer')).ask(`POST /api/accounts/${ada.id}/release`))).toEqual([
      403,
      'read_only_access',
    ])
    const form = await (await as('operator')).submit(`POST /api/accounts/${ada.id}/release`)
    expect(form.status).toBe(303)
  })
})

describe('the sticky session page', () => {
  test('works without scripts: filters, selected sessions, all listed, expired ones', async () => {
    const { app, ada } = await setUp()
    const now = app.clock.now()
    const hashes = ['a', 'b', 'c', 'd'].map(sha256)
    await keep(app, ...hashes.map((keyHash, n) => ({ keyHash, accountId: ada.id, usedAt: n === 3 ? 0 : now })))
    const browser = await people(app).as('operator')
    const html = async (query = '') => {
      const response = await browser.ask(`GET /settings/routing/sessions${query}`, { headers: { accept: 'text/html' } })
      return response.text()
    }
    const page = await html()
    for (const hash of hashes) expect(page).toContain(`value="conversation:${stickyKey(hash)}"`)
    expect(page).toContain('Delete all 4 sessions')
    expect(page).toContain('Delete 1 expired session')
    expect(await html(`?accountQuery=${ada.id}&staleOnly=true`)).toContain('Delete the 1 session listed')
    const referer = 'http://localhost:2455/settings/routing/sessions?kind=conversation&offset=2'
    const submit = async (route: string, body: string) => {
      const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: 'text/html', referer }
      return (await browser.ask(route, { body, headers })).headers.get('location')
    }
    const two = hashes.slice(0, 2).map((hash) => `sessions=conversation%3A${stickyKey(hash)}`)
    expect(await submit('POST /api/sticky-sessions/delete', two.join('&'))).toBe(
      '/settings/routing/sessions?kind=conversation&done=sticky_sessions_deleted',
    )
    expect(await getRows(app)).toHaveLength(2)
    await submit('POST /api/sticky-sessions/purge', 'staleOnly=true')
    expect(await getRows(app)).toHaveLength(1)
    const rest = `staleOnly=false&accountQuery=${ada.id}&keyQuery=`
    await submit('POST /api/sticky-sessions/delete-filtered', rest)
    expect(await getRows(app)).toEqual([])
    expect(await submit('POST /api/sticky-sessions/delete-filtered', rest)).toContain(
      'done=sticky_sessions_deleted_none',
    )
  })

  test('is linked from the account, the routing settings and the palette', async () => {
    const { app, ada } = await setUp()
    const { as } = people(app)
    const html = async ({ ask }: Browser, path: string) =>
      (await ask(`GET ${path}`, { headers: { accept: 'text/html' } })).text()
    const operator = await as('operator')
    const account = await html(operator, `/accounts/${ada.id}?tab=routing`)
    expect(account).toContain(`/settings/routing/sessions?accountQuery=${ada.id}`)
    expect(account).toContain(`/api/accounts/${ada.id}/release`)
    expect(await html(operator, '/settings/routing')).toContain('href="/settings/routing/sessions"')
    expect(await html(operator, '/search?q=sticky')).toContain('/settings/routing/sessions')
    for (const path of [`/accounts/${ada.id}?tab=routing`, '/settings/routing', '/search?q=sticky'])
      expect(await html(await as('viewer'), path)).not.toContain('/settings/routing/sessions')
  })
})

test('deleting does not announce a change that would reload accounts', async () => {
  const { app } = await setUp()
  await keep(app, {})
  const topics: string[] = []
  onChange(app.db, async (changed) => topics.push(...changed))
  await app.ask('POST /api/sticky-sessions/delete-filtered', { json: {} })
  expect(await app.db.select().from(affinity).where(eq(affinity.kind, 'conversation')).all()).toEqual([])
  expect(topics).toEqual([])
})
