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
import { type ReloadReport, removeReport, writeReport } from './reload-report.ts'
import { Worker } from './worker.ts'
import type { FromWorker, Listening } from './worker-messages.ts'

/** A successor that is not ready by then is ended; migrations of a large database included. */
const START_LIMIT_MS = 300_000
/** A process that stands still must not block this reload and later ones. */
const HAND_OVER_LIMIT_MS = 30_000
/** A process that ends this soon after its start would only end again. */
const SHORT_LIFE_MS = 10_000
const LONGEST_PAUSE_MS = 30_000

/** Resolves with the exit code. Throws `ConfigError`, `FolderError` and `FolderLockedError`. */
export const supervise = async (environment: Environment, processes: number): Promise<number> => {
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
    processes,
    clock: systemClock,
    log,
    notify: (state) => void sdNotify(environment.NOTIFY_SOCKET, state),
  })
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => supervisor.stop(signal))
  // The terminal was closed. Without one, as under nohup, the parent's choice for this signal is kept.
  if (isatty(0) && isatty(2)) process.on('SIGHUP', () => supervisor.stop('SIGTERM'))
  process.on('SIGUSR2', () => void supervisor.reload())
  const code = await supervisor.run()
  removeReport(config.DATA_DIR)
  lock.release()
  return code
}

interface SupervisorDeps {
  folder: string
  environment: Environment
  /** How many serve requests together. */
  processes: number
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
  /** Those that serve new connections. */
  #serving: Worker[] = []
  #launched = 0
  /** Processes that ended soon after their start, in a row. */
  #shortLives = 0
  #hasSteered = false
  #listening: Listening | null = null
  #isReloading = false
  #isStopping = false
  #reloads = 0
  /** Exit code of the process that last served new connections. */
  #exitCode = 1
  /** Exit code, once no process is left. */
  readonly #ended = Promise.withResolvers<number>()

  constructor(deps: SupervisorDeps) {
    this.#deps = deps
  }

  async run(): Promise<number> {
    this.#report('idle', '')
    const first = this.#launch()
    this.#serving = [first]
    const problem = await first.started // alone, because it migrates the database and claims the port
    if (problem === null) {
      const others = await this.#launchAll(this.#deps.processes - 1)
      if (typeof others === 'string') this.#giveUp()
      else {
        this.#serving.push(...others)
        this.#deps.notify('READY=1')
      }
    }
    return this.#ended.promise
  }

