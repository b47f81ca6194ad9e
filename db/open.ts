/** Opens the database file with the settings everything else relies on. */
import { Database } from 'bun:sqlite'
import { closeSync, openSync } from 'node:fs'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { asDb, type Db, type Driver } from './commit.ts'
import { makePrivate } from './private-file.ts'

export interface OpenedDatabase {
  /** The connection itself: for migrations, PRAGMAs and closing. */
  sqlite: Database
  db: Db
}

interface OpenOptions {
  /** Receives what an `onChange` listener throws. By default it is an uncaught exception: a command ends, the server logs it. */
  onListenerError?: (error: unknown) => void
}

/**
 * Opens `path` for reading and writing, creating it with mode 0600, or a private database for `':memory:'`.
 * `synchronous=FULL`: a committed refresh token survives a power cut, without which its account is lost.
 */
export function openDatabase(path: string, options: OpenOptions = {}): OpenedDatabase {
  if (path !== ':memory:') createPrivately(path)
  return setUp(new Database(path, { strict: true }), options)
}

/** A private database in memory with the content of `bytes`, which `serialize()` returned. */
export function databaseFrom(bytes: Uint8Array, options: OpenOptions = {}): OpenedDatabase {
  return setUp(Database.deserialize(bytes, { strict: true }), options)
}

function setUp(sqlite: Database, options: OpenOptions): OpenedDatabase {
  waitForLocksAtMost(sqlite, 5000)
  sqlite.run('PRAGMA journal_mode = WAL')
  sqlite.run('PRAGMA synchronous = FULL')
  sqlite.run('PRAGMA foreign_keys = ON')
  setMemory(sqlite)
  return { sqlite, db: wrap(sqlite, options) }
}

/** Opens an existing `path` for reading only. It sees every commit of the writer; a write on it throws. */
export function readerDatabase(path: string, options: OpenOptions = {}): OpenedDatabase {
  const sqlite = new Database(path, { strict: true, readonly: true })
  waitForLocksAtMost(sqlite, 5000)
  sqlite.run('PRAGMA query_only = ON')
  setMemory(sqlite)
  return { sqlite, db: wrap(sqlite, options) }
}

/** How long a statement waits for another process's lock before it throws SQLITE_BUSY. The event loop waits with it. */
export function waitForLocksAtMost(sqlite: Database, ms: number): void {
  sqlite.run(`PRAGMA busy_timeout = ${ms}`)
}

/**
 * Before SQLite opens it, so that the file is never readable by others; SQLite gives new companions the mode of the database.
 * Companions left by an earlier release may be looser.
 */
function createPrivately(path: string): void {
  closeSync(openSync(path, 'a', 0o600))
  for (const file of [path, `${path}-wal`, `${path}-shm`, `${path}-journal`]) makePrivate(file)
}

function setMemory(sqlite: Database): void {
  sqlite.run('PRAGMA temp_store = MEMORY')
  sqlite.run('PRAGMA cache_size = -16000')
}

function wrap(sqlite: Database, { onListenerError = throwUncaught }: OpenOptions): Db {
  const driver = drizzle(sqlite, { casing: 'snake_case' }) as unknown as Driver // as: drizzle types run() as void
  return asDb(driver, onListenerError)
}

function throwUncaught(error: unknown): void {
  queueMicrotask(() => {
    throw error
  })
}
