/** The reader's thread: opens the database read-only and answers one read at a time. */
import { readerDatabase } from '../../db/open.ts'
import { AppError, type Code, type ErrorExtra } from '../errors.ts'
import { type ReadArgs, type ReadName, read } from '../model/reads.ts'

/** Messages to the worker: first the file, then calls, and finally `close`. */
export type ToWorker =
  | { kind: 'open'; path: string }
  | { kind: 'call'; id: number; name: ReadName; args: ReadArgs<ReadName> }
  | { kind: 'close' }

/** Messages from the worker: first ready or failed, then one `Answer` per call in order, and finally `closed`. */
export type FromWorker = { kind: 'ready' } | ({ kind: 'unopened' } & Failure) | Answer | { kind: 'closed' }

/** A SQLite error: its `code` is lost when crossing threads. */
interface Failure {
  error: Error
  code: unknown
}

/** A rejection is an `AppError`, whose class is lost when crossing threads. */
export type Answer =
  | { id: number; value: unknown }
  | { id: number; refusal: { code: Code; extra: ErrorExtra } }
  | ({ id: number } & Failure)

const opened = (path: string) => {
  const { sqlite, db } = readerDatabase(path)
  const answer = async ({ id, name, args }: Extract<ToWorker, { kind: 'call' }>): Promise<Answer> => {
    try {
      return { id, value: await read(db, name, args) }
    } catch (error) {
      if (error instanceof AppError)
        return { id, refusal: { code: error.code, extra: { ...error.extra, cause: undefined } } }
      return { id, ...getFailure(error) }
    }
  }
  return { answer, close: () => sqlite.close(true) } // also closes prepared statements, like the writer
}

const getFailure = (thrown: unknown): Failure => {
  const error = thrownBySqlite(thrown)
  return { error, code: 'code' in error ? error.code : null }
}

/** Unwraps drizzle's error. */
const thrownBySqlite = (error: unknown): Error => {
  if (!(error instanceof Error)) return new Error(String(error))
  return error.cause === undefined ? error : thrownBySqlite(error.cause)
}

let database: ReturnType<typeof opened> | null = null

const open = (path: string): FromWorker => {
  try {
    database = opened(path)
    return { kind: 'ready' }
  } catch (error) {
    return { kind: 'unopened', ...getFailure(error) }
  }
}

const receive = async ({ data }: MessageEvent<ToWorker>): Promise<void> => {
  if (data.kind === 'open') self.postMessage(open(data.path))
  else if (data.kind === 'close') {
    database?.close()
    self.postMessage({ kind: 'closed' } satisfies FromWorker)
  } else if (database) self.postMessage(await database.answer(data))
}

self.addEventListener('message', (message: MessageEvent<ToWorker>) => void receive(message))
