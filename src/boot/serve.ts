/** The `serve` command: builds the server and runs it until a signal. */
import { resolve } from 'node:path'
import { isatty } from 'node:tty'
import { canReadPagesBehind, pagesBehind } from '../../db/checkpoint.ts'
import { acquireFolderLock } from '../../db/lock.ts'
import { createPasswords } from '../auth/passwords.ts'
import { type Folder, makePrivateFolder, openFolder } from '../cli/open-folder.ts'
import { isLoopbackHost } from '../lib/client-ip.ts'
import { systemClock } from '../lib/clock.ts'
import type { Environment } from '../lib/env-proxy.ts'
import { createLog, type Log } from '../lib/log.ts'
import { systemRandom } from '../lib/random.ts'
import { accountsPhrase, plural } from '../model/overview/pool-words.ts'
import { getUserCommand } from '../ops/own-command.ts'
import { Checkpointer } from '../threads/checkpointer.ts'
import { createReader } from '../threads/reader.ts'
import { replayThreads } from '../threads/replayer.ts'
import { createDial } from '../upstream/dial.ts'
import type { World } from './build-bindings.ts'
import { type Config, readConfig, withEnvFile } from './env.ts'
import { type RunningServer, startServer } from './server.ts'
import { VERSION } from './version.ts'

/** Passed in because only `main.ts` may access it directly. */
export interface Outside {
  environment: Environment
  fetch: typeof globalThis.fetch
  /** Aborts after this many ms. */
  timeout: (ms: number) => AbortSignal
  /** Maximum concurrent requests. */
  maxTurns: number
}

/**
 * Returns once it listens. Throws `ConfigError`, `EgressError`, `FolderError`, `FolderLockedError`, and the error of a
 * port in use.
 */
export const serve = async ({ environment, fetch, timeout, maxTurns }: Outside): Promise<void> => {
  const config = readConfig(withEnvFile(environment))
  const log = createLog({
    level: config.LOG_LEVEL,
    format: config.LOG_FORMAT,
    now: systemClock.now,
    write: (line) => void process.stdout.write(`${line}\n`),
  })
  if (config.unknown.length > 0)
    log.warn('unknown environment variables, ignored (PORT and HOST take no prefix)', {
      names: config.unknown.join(', '),
    })
  for (const conflict of config.conflicts) log.warn(conflict)
  const dial = createDial(config.raw, fetch, {
    trustsSocketEnvironment: config.UPSTREAM_WEBSOCKET_TRUST_ENV,
    random: systemRandom,
  })
  const socketUrl = config.UPSTREAM_BASE_URL.replace(/^http/, 'ws')
  for (const url of [config.UPSTREAM_BASE_URL, config.AUTH_BASE_URL, socketUrl]) dial.check(url)
  makePrivateFolder(config.DATA_DIR)
  const lock = acquireFolderLock(config.DATA_DIR) // first: no database is changed or replaced under another server
  const folder = openFolder(config, { clock: systemClock, random: systemRandom, isLocked: true })
  const world: World = {
    config,
    folder,
    clock: systemClock,
    random: systemRandom,
    log,
    passwords: await createPasswords(),
    dial,
    reader: createReader({ path: folder.databasePath, clock: systemClock, log }),
    startReplay: replayThreads(folder.databasePath),
    checkpointer: canReadPagesBehind(folder.sqlite) ? getCheckpointer(folder, log) : null,
    maxTurns,
    timeout,
  }
  const server = startServer(world, lock)
  logUncaughtErrors(log)
  drainOnSignal(server, log)
  if (config.LOG_FORMAT === 'json')
    log.info('listening', {
      version: VERSION,
      url: server.url,
      dataDir: resolve(config.DATA_DIR),
      accounts: statusesIn(server).length,
      keys: server.bindings.keys.size,
    })
  else greet(server, config)
}

const getCheckpointer = ({ databasePath, sqlite, isNamed }: Folder, log: Log): Checkpointer =>
  new Checkpointer({ path: databasePath, pagesBehind: () => pagesBehind(sqlite), isNamed, clock: systemClock, log })

/** Logs uncaught errors, so that one request cannot end the others. A failing log is ignored. */
const logUncaughtErrors = (log: Log): void => {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  process.on('unhandledRejection', (err) => log.error('an unhandled rejection', { err }))
  process.on('uncaughtException', (err) => log.error('an uncaught exception', { err }))
}

/** One stop can arrive as two signals: to the process group, and forwarded by a parent such as npm. */
const SAME_STOP_MS = 1000

const drainOnSignal = (server: RunningServer, log: Log): void => {
  let stoppedAt: number | null = null
  const drain = async (signal: string) => {
    const now = systemClock.monotonic()
    if (stoppedAt !== null) {
      if (now - stoppedAt > SAME_STOP_MS) process.exit(1) // a second stop means now
      return
    }
    stoppedAt = now
    log.info('stopping', { signal, turns: server.bindings.turns.size })
    await server.drain()
    process.exit(0)
  }
  process.on('SIGTERM', () => void drain('SIGTERM'))
  process.on('SIGINT', () => void drain('SIGINT'))
  // The terminal was closed. Without one, as under nohup, the parent's choice for this signal is kept.
  if (isatty(0) && isatty(2)) process.on('SIGHUP', () => void drain('SIGHUP'))
}

const statusesIn = ({ bindings }: RunningServer) => bindings.pool.all().map(({ state }) => state.status)

/** Version, dashboard, data folder, accounts and keys: one line each. */
const greet = (server: RunningServer, { HOST, DATA_DIR }: Config): void => {
  const { url, bindings } = server
  const statuses = statusesIn(server)
  const command = getUserCommand()
  // Browsers cannot open "all addresses". With such a Host, requests do not count as local either.
  const dashboard = `${url.replace(/^http:\/\/(0\.0\.0\.0|\[::\])(?=:|$)/, 'http://127.0.0.1')}/dashboard`
  const next = statuses.length === 0 ? `. Add an account in the dashboard or with "${command} accounts add".` : ''
  const lines = [
    `Sluice ${VERSION} is listening on ${url}`,
    `Dashboard: ${dashboard}`,
    `Data folder: ${resolve(DATA_DIR)}`,
    `${accountsPhrase(statuses)}, ${plural(bindings.keys.size, 'key')}${next}`,
  ]
  if (!isLoopbackHost(HOST) && !bindings.settings.current().apiKeyAuthEnabled)
    lines.push(`Clients on other machines are rejected until you run "${command} settings set apiKeyAuthEnabled=true".`)
  process.stdout.write(`${lines.join('\n')}\n`)
}
