/** Opens the database file with the settings everything else relies on. */
import { Database } from 'bun:sqlite'
import { closeSync, openSync } from 'node:fs'
import { resolve } from 'node:path'
import { createDb, type Db, newTurn, type Turn } from './commit.ts'
import { onThisThread, waitForLocksAtMost } from './connection.ts'
import { makePrivate } from './private-file.ts'

export interface OpenedDatabase {
  /** The connection that writes, for migrations and PRAGMAs. Closing it also closes the one that reads. */
  sqlite: Database
  db: Db
  /** Closes the connection that reads, for what needs the file alone; the next query opens it again. */
  stopReading: () => void
}

interface OpenOptions {
  /**
   * Receives errors of `onChange` listeners. Default: an uncaught exception, which ends a command and which the server
   * logs.
   */
  onListenerError?: (error: unknown) => void
}

/**
 * Opens `path` for reading and writing, creating it with mode 0600. `synchronous=FULL`, so that a committed refresh
 * token survives a power cut; without it the account is lost.
 */
export function openDatabase(path: string, { onListenerError = throwUncaught }: OpenOptions = {}): OpenedDatabase {
  createPrivately(path)
  const sqlite = new WriterConnection(path)
  prepareWriter(sqlite)
  const db = createDb({
    reader: onThisThread(() => sqlite.reader()),
    writer: onThisThread(() => sqlite),
    turn: sqlite.turn,
    onListenerError,
  })
  return { sqlite, db, stopReading: () => sqlite.closeReader() }
}

/** For a connection that writes. */
export function prepareWriter(sqlite: Database): void {
  waitForLocksAtMost(sqlite, 5000)
  sqlite.run('PRAGMA journal_mode = WAL')
  sqlite.run('PRAGMA synchronous = FULL')
  sqlite.run('PRAGMA foreign_keys = ON')
  setMemory(sqlite)
}

/** Opens an existing `path` read-only. Sees every commit of the writer; writing throws. */
export function readerDatabase(path: string): OpenedDatabase & { close: () => unknown } {
  const sqlite = openReader(path)
  const db = createDb({ reader: onThisThread(() => sqlite), writer: null, onListenerError: throwUncaught })
  return { sqlite, db, stopReading: () => {}, close: () => sqlite.close(true) }
}

/** By path, with how many connections share it. */
const turns = new Map<string, { turn: Turn; users: number }>()

/** Together with the connection that reads, opened with the first query. */
class WriterConnection extends Database {
  readonly turn: Turn
  readonly #path: string
  #reader: Database | null = null
  #isClosed = false

  constructor(path: string) {
    super(path, { strict: true })
    this.#path = resolve(path)
    const shared = turns.getOrInsertComputed(this.#path, () => ({ turn: newTurn(), users: 0 }))
    shared.users++
    this.turn = shared.turn
  }

  reader(): Database {
    this.#reader ??= openReader(this.#path)
    return this.#reader
  }

  closeReader(): void {
    this.#reader?.close()
    this.#reader = null
  }

  override close(throwOnError?: boolean): void {
    this.closeReader() // first: the last connection removes the write-ahead log
    super.close(throwOnError)
    const shared = turns.get(this.#path)
    if (this.#isClosed || !shared) return
    this.#isClosed = true
    if (--shared.users === 0) turns.delete(this.#path)
  }
}

function openReader(path: string): Database {
  const sqlite = new Database(path, { strict: true, readonly: true })
  waitForLocksAtMost(sqlite, 5000)
  sqlite.run('PRAGMA query_only = ON')
  setMemory(sqlite)
  return sqlite
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

/** An uncaught exception ends a command; the server logs it. */
export function throwUncaught(error: unknown): void {
  queueMicrotask(() => {
    throw error
  })
}
