/** The reader's thread: opens the database for reading only and answers one read after another. */
import { readerDatabase } from '../db/open.ts'
import { AppError, type Code, type ErrorExtra } from './errors.ts'
import { type ReadArgs, type ReadName, read } from './model/reads.ts'

/** To the worker: which file, once and first; then calls. */
export type ToWorker =
  | { kind: 'open'; path: string }
  | { kind: 'call'; id: number; name: ReadName; args: ReadArgs<ReadName> }

/** From the worker: that it can read, or why not, once and first; then one `Answer` for each call, in their order. */
export type FromWorker = { kind: 'ready' } | ({ kind: 'unopened' } & Failure) | Answer

/** What SQLite threw: its `code` does not cross threads with it. */
interface Failure {
  error: Error
  code: unknown
}

/** A refusal is an `AppError`, whose class does not cross threads. */
export type Answer =
  | { id: number; value: unknown }
  | { id: number; refusal: { code: Code; extra: ErrorExtra } }
  | ({ id: number } & Failure)

const answering = (path: string) => {
  const { db } = readerDatabase(path)
  return ({ id, name, args }: Extract<ToWorker, { kind: 'call' }>): Answer => {
    try {
      return { id, value: read(db, name, args) }
    } catch (error) {
      if (error instanceof AppError)
        return { id, refusal: { code: error.code, extra: { ...error.extra, cause: undefined } } }
      return { id, ...failureOf(error) }
    }
  }
}

const failureOf = (thrown: unknown): Failure => {
  const error = thrownBySqlite(thrown)
  return { error, code: 'code' in error ? error.code : null }
}

/** Drizzle wraps it. */
const thrownBySqlite = (error: unknown): Error => {
  if (!(error instanceof Error)) return new Error(String(error))
  return error.cause === undefined ? error : thrownBySqlite(error.cause)
}

let answer: ReturnType<typeof answering> | null = null

const opened = (path: string): FromWorker => {
  try {
    answer = answering(path)
    return { kind: 'ready' }
  } catch (error) {
    return { kind: 'unopened', ...failureOf(error) }
  }
}

self.addEventListener('message', ({ data }: MessageEvent<ToWorker>) => {
  if (data.kind === 'open') {
    self.postMessage(opened(data.path))
  } else if (answer) self.postMessage(answer(data))
})
