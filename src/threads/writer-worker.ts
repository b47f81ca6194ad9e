/** The thread that writes to the database: runs one procedure after the other on its own connection. */
import { Database } from 'bun:sqlite'
import { PROCEDURES, type Procedure } from '../../db/connection.ts'
import { prepareWriter } from '../../db/open.ts'
import { writeLedger } from '../proxy/ledger/ledger-writer.ts'

const KNOWN = { ...PROCEDURES, writeLedger }
export type KnownName = keyof typeof KNOWN

/** By function, which the other threads have as well. */
export const NAMES: ReadonlyMap<unknown, KnownName> = new Map(
  Object.entries(KNOWN).map(([name, procedure]) => [procedure, name as KnownName]), // as: the keys of KNOWN
)

/** To the worker: the path of the file once, first; then calls; then null, to close. */
export type ToWriter = string | { id: number; name: KnownName; args: unknown } | null

/** From the worker: `open` once, then an answer per call, in order, then `closed`. */
export type FromWriter = 'open' | 'closed' | { id: number; value: unknown } | ({ id: number } & Failure)

/** The `code` of SQLite's errors is lost when they cross threads. */
interface Failure {
  error: unknown
  code: unknown
}

let sqlite: Database | null = null

const obey = (message: ToWriter): FromWriter => {
  if (typeof message === 'string') {
    sqlite = new Database(message, { strict: true, readwrite: true })
    prepareWriter(sqlite)
    return 'open'
  }
  if (message === null) {
    sqlite?.close(true) // otherwise prepared statements keep it open, and with it the write-ahead log (Bun 1.4.5)
    return 'closed'
  }
  const { id, name, args } = message
  const run = KNOWN[name] as Procedure<unknown, unknown> // as: `NAMES` pairs names with procedures
  try {
    if (!sqlite) throw new Error('The database is not open yet.')
    return { id, value: run(sqlite, args) }
  } catch (error) {
    return { id, error, code: error instanceof Error && 'code' in error ? error.code : undefined }
  }
}

if (!Bun.isMainThread)
  self.addEventListener('message', ({ data }: MessageEvent<ToWriter>) => self.postMessage(obey(data)))
