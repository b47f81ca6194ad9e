/** Messages between the supervisor and its server processes. */
import type { AffinityChange } from '../proxy/pool/affinity.ts'

/** Where the first server process of this supervisor listens. */
export interface Listening {
  host: string
  /** As configured. */
  port: number
  /** The port in use, which differs from the configured one when that is 0. */
  actualPort: number
}

export interface StartOrder {
  kind: 'start'
  folder: string
  listening: Listening | null
  /** How many processes serve requests together. */
  processes: number
  /** Number of this process. Its supervisor never uses a number twice. */
  number: number
}

export type ToWorker =
  /** `listening`: null for the first process; otherwise the new one shares that port. */
  | StartOrder
  /** New connections go to the listeners at these positions of the port. */
  | { kind: 'steer'; positions: number[] }
  /** A successor serves new connections: finish what is running. */
  | { kind: 'hand-over' }
  /** The earlier process has given up the jobs and written its log. */
  | { kind: 'take-over' }
  | { kind: 'affinity'; change: AffinityChange }

export type FromWorker =
  | { kind: 'hello' }
  | { kind: 'listening'; listening: Listening; version: string }
  /** It did not start; the sentence is on stderr, too. */
  | { kind: 'failed'; message: string }
  | { kind: 'handed-over'; requests: number }
  /** For the processes that serve new connections. */
  | { kind: 'affinity'; change: AffinityChange }

/** The worker's end. */
export interface Link {
  send(message: FromWorker): void
  /** Passes later messages to `listener`, which replaces the previous listener. */
  listen(listener: (message: ToWorker) => unknown): void
  /** Called when the supervisor is gone. Before `onLost` is called, the process exits then. */
  onLost(fn: () => void): void
}

/** The supervisor's process starts servers with this argument. */
export const WORKER_FLAG = '--worker'

/** Null when this process was not started by a supervisor. */
export const openLink = (): Link | null => {
  if (!process.send || !process.argv.includes(WORKER_FLAG)) return null
  let listener: ((message: ToWorker) => unknown) | null = null
  // The runtime resets ignored signals in child processes (Bun 1.4.5), so under nohup only the supervisor ignores this
  // one. When a terminal is closed, the supervisor sends SIGTERM.
  process.on('SIGHUP', () => {})
  const early: ToWorker[] = []
  let lost: () => void = () => process.exit(1) // until it serves there is nothing to finish
  process.once('disconnect', () => lost())
  if (!process.connected) lost()
  process.on('message', (message: ToWorker) => {
    if (listener) listener(message)
    else early.push(message)
  })
  return {
    send: (message) => {
      if (process.connected) process.send?.(message)
    },
    listen: (next) => {
      listener = next
      for (const message of early.splice(0)) next(message)
    },
    onLost: (fn) => {
      lost = fn
    },
  }
}

/** Introduces this process; resolves with its orders. */
export const orders = (link: Link): Promise<StartOrder> =>
  new Promise((resolve) => {
    link.listen((message) => {
      if (message.kind === 'start') resolve(message)
    })
    link.send({ kind: 'hello' })
  })
