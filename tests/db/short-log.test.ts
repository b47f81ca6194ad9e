/** Work that limits the write-ahead log restores the previous limit, in whatever order parallel work ends. */
import { expect, test } from 'bun:test'
import { deferCheckpoints, withShortLog } from '../../db/short-log.ts'
import { testDb } from '../support/db.ts'

test.each([
  ['in a command', 1000, 'the first ends first', ['first', 'second']],
  ['in a command', 1000, 'the second ends first', ['second', 'first']],
  ['in a server', 4000, 'the first ends first', ['first', 'second']],
  ['in a server', 4000, 'the second ends first', ['second', 'first']],
] as const)('%s, %i pages, %s', async (_where, usual, _order, ends) => {
  const { db, sqlite } = testDb()
  const pages = () => sqlite.query<{ wal_autocheckpoint: number }, []>('PRAGMA wal_autocheckpoint').get()
  if (usual === 4000) deferCheckpoints(db)
  const begin = () => {
    const work = Promise.withResolvers<void>()
    return { done: withShortLog(db, () => work.promise), end: work.resolve }
  }
  const works = { first: begin(), second: begin() }
  expect(pages()).toEqual({ wal_autocheckpoint: 200 })
  for (const name of ends) {
    works[name].end()
    await works[name].done
  }
  expect(pages()).toEqual({ wal_autocheckpoint: usual })
})
