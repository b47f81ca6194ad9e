/** A server process of the supervisor. */
import { constants } from 'node:os'
import type { Environment } from '../lib/env-proxy.ts'
import { type FromWorker, type ToWorker, WORKER_FLAG } from './worker-messages.ts'

interface WorkerDeps {
  environment: Environment
  /** Monotonic. */
  startedAt: number
  received: (message: FromWorker) => void
  /** Gets the exit code; 128 and more means a signal, as in a shell. */
  ended: (code: number) => void
}

export class Worker {
  readonly #child: Bun.Subprocess
  readonly startedAt: number
  /** Null once it listens; otherwise why it does not. */
  readonly started: Promise<string | null>
  /** After `ended` was called. */
  readonly exited: Promise<void>
  isReady = false
  /** Whether it has handed over or ended. */
  hasHandedOver = false
  readonly #handedOver = Promise.withResolvers<void>()

  constructor(command: readonly string[], { environment, startedAt, received, ended }: WorkerDeps) {
    this.startedAt = startedAt
    const { promise: started, resolve } = Promise.withResolvers<string | null>()
    this.started = started
    this.#child = Bun.spawn([...command, 'serve', WORKER_FLAG], {
      env: environment,
      stdio: ['inherit', 'inherit', 'inherit'],
      serialization: 'json',
      ipc: (message: FromWorker) => {
        if (message.kind === 'listening') this.isReady = true
        received(message)
        if (message.kind === 'listening') resolve(null)
        if (message.kind === 'failed') resolve(message.message)
        if (message.kind === 'handed-over') this.#endHandOver()
      },
    })
    this.exited = this.#child.exited.then(() => {
      const { exitCode, signalCode } = this.#child
      resolve(`The new process ended before it was ready (${signalCode ?? `exit code ${exitCode}`}).`)
      this.#endHandOver()
      ended(exitCode ?? 128 + (constants.signals[signalCode as NodeJS.Signals] ?? 0)) // as: one of both is set
    })
  }

  get pid(): number {
    return this.#child.pid
  }

  send(message: ToWorker): void {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.#child.send(message)
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** Resolves when it has given up the jobs and written its log, or is gone. */
  handOver(): Promise<void> {
    this.send({ kind: 'hand-over' })
    return this.#handedOver.promise
  }

  #endHandOver(): void {
    this.hasHandedOver = true
    this.#handedOver.resolve()
  }
}
