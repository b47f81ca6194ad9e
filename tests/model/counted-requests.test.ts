/** Warm-ups are in no total, wherever log rows are added up. */
import { expect, test } from 'bun:test'
import { outcomesSince } from '../../src/model/log/request-log-tail.ts'
import { overviewPresent } from '../../src/model/overview/overview.ts'
import { testDb } from '../support/db.ts'
import { aRequestRow } from '../support/keys.ts'

const NOW = Date.UTC(2026, 0, 3, 12)

/** A request and a warm-up with the same result. */
const both = async (row: { status: 'ok' | 'error' | 'cancelled'; errorCode?: string; model?: string }) => {
  const { db } = testDb()
  for (const kind of ['normal', 'warmup'] as const)
    await aRequestRow(db, { id: kind, kind, keyId: null, startedAt: NOW - 1000, ...row })
  return db
}

test.each(['ok', 'error', 'cancelled'] as const)(
  'sluice status counts one request that ended with %s',
  async (status) => {
    const none = { ok: 0, error: 0, cancelled: 0 }
    expect(await outcomesSince(await both({ status }), NOW - 3_600_000)).toEqual({ ...none, [status]: 1 })
  },
)

test('the errors of the overview count the request, and omit a cause that only warm-ups had', async () => {
  const db = await both({ status: 'error', errorCode: 'overloaded_error' })
  await aRequestRow(db, {
    id: 'w2',
    kind: 'warmup',
    keyId: null,
    startedAt: NOW - 500,
    status: 'error',
    errorCode: 'no_accounts',
  })
  const { errors } = await overviewPresent(db, NOW)
  expect(errors.map(({ count, codes, newest }) => [count, codes, newest.id])).toEqual([
    [1, ['overloaded_error'], 'normal'],
  ])
})
