/** Commits around work outside the database, while PostgreSQL fails over: jobs wait longer than clients. */
import { expect, test } from 'bun:test'
import { commitClaim, commitResult } from '../../db/commit-again.ts'
import { readFact, writeFact } from '../../src/model/facts.ts'
import { ManualClock } from '../support/clock.ts'
import { testDb } from '../support/db.ts'
import { loseAnswer, loseDatabase } from '../support/lost-answer.ts'

const setup = () => {
  const { db } = testDb()
  const clock = new ManualClock()
  const stopping = new AbortController()
  const job = { db, clock, stopping: stopping.signal }
  const store = (deps: Parameters<typeof commitResult>[0]) => {
    const stored = { end: 'none yet' }
    commitResult(deps, (tx) => writeFact(tx, 'result', 'kept')).then(
      () => (stored.end = 'stored'),
      () => (stored.end = 'failed'),
    )
    return stored
  }
  return { db, clock, stopping, job, store }
}

test('a job stores a result after an outage of a minute', async () => {
  const { db, clock, job, store } = setup()
  const restore = loseDatabase(db)
  const stored = store(job)
  await clock.advance('60s')
  expect(stored.end).toBe('none yet')
  restore()
  await clock.advance('4s')
  expect([stored.end, await readFact(db, 'result'), clock.pending]).toEqual(['stored', 'kept', 0])
})

test('a job keeps its claim after an outage of a minute if the claim was stored', async () => {
  const { db, clock, job } = setup()
  loseAnswer(db)
  const claimed = commitClaim(job, async (tx, mayBeStored) => {
    const isMine = mayBeStored && (await readFact(tx, 'claim')) === 'mine'
    await writeFact(tx, 'claim', 'mine')
    return isMine
  })
  await clock.advance('100ms')
  const restore = loseDatabase(db)
  await clock.advance('60s')
  restore()
  await clock.advance('4s')
  expect(await claimed).toBe(true)
})

test('a job gives up after five minutes', async () => {
  const { db, clock, job, store } = setup()
  loseDatabase(db)
  const stored = store(job)
  await clock.advance('290s')
  expect(stored.end).toBe('none yet')
  await clock.advance('20s')
  expect([stored.end, clock.pending]).toEqual(['failed', 0])
})

test.each([
  ['and stores it if the database is back', true, 'stored'],
  ['and gives up if it is not', false, 'failed'],
])('a job tries once more at shutdown, %s', async (_, isBack, end) => {
  const { db, clock, stopping, job, store } = setup()
  const restore = loseDatabase(db)
  const stored = store(job)
  await clock.advance('60s')
  expect(stored.end).toBe('none yet')
  if (isBack) restore()
  stopping.abort()
  await clock.advance(0)
  expect([stored.end, clock.pending]).toEqual([end, 0])
})

test('a client waits about five seconds', async () => {
  const { db, clock, store } = setup()
  loseDatabase(db)
  const stored = store({ db, clock })
  await clock.advance('5s')
  expect(stored.end).toBe('none yet')
  await clock.advance('300ms')
  expect([stored.end, clock.pending]).toEqual(['failed', 0])
})
