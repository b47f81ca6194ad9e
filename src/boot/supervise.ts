/**
 * `sluice serve` as operators start it: keeps its process id, runs the server as a child process, and replaces that
 * without ending a request. So systemd, a container and a terminal see one process, whatever is updated below it.
 */
import { resolve } from 'node:path'
import { isatty } from 'node:tty'
import { acquireFolderLock } from '../../db/lock.ts'
import { makePrivateFolder } from '../cli/private-folder.ts'
import { type Clock, systemClock } from '../lib/clock.ts'
import type { Environment } from '../lib/env-proxy.ts'
import { createLog, type Log } from '../lib/log.ts'
import { sdNotify } from '../lib/sd-notify.ts'
import { workerCommand } from '../ops/own-command.ts'
import { readConfig, withEnvFile } from './env.ts'
import { type ReloadReport, writeReport } from './reload-report.ts'
import { Worker } from './worker.ts'
import type { FromWorker, Listening } from './worker-messages.ts'

/** A successor that is not ready by then is ended; migrations of a large database included. */
const START_LIMIT_MS = 300_000
/** A process that ends this soon after its start would only end again. */
const SHORT_LIFE_MS = 10_000

/** Resolves with the exit code. Throws `ConfigError`, `FolderError` and `FolderLockedError`. */
export const supervise = async (environment: Environment): Promise<number> => {
  const config = readConfig(withEnvFile(environment))
  makePrivateFolder(config.DATA_DIR)
  const lock = acquireFolderLock(config.DATA_DIR)
  const log = createLog({
    level: config.LOG_LEVEL,
    format: config.LOG_FORMAT,
    now: systemClock.now,
    write: (line) => void process.stdout.write(`${line}\n`),
  })
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  const supervisor = new Supervisor({
    folder: resolve(config.DATA_DIR),
    environment,
    clock: systemClock,
    log,
    notify: (state) => void sdNotify(environment.NOTIFY_SOCKET, state),
  })
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => supervisor.stop(signal))
  // The terminal was closed. Without one, as under nohup, the parent's choice for this signal is kept.
  if (isatty(0) && isatty(2)) process.on('SIGHUP', () => supervisor.stop('SIGHUP'))
  process.on('SIGUSR2', () => void supervisor.reload())
  const code = await supervisor.run()
  lock.release()
  return code
}

interface SupervisorDeps {
  folder: string
  environment: Environment
  clock: Clock
  log: Log
  /** Tells systemd. */
  notify: (state: string) => void
}

class Supervisor {
  readonly #deps: SupervisorDeps
  readonly #workers = new Set<Worker>()
  /** Those that listen, in the kernel's order. */
  #listeners: Worker[] = []
  /** Serves new connections. */
  #current: Worker | null = null
  #listening: Listening | null = null
  #isReloading = false
  #isStopping = false
  #reloads = 0
  /** Of the process that served new connections last. */
  #exitCode = 1
  /** Exit code, once no process is left. */
  readonly #ended = Promise.withResolvers<number>()

  constructor(deps: SupervisorDeps) {
    this.#deps = deps
  }

  async run(): Promise<number> {
    this.#report('idle', '')
    const first = this.#launch()
    this.#current = first
    const problem = await first.started
    if (problem === null) this.#deps.notify('READY=1')
    return this.#ended.promise
  }

