/** What errors of SQLite and the file system mean for a database, with the file and the advice. */
import { expect, test } from 'bun:test'
import { getDatabaseProblem } from '../../src/ops/database-problem.ts'

const PATH = '/data/sluice.db'
const failed = (code: string, more: object = {}) => Object.assign(new Error('it failed'), { code, ...more })

test.each([
  ['SQLITE_NOTADB', 'is damaged', 'sluice restore FILE'],
  ['SQLITE_CORRUPT_INDEX', 'is damaged', 'sluice restore FILE'],
  ['SQLITE_FULL', 'no space left', 'Free some space'],
  ['SQLITE_IOERR_SHMSIZE', 'cannot be read or written', 'full or failing'],
  ['SQLITE_CANTOPEN', 'cannot be opened', 'Make the user that runs Sluice the owner'],
  ['SQLITE_READONLY_DIRECTORY', 'cannot be opened', 'Make the user that runs Sluice the owner'],
])('%s %s', (code, says, advice) => {
  const trouble = getDatabaseProblem(failed(code), PATH)
  expect(trouble?.says).toContain(PATH)
  expect(trouble).toEqual({ says: expect.stringContaining(says), advice: expect.stringContaining(advice) })
  expect(getDatabaseProblem(new Error('a migration failed', { cause: failed(code) }), PATH)).toEqual(trouble)
})

test.each([
  ['EACCES', 'cannot be opened'],
  ['EROFS', 'cannot be opened'],
  ['ENOSPC', 'no space left'],
])('%s of the file itself, and of no other: %s', (code, says) => {
  expect(getDatabaseProblem(failed(code, { path: PATH }), PATH)?.says).toContain(says)
  expect(getDatabaseProblem(failed(code, { path: '/data/encryption.key' }), PATH)).toBeNull()
})

test('every other error is unchanged', () => {
  for (const err of [failed('SQLITE_BUSY'), new TypeError('x is not a function'), 'a text'])
    expect(getDatabaseProblem(err, PATH)).toBeNull()
})
