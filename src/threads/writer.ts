/** Writes to the database in a thread of its own, so that no stream waits for the disk or for another process's lock. */
import type { Connection, Procedure } from '../../db/connection.ts'
import { type FromWriter, NAMES, type ToWriter } from './writer-worker.ts'

export interface WriterThread extends Connection {
  /** Closes the connection after all earlier calls. Later calls reject, and an open commit is rolled back. */
  close(): Promise<void>
}

/** `onLost`: the thread ended by itself, and nothing can be written any more. Rejects if the file cannot be opened. */
export const startWriter = (path: string, onLost: (reason: string) => void): Promise<WriterThread> => {
  const worker = newWorker()
  const post = (message: ToWriter) => worker.postMessage(message)
  const calls = new Map<number, PromiseWithResolvers<unknown>>()
  const opened = Promise.withResolvers<WriterThread>()
  const closed = Promise.withResolvers<void>()
  let lastId = 0
  let isLost = false
  let isClosing = false
  let isClosed = false
  const lose = (reason: string) => {
    if (isLost || isClosed) return
    isLost = true
    const error = new Error(`The thread that writes to the database has ended: ${reason}`)
    opened.reject(error)
    for (const { reject } of calls.values()) reject(error)
    onLost(reason)
  }
  const thread: WriterThread = {
    async call<Args, Value>(procedure: Procedure<Args, Value>, args: Args) {
      const name = NAMES.get(procedure)
      if (!name) throw new Error(`The writing thread does not know ${procedure.name}.`)
      if (isLost || isClosing) throw new Error('The thread that writes to the database has ended.')
      const id = ++lastId
      const call = Promise.withResolvers<Value>()
      calls.set(id, call as PromiseWithResolvers<unknown>) // as: the worker runs `procedure`
      try {
        post({ id, name, args })
      } catch (cause) {
        calls.delete(id)
        throw new TypeError(`What ${name} gets cannot be sent to the writing thread.`, { cause })
      }
      return call.promise
    },
    async close() {
      isClosing = true
      post(null)
      await closed.promise
      isClosed = true
      worker.terminate()
    },
  }
  worker.addEventListener('message', ({ data }: MessageEvent<FromWriter>) => {
    if (data === 'open') return opened.resolve(thread)
    if (data === 'closed') return closed.resolve()
    const call = calls.get(data.id)
    calls.delete(data.id)
    if ('value' in data) call?.resolve(data.value)
    else call?.reject(data.error instanceof Error ? Object.assign(data.error, { code: data.code }) : data.error)
  })
  worker.addEventListener('error', ({ message }) => lose(message))
  worker.addEventListener('close', () => lose('it closed'))
  post(path)
  return opened.promise
}

/** The URL must be written like this for the compiled executable to find its entry. */
const newWorker = (): Worker => new Worker(new URL('./writer-worker.ts', import.meta.url).href, { name: 'writer' })