  stop(signal: NodeJS.Signals): void {
    this.#isStopping = true
    this.#deps.notify('STOPPING=1')
    for (const worker of this.#workers) worker.kill(signal)
  }

  /** Starts a successor from the program on disk; the present process goes on if that fails. */
  async reload(): Promise<void> {
    const { log, notify } = this.#deps
    if (this.#isStopping || this.#isReloading || this.#listening === null) {
      log.warn('a reload was ignored', { why: this.#isStopping ? 'Sluice is stopping' : 'another one is running' })
      return
    }
    this.#isReloading = true
    this.#reloads++
    notify('RELOADING=1')
    this.#report('running', 'A new process is starting.')
    const before = this.#current
    const problem = await this.#replace()
    this.#isReloading = false
    notify('READY=1')
    if (problem === null) {
      const message = `Process ${this.#current?.pid} serves new requests. Process ${before?.pid} finishes the running ones.`
      log.info('reloaded', { pid: this.#current?.pid, before: before?.pid })
      this.#report('done', message)
    } else {
      log.error('the reload failed, and the running process goes on', { problem })
      this.#report('failed', problem)
    }
  }

  /** Null when a new process has taken over; otherwise why not. */
  async #replace(): Promise<string | null> {
    const next = this.#launch()
    const cancel = this.#deps.clock.after(START_LIMIT_MS, () => next.kill('SIGKILL'))
    const problem = await next.started
    if (problem !== null) await next.exited
    cancel()
    if (problem !== null) {
      if (!this.#current) this.#giveUp()
      return problem
    }
    const before = this.#current
    this.#current = next
    this.#steer()
    if (before) await before.handOver()
    next.send({ kind: 'take-over' })
    return null
  }

  #launch(): Worker {
    const worker = new Worker(workerCommand(), {
      environment: this.#deps.environment,
      startedAt: this.#deps.clock.monotonic(),
      received: (message) => this.#received(worker, message),
      ended: (code) => this.#workerEnded(worker, code),
    })
    this.#workers.add(worker)
    return worker
  }

  #received(worker: Worker, message: FromWorker): void {
    if (message.kind === 'hello') worker.send({ kind: 'start', folder: this.#deps.folder, listening: this.#listening })
    if (message.kind === 'listening') {
      this.#listening ??= message.listening
      this.#listeners.push(worker)
    }
    if (message.kind === 'owner' && worker !== this.#current) this.#current?.send(message)
  }

  /** New connections go to the current process. */
  #steer(): void {
    if (this.#current && this.#listeners.length > 1)
      this.#current.send({ kind: 'steer', position: this.#listeners.indexOf(this.#current) })
  }

  #workerEnded(worker: Worker, code: number): void {
    this.#workers.delete(worker)
    this.#forgetListener(worker)
    if (worker === this.#current) {
      this.#current = null
      this.#exitCode = code
      if (!this.#isStopping && !this.#isReloading) this.#survive(worker, code)
    } else if (!this.#isStopping && worker.isReady)
      this.#deps.log.info('an earlier process has ended', { pid: worker.pid })
    this.#endIfEmpty()
  }

  /** The kernel moves the last listener to the place of one that closed. */
  #forgetListener(worker: Worker): void {
    const at = this.#listeners.indexOf(worker)
    if (at === -1) return
    const last = this.#listeners.pop()!
    if (last !== worker) this.#listeners[at] = last
    this.#steer()
  }

  /** Replaces a crashed process only while an earlier one has clients: otherwise restarts are up to systemd or Docker. */
  #survive(worker: Worker, code: number): void {
    const { clock, log } = this.#deps
    if (worker.isReady) log.error('the server process ended unexpectedly', { pid: worker.pid, code })
    if (this.#workers.size === 0 || clock.monotonic() - worker.startedAt < SHORT_LIFE_MS) this.#giveUp()
    else void this.reload()
  }

  #giveUp(): void {
    this.#isStopping = true
    for (const worker of this.#workers) worker.kill('SIGTERM')
    this.#endIfEmpty()
  }

  #endIfEmpty(): void {
    if (this.#isStopping && this.#workers.size === 0) this.#ended.resolve(this.#exitCode)
  }

  #report(state: ReloadReport['state'], message: string): void {
    try {
      writeReport(this.#deps.folder, { pid: process.pid, count: this.#reloads, state, message })
    } catch (err) {
      this.#deps.log.warn('the result of the reload could not be written', { err })
    }
  }
}
