/** The connection has the required settings, and the file is private. */
import { afterEach, describe, expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'drizzle-orm'
import { commit } from '../../db/commit.ts'
import { openDatabase, readerDatabase } from '../../db/open.ts'

const dirs: string[] = []
const aFolder = () => {
  const dir = mkdtempSync(join(tmpdir(), 'open-'))
  dirs.push(dir)
  return dir
}
afterEach(() => {
  for (const dir of dirs.splice(0)) rmSync(dir, { recursive: true })
})

const mode = (path: string) => (statSync(path).mode & 0o777).toString(8)

describe('openDatabase', () => {
  test('sets the pragmas', () => {
    const { sqlite } = openDatabase(join(aFolder(), 'a.db'))
    const pragma = (name: string) => Object.values(sqlite.query(`PRAGMA ${name}`).get() ?? {})[0]
    expect(pragma('journal_mode')).toBe('wal')
    expect(pragma('synchronous')).toBe(2)
    expect(pragma('busy_timeout')).toBe(5000)
    expect(pragma('foreign_keys')).toBe(1)
    expect(pragma('temp_store')).toBe(2)
    expect(pragma('cache_size')).toBe(-16000)
    sqlite.close()
  })

  test('the file and its companions are readable by the owner only, even if they were not before', () => {
    const path = join(aFolder(), 'a.db')
    writeFileSync(path, '', { mode: 0o644 })
    const { sqlite } = openDatabase(path)
    sqlite.run('CREATE TABLE t (x)')
    expect([mode(path), mode(`${path}-wal`), mode(`${path}-shm`)]).toEqual(['600', '600', '600'])
    sqlite.close()
  })

  test('files beside it that others could read become private', () => {
    const path = join(aFolder(), 'a.db')
    const first = openDatabase(path)
    first.sqlite.run('CREATE TABLE t (x)')
    for (const file of [path, `${path}-wal`, `${path}-shm`]) chmodSync(file, 0o644)
    const second = openDatabase(path)
    expect([mode(path), mode(`${path}-wal`), mode(`${path}-shm`)]).toEqual(['600', '600', '600'])
    for (const { sqlite } of [first, second]) sqlite.close()
  })
})

describe('readerDatabase', () => {
  test('sees later commits and cannot write', async () => {
    const path = join(aFolder(), 'a.db')
    const writer = openDatabase(path)
    writer.sqlite.run('CREATE TABLE t (x)')
    const reader = readerDatabase(path)
    await commit(writer.db, (tx) => tx.run(sql`INSERT INTO t VALUES (7)`))
    expect(await reader.db.all<{ x: number }>(sql`SELECT x FROM t`)).toEqual([{ x: 7 }])
    await expect(commit(reader.db, (tx) => tx.run(sql`INSERT INTO t VALUES (8)`))).rejects.toThrow('only read')
    reader.sqlite.close()
    writer.sqlite.close()
  })

  test('a missing file is an error, not an empty database', () => {
    expect(() => readerDatabase(join(aFolder(), 'none.db'))).toThrow()
  })
})
