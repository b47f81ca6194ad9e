/** A request writes nothing to the database until it has ended, and the written totals are correct. */
import type { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { sum } from 'drizzle-orm'
import { apiKeys } from '../../db/schema/keys.ts'
import { requestHours } from '../../db/schema/requests.ts'
import { codexBody, expectNothingLeft, getAnswer, testApp } from '../support/app.ts'

const NATIVE = 'POST /backend-api/codex/responses'

/**
 * Counts statements prepared or run on the connection. The ledger's are prepared in advance: `pending` counts those.
 */
const countStatements = (sqlite: Database) => {
  const count = { statements: 0 }
  for (const name of ['prepare', 'query', 'run', 'exec'] as const) {
    const original: (...args: never[]) => unknown = sqlite[name]
    const counted = (...args: never[]) => {
      count.statements++
      return original.apply(sqlite, args)
    }
    Object.defineProperty(sqlite, name, { value: counted })
  }
  return count
}

/** BEGIN, the read and the write that lease what is left of the limit, and COMMIT, once a window. */
const LEASE_STATEMENTS = 4

test('a hundred requests only lease their limit before their responses end, and then everything is written once', async () => {
  const app = await testApp({ accounts: 3, settings: { apiKeyAuthEnabled: true, proxyAccountStreamLimit: 0 } })
  const { key } = await app.key({
    limits: [{ limitType: 'total_tokens', limitWindow: 'daily', maxValue: 10_000_000, modelFilter: '' }],
  })
  const count = countStatements(app.sqlite)
  await app.db.select().from(apiKeys).all()
  expect(count.statements).toBeGreaterThan(0) // the counter counts
  count.statements = 0
  const turns = Array.from({ length: 100 }, (_, turn) =>
    getAnswer(app, turn % 2 ? NATIVE : 'POST /v1/responses', {
      json: codexBody(`turn ${turn}`),
      headers: { authorization: `Bearer ${key}`, 'session-id': `s${turn % 20}` },
    }),
  )
  const ended = await Promise.all(turns)
  expect(ended.map(({ status }) => status)).toEqual(ended.map(() => 200))
  expect(count.statements).toBe(LEASE_STATEMENTS)
  expect(app.bindings.ledger.pending).toBe(100)
  await app.bindings.ledger.flush()
  expect(count.statements).toBeGreaterThan(0)
  expect(app.bindings.ledger.pending).toBe(0)
  const rows = await app.rows()
  expect(rows).toHaveLength(100)
  expect(await app.attemptRows()).toHaveLength(100)
  const total = (name: 'inputTokens' | 'outputTokens' | 'costMicros') =>
    rows.reduce((all, row) => all + (row[name] ?? 0), 0)
  const inKey = (await app.db.select().from(apiKeys).get())!
  expect(inKey).toMatchObject({
    requestCount: 100,
    inputTokens: total('inputTokens'),
    outputTokens: total('outputTokens'),
    costMicros: total('costMicros'),
  })
  const inHours = (await app.db
    .select({
      requests: sum(requestHours.requests),
      inputTokens: sum(requestHours.inputTokens),
      outputTokens: sum(requestHours.outputTokens),
    })
    .from(requestHours)
    .get())!
  expect(inHours).toEqual({
    requests: '100',
    inputTokens: String(total('inputTokens')),
    outputTokens: String(total('outputTokens')),
  })
  const [limit] = app.bindings.keys.find(key)!.limits
  expect(limit).toMatchObject({ settled: total('inputTokens') + total('outputTokens'), reserved: 0 })
  await expectNothingLeft(app)
})