  stop(signal: NodeJS.Signals): void {
    this.#isStopping = true
    this.#deps.notify('STOPPING=1')
    for (const worker of this.#workers) worker.kill(signal)
  }

  /** Starts a successor from the program on disk; the running one goes on if that fails. */
  async reload(): Promise<void> {
    const { log, notify } = this.#deps
    if (this.#isStopping || this.#isReloading || this.#listening === null) {
      const why = this.#isReloading ? 'another one is running' : 'Sluice is still starting'
      log.warn('a reload was ignored', { why: this.#isStopping ? 'Sluice is stopping' : why })
      return
    }
    this.#isReloading = true
    this.#reloads++
    notify('RELOADING=1')
    this.#report('running', 'A new process is starting.')
    const earlier = this.#serving
    const before = pidsOf(earlier)
    const problem = await this.#replace()
    this.#isReloading = false
    void this.#refill() // processes that ended during the reload were not replaced
    if (this.#isStopping) {
      log.warn('the reload failed, and Sluice is stopping', { problem })
      this.#report('stopping', problem ?? 'It was stopped during the reload.')
      return
    }
    notify('READY=1')
    if (problem === null) {
      const now = pidsOf(this.#serving)
      const [verb, end] = this.#deps.processes > 1 ? ['Processes', ''] : ['Process', 's']
      const message = `${verb} ${now} serve${end} new requests. ${verb} ${before} finish${end && 'es'} the running ones.`
      const late = earlier.filter(({ hasHandedOver }) => !hasHandedOver).map(({ pid }) => adviceFor(pid))
      log.info('reloaded', { pid: now, before })
      this.#report('done', [message, ...late].join(' '))
    } else {
      log.error('the reload failed, and the running process goes on', { problem })
      this.#report('failed', problem)
    }
  }

  /** Null when new processes have taken over; otherwise why not. If none is left to serve, they are started once more. */
  async #replace(): Promise<string | null> {
    const problem = await this.#replaceOnce()
    if (this.#isStopping || this.#serving.length > 0) return problem
    this.#deps.log.error('no server process was left after the reload, so one is started again', { problem })
    const lastProblem = await this.#replaceOnce()
    if (this.#serving.length === 0) this.#giveUp()
    return lastProblem
  }

  async #replaceOnce(): Promise<string | null> {
    const next = await this.#launchAll(this.#deps.processes)
    if (typeof next === 'string') return next
    const before = this.#serving
    this.#serving = next.filter((worker) => this.#workers.has(worker))
    this.#steer()
    this.#deps.log.info('the new processes are ready', { pid: pidsOf(next) })
    await this.#handOver(before)
    this.#takeOver()
    const ended = next.filter((worker) => !this.#workers.has(worker))
    if (ended.length === 0) return null
    return `${ended.length > 1 ? 'Processes' : 'Process'} ${pidsOf(ended)} ended before the reload was complete.`
  }

  /** Waits a limited time. What a process hands over later is taken over then. */
  async #handOver(before: readonly Worker[]): Promise<void> {
    const { clock, log } = this.#deps
    const limit = Promise.withResolvers<void>()
    const cancel = clock.after(HAND_OVER_LIMIT_MS, limit.resolve)
    const all = Promise.all(before.map((worker) => worker.handOver()))
    await Promise.race([all, limit.promise])
    cancel()
    const late = before.filter(({ hasHandedOver }) => !hasHandedOver)
    if (late.length === 0) return
    log.warn('an earlier process did not hand over in time; jobs may not run until it does or ends', {
      pid: pidsOf(late),
    })
    void all.then(() => this.#takeOver())
  }

  #takeOver(): void {
    for (const worker of this.#serving) worker.send({ kind: 'take-over' })
  }

  /** All of them once they listen, or why one does not. */
  async #launchAll(count: number): Promise<Worker[] | string> {
    const workers = Array.from({ length: count }, () => this.#launch())
    const end = (signal: NodeJS.Signals) => {
      for (const worker of workers) worker.kill(signal)
    }
    const cancel = this.#deps.clock.after(START_LIMIT_MS, () => end('SIGKILL'))
    const problems = await Promise.all(workers.map(({ started }) => started))
    cancel()
    const problem = problems.find((text) => text !== null)
    if (problem === undefined) return workers
    end('SIGTERM')
    await Promise.all(workers.map(({ exited }) => exited))
    return problem
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
    if (message.kind === 'hello') {
      const { folder, processes } = this.#deps
      worker.send({ kind: 'start', folder, listening: this.#listening, processes, number: ++this.#launched })
    }
    if (message.kind === 'listening') {
      this.#listening ??= message.listening
      this.#listeners.push(worker)
    }
    if (message.kind === 'affinity') for (const other of this.#serving) if (other !== worker) other.send(message)
  }

  /** New connections go to the processes that serve them. */
  #steer(): void {
    const positions = this.#serving.map((worker) => this.#listeners.indexOf(worker)).filter((at) => at !== -1)
    if (positions.length === 0 || (positions.length === this.#listeners.length && !this.#hasSteered)) return
    this.#hasSteered = true
    this.#listeners[positions[0]!]?.send({ kind: 'steer', positions }) // not empty
  }

  #workerEnded(worker: Worker, code: number): void {
    this.#workers.delete(worker)
    this.#forgetListener(worker)
    const hasServed = this.#serving.includes(worker)
    this.#serving = this.#serving.filter((other) => other !== worker)
    if (hasServed) {
      this.#exitCode = this.#isStopping && !worker.isReady ? 0 : code // the signal ends it before it handles signals
      if (!this.#isStopping && !(this.#isReloading && this.#deps.processes === 1)) this.#survive(worker, code)
    } else if (!this.#isStopping && worker.isReady)
      this.#deps.log.info('an earlier process has ended', { pid: worker.pid })
    this.#endIfEmpty()
  }

  /** Replaces one process of several: immediately, or after a growing pause while new ones end soon after their start. */
  #restart(ended: Worker, code: number): void {
    const { clock, log } = this.#deps
    this.#shortLives = clock.monotonic() - ended.startedAt < SHORT_LIFE_MS ? this.#shortLives + 1 : 0
    const delayMs = this.#shortLives === 0 ? 0 : Math.min(LONGEST_PAUSE_MS, 500 * 2 ** this.#shortLives)
    log.error('a server process ended unexpectedly and is started again', { pid: ended.pid, code, delayMs })
    clock.after(delayMs, () => void this.#refill())
  }

  async #refill(): Promise<void> {
    if (this.#isStopping || this.#isReloading || this.#serving.length >= this.#deps.processes) return
    const worker = this.#launch()
    const problem = await worker.started
    if (problem !== null) this.#restart(worker, 1)
    else if (this.#serving.length >= this.#deps.processes)
      worker.kill('SIGTERM') // a reload was faster
    else this.#serving.push(worker)
    this.#steer()
  }

  /** The kernel moves the last listener to the place of one that closed. */
  #forgetListener(worker: Worker): void {
    const at = this.#listeners.indexOf(worker)
    if (at === -1) return
    const last = this.#listeners.pop()!
    if (last !== worker) this.#listeners[at] = last
    this.#steer()
  }

  /**
   * Replaces a crashed process of several. A single one is replaced only while an earlier one has clients: otherwise
   * restarts are up to systemd or Docker.
   */
  #survive(worker: Worker, code: number): void {
    const { clock, log } = this.#deps
    if (this.#deps.processes > 1 && worker.isReady) {
      this.#restart(worker, code)
      return
    }
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

const pidsOf = (workers: readonly Worker[]): string => workers.map(({ pid }) => pid).join(', ')

const adviceFor = (pid: number): string =>
  `Process ${pid} did not hand over within ${HAND_OVER_LIMIT_MS / 1000} s. If it does not end, run "kill -9 ${pid}".`
