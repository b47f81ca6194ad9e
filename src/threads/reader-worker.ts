/** The reader's thread: opens the database read-only and answers one read at a time. */
import { readerDatabase } from '../../db/open.ts'
import { AppError, type Code, type ErrorExtra } from '../errors.ts'
import { type ReadArgs, type ReadName, read } from '../model/reads.ts'

/** To the worker: the file once, first; then calls. */
export type ToWorker =
  | { kind: 'open'; path: string }
  | { kind: 'call'; id: number; name: ReadName; args: ReadArgs<ReadName> }

/** From the worker: ready or failed once, first; then one `Answer` per call, in order. */
export type FromWorker = { kind: 'ready' } | ({ kind: 'unopened' } & Failure) | Answer

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

const answering = (path: string) => {
  const { db } = readerDatabase(path)
  return ({ id, name, args }: Extract<ToWorker, { kind: 'call' }>): Answer => {
    try {
      return { id, value: read(db, name, args) }
    } catch (error) {
      if (error instanceof AppError)
        return { id, refusal: { code: error.code, extra: { ...error.extra, cause: undefined } } }
      return { id, ...getFailure(error) }
    }
  }
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

let answer: ReturnType<typeof answering> | null = null

const opened = (path: string): FromWorker => {
  try {
    answer = answering(path)
    return { kind: 'ready' }
  } catch (error) {
    return { kind: 'unopened', ...getFailure(error) }
  }
}

self.addEventListener('message', ({ data }: MessageEvent<ToWorker>) => {
  if (data.kind === 'open') {
    self.postMessage(opened(data.path))
  } else if (answer) self.postMessage(answer(data))
})
