/** A separate database for each test: in memory with the real schema, or a file for tests about files. */
import { Database } from 'bun:sqlite'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDb } from '../../db/commit.ts'
import { onThisThread } from '../../db/connection.ts'
import { migrate } from '../../db/migrate.ts'
import { type OpenedDatabase, openDatabase } from '../../db/open.ts'
import { createPostgresDb } from './postgres-db.ts'

const FOLDER = join(import.meta.dir, '../../db/migrations')

const migrations = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.sql'))
  .map((file) => ({ name: file.slice(0, -'.sql'.length), sql: readFileSync(join(FOLDER, file), 'utf8') }))

/**
 * Migrated once per process: applying every migration takes 12 ms, copying the result less than one. Small pages, because
 * most tables stay empty: 200 KB instead of 660 KB.
 */
const template = (() => {
  using sqlite = new Database(':memory:', { strict: true })
  sqlite.run('PRAGMA page_size = 1024')
  migrate(sqlite, migrations, 0)
  sqlite.run('VACUUM')
  return sqlite.serialize()
})()

/** An error in a change listener fails the test instead of ending the process. */
export const onListenerError = (error: unknown) => {
  throw error
}

/**
 * In memory, where reads and commits share the only connection; with `SLUICE_TEST_DB=file` in a file with two, as in the
 * server, which takes longer. `pages` is what `serialize` returned.
 */
export const testDb = (pages: Uint8Array = template): OpenedDatabase => {
  const kind = process.env.SLUICE_TEST_DB
  if (kind === 'postgres') return onPostgres()
  return kind === 'file' ? inFile(pages) : inMemory(pages)
}

const inMemory = (pages: Uint8Array): OpenedDatabase => {
  const sqlite = Database.deserialize(pages, { strict: true })
  sqlite.run('PRAGMA foreign_keys = ON')
  sqlite.run('PRAGMA temp_store = MEMORY')
  return { sqlite, db: createDb({ writer: onThisThread(() => sqlite), onListenerError }), stopReading: () => {} }
}

const inFile = (pages: Uint8Array): OpenedDatabase => {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-test-'))
  const path = join(dir, 'sluice.db')
  writeFileSync(path, pages)
  process.once('exit', () => rmSync(dir, { recursive: true, force: true }))
  return openDatabase(path, { onListenerError })
}

/** The connection to SQLite is missing: tests that use it cannot run there. */
const onPostgres = (): OpenedDatabase => {
  const db = createPostgresDb(onListenerError)
  const sqlite = new Proxy({} as Database, {
    get: () => {
      throw new Error('This test uses SQLite itself.')
    },
  })
  return { sqlite, db, stopReading: () => {} }
}
