/** Opens the database file with the settings everything else relies on. */
import { Database } from 'bun:sqlite'
import { closeSync, openSync } from 'node:fs'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { asDb, type Db, type Driver } from './commit.ts'
import { makePrivate } from './private-file.ts'

export interface OpenedDatabase {
  /** The raw connection, for migrations, PRAGMAs and closing. */
  sqlite: Database
  db: Db
}

interface OpenOptions {
  /**
   * Receives errors of `onChange` listeners. Default: an uncaught exception, which ends a command and which the server
   * logs.
   */
  onListenerError?: (error: unknown) => void
}

/**
 * Opens `path` for reading and writing, creating it with mode 0600, or a private database for `':memory:'`.
 * `synchronous=FULL`, so that a committed refresh token survives a power cut; without it the account is lost.
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

/** Opens an existing `path` read-only. Sees every commit of the writer; writing throws. */
export function readerDatabase(path: string, options: OpenOptions = {}): OpenedDatabase {
  const sqlite = new Database(path, { strict: true, readonly: true })
  waitForLocksAtMost(sqlite, 5000)
  sqlite.run('PRAGMA query_only = ON')
  setMemory(sqlite)
  return { sqlite, db: wrap(sqlite, options) }
}

/** How long a statement waits for another process's lock before throwing SQLITE_BUSY. The event loop waits too. */
export function waitForLocksAtMost(sqlite: Database, ms: number): void {
  sqlite.run(`PRAGMA busy_timeout = ${ms}`)
}

/**
 * Called before SQLite opens the file, so that it is never readable by others; SQLite gives new companion files the
 * same mode. Companion files of an earlier release may have a wider mode.
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
