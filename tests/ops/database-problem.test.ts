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

test.each([
  ['ERR_POSTGRES_CONNECTION_REFUSED', undefined, 'cannot be reached'],
  ['ERR_POSTGRES_CONNECTION_CLOSED', undefined, 'cannot be reached'],
  ['ERR_POSTGRES_SERVER_ERROR', '57P01', 'cannot be reached'],
  ['ERR_POSTGRES_SERVER_ERROR', '28P01', 'rejected the connection'],
  ['ERR_POSTGRES_SERVER_ERROR', '3D000', 'rejected the connection'],
  ['ERR_POSTGRES_SERVER_ERROR', '53300', 'no more connections'],
  ['ERR_POSTGRES_SERVER_ERROR', '53100', 'no space left'],
  ['ERR_POSTGRES_SERVER_ERROR', '25006', 'is read-only'],
])('%s %s of PostgreSQL: %s', (code, errno, says) => {
  expect(getDatabaseProblem(failed(code, { errno }), PATH)?.says).toContain(says)
  expect(getDatabaseProblem(new Error('a query failed', { cause: failed(code, { errno }) }), PATH)).not.toBeNull()
})

test('every other error is unchanged', () => {
  const bug = failed('ERR_POSTGRES_SERVER_ERROR', { errno: '42P01' })
  for (const err of [failed('SQLITE_BUSY'), bug, new TypeError('x is not a function'), 'a text'])
    expect(getDatabaseProblem(err, PATH)).toBeNull()
})
