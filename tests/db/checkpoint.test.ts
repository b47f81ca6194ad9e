/** Another connection checkpoints the write-ahead log completely while a writer continues. */
import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { canReadPagesBehind, checkpoint, pagesBehind, supportsNoopCheckpoint } from '../../db/checkpoint.ts'
import { loggedDb } from '../support/db.ts'

let dir: string
let path: string
let sqlite: Database
let remove: () => void

beforeEach(() => {
  ;({ dir, path, sqlite, remove } = loggedDb())
})

afterEach(() => remove())

const fill = (rows: number) =>
  sqlite.run(
    `WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${rows})
    INSERT INTO t (text) SELECT hex(randomblob(500)) FROM n`,
  )

/** The content of the file without its log; -1 if it has no such table. */
const rowsInFileAlone = (): number => {
  const copy = join(dir, 'copy.db')
  Bun.spawnSync(['cp', path, copy])
  using alone = new Database(copy)
  if (!alone.query("SELECT 1 FROM sqlite_schema WHERE name = 't'").get()) return -1
  return alone.query<{ n: number }, []>('SELECT count(*) AS n FROM t').get()?.n ?? -1
}

describe('checkpoint', () => {
  test('all commits are in the file after it, and the log starts over', () => {
    fill(400)
    checkpoint(path)
    expect(rowsInFileAlone()).toBe(400)
    expect(pagesBehind(sqlite)).toBe(0)
    const { size } = statSync(`${path}-wal`)
    fill(1)
    expect(statSync(`${path}-wal`).size).toBe(size)
  })

  test('SQLite versions that checkpoint when asked to count are not asked', () => {
    expect(['3.37.0', '3.43.2', '3.50.4', '3.51.0', '3.54.1'].map(supportsNoopCheckpoint)).toEqual([
      false,
      false,
      false,
      true,
      true,
    ])
  })

  test.skipIf(!canReadPagesBehind(new Database()))(
    'pages not checkpointed are counted, without checkpointing them',
    () => {
      fill(400)
      const behind = pagesBehind(sqlite)
      expect(behind).toBeGreaterThan(100)
      expect(pagesBehind(sqlite)).toBe(behind)
      expect(rowsInFileAlone()).toBe(-1)
    },
  )

  test('a writer in the middle of a transaction is neither blocked nor checkpointed', () => {
    fill(10)
    sqlite.run('BEGIN IMMEDIATE')
    fill(5)
    checkpoint(path)
    expect(rowsInFileAlone()).toBe(10)
    sqlite.run('COMMIT')
    expect(sqlite.query('SELECT count(*) AS n FROM t').get()).toEqual({ n: 15 })
    expect(sqlite.query('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' })
  })

  test('it is no commit: watchers of other processes’ commits see none', () => {
    const version = () => sqlite.query('PRAGMA data_version').get()
    fill(400)
    const before = version()
    checkpoint(path)
    fill(1)
    checkpoint(path)
    expect(version()).toEqual(before)
  })

  test('the locks of the writer hold after it', () => {
    sqlite.run('BEGIN IMMEDIATE')
    fill(1)
    checkpoint(path)
    const other = Bun.spawnSync([
      process.execPath,
      '-e',
      `new (require('bun:sqlite').Database)(${JSON.stringify(path)}).run('BEGIN IMMEDIATE')`,
    ])
    expect(other.stderr.toString()).toContain('database is locked')
    sqlite.run('COMMIT')
  })

  test('a missing file is not created', () => {
    const elsewhere = join(dir, 'none.db')
    expect(() => checkpoint(elsewhere)).toThrow()
    expect(existsSync(elsewhere)).toBe(false)
  })
})
