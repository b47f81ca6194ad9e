/** One server process: builds the server and runs it until a signal or until a successor has taken over. */
import { resolve } from 'node:path'
import { isatty } from 'node:tty'
import { commit } from '../../db/commit.ts'
import { acquireFolderLock } from '../../db/lock.ts'
import { createPasswords } from '../auth/passwords.ts'
import { openFolder } from '../cli/open-folder.ts'
import { makePrivateFolder } from '../cli/private-folder.ts'
import { isLoopbackHost } from '../lib/client-ip.ts'
import { systemClock } from '../lib/clock.ts'
import type { Environment } from '../lib/env-proxy.ts'
import { createLog, type Log } from '../lib/log.ts'
import { systemRandom } from '../lib/random.ts'
import { steerPort } from '../lib/reuse-port.ts'
import { forgetLeases } from '../model/keys/key-leases.ts'
import { accountsPhrase, plural } from '../model/overview/pool-words.ts'
import { getUserCommand } from '../ops/own-command.ts'
import type { AffinityMap } from '../proxy/pool/affinity.ts'
import { forgetSpent } from '../proxy/sources/overflow-budget.ts'
import { createDial } from '../upstream/dial.ts'
import type { World } from './build-bindings.ts'
import { type Config, ConfigError, readConfig, withEnvFile } from './env.ts'
import { serveDatabase } from './served-database.ts'
import { type RunningServer, type Share, startServer } from './server.ts'
import { VERSION } from './version.ts'
import { type Link, orders, type StartOrder } from './worker-messages.ts'

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
 * Returns once it listens. `link` leads to the supervisor that started this process. Throws `ConfigError`,
 * `EgressError`, `FolderError`, `FolderLockedError`, and the error of a port in use.
 */
export const serve = async ({ environment, fetch, timeout, maxTurns }: Outside, link: Link | null): Promise<void> => {
  const config = readConfig(withEnvFile(environment))
  const start = link && (await orders(link))
  const isOneOfSeveral = start !== null && start.processes > 1
  const log = createLog({
    level: config.LOG_LEVEL,
    format: config.LOG_FORMAT,
    ...(isOneOfSeveral && { fields: { process: start.number } }),
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
  const share = getShare(config, start)
  const opened = await openFolder(config, {
    clock: systemClock,
    random: systemRandom,
    isLocked: true,
    isShared: share.predecessor !== null,
  })
  const { isAlone, ...served } = await serveDatabase(opened, { config, start, log })
  const { folder } = served
  if (share.predecessor === null && isAlone)
    await commit(folder.db, async (tx) => {
      await forgetLeases(tx)
      await forgetSpent(tx)
    })
  const world: World = {
    config,
    clock: systemClock,
    random: systemRandom,
    log,
    passwords: await createPasswords(),
    dial,
    ...served,
    maxTurns,
    timeout,
  }
  const server = await startServer(world, share)
  logUncaughtErrors(log)
  const stop = drainOnSignal(server, log, link !== null)
  if (link) await follow(link, { server, log, stop })
  const { affinity } = server.bindings
  if (served.nodes) await shareAffinity(served.nodes, affinity)
  else if (link && isOneOfSeveral) affinity.onChange = (change) => link.send({ kind: 'affinity', change })
  if (config.LOG_FORMAT === 'json' || share.predecessor !== null)
    log.info('listening', {
      version: VERSION,
      url: server.url,
      dataDir: resolve(config.DATA_DIR),
      accounts: statusesIn(server).length,
      keys: server.bindings.keys.size,
    })
  else greet(server, config, start?.processes ?? 1)
  const listening = { host: config.HOST, port: config.PORT, actualPort: server.port }
  link?.send({ kind: 'listening', listening, version: VERSION })
}

/**
 * How this process shares its folder and port. Locks the folder first, unless the supervisor has: no database is changed
 * or replaced under another server.
 */
const getShare = (config: Config, start: StartOrder | null): Share => {
  const { DATA_DIR, HOST, PORT } = config
  if (!start) {
    makePrivateFolder(DATA_DIR)
    return { lock: acquireFolderLock(DATA_DIR), isPortShared: false, port: PORT, predecessor: null }
  }
  const { folder, listening } = start
  if (resolve(DATA_DIR) !== folder) throw changed('The data folder', folder, resolve(DATA_DIR))
  if (listening && HOST !== listening.host) throw changed('HOST', listening.host, HOST)
  if (listening && PORT !== listening.port) throw changed('PORT', listening.port, PORT)
  if (!listening) requireFreePort(HOST, PORT)
  return { lock: null, isPortShared: true, port: listening?.actualPort ?? PORT, predecessor: listening }
}

const changed = (what: string, before: string | number, now: string | number): ConfigError =>
  new ConfigError(`${what} changed from ${before} to ${now}. Restart Sluice instead of reloading it.`)

/** Only a successor may share the port: another program's must stay an error. Throws the system's error. */
const requireFreePort = (hostname: string, port: number): void =>
  void Bun.serve({ hostname, port, reusePort: false, development: false, fetch: () => new Response(null) }).stop(true)

/** The next request of a conversation may reach another node before the log is written. */
const shareAffinity = async (
  { send, onMessage }: NonNullable<World['nodes']>,
  affinity: AffinityMap,
): Promise<void> => {
  affinity.onChange = send
  await onMessage((message) => affinity.apply(message))
}

interface Running {
  server: RunningServer
  log: Log
  stop: Stop
}

/** Obeys the supervisor. */
const follow = async (link: Link, running: Running): Promise<void> => {
  const { server, log, stop } = running
  link.onLost(() => {
    log.error('the supervisor of this process is gone')
    void stop('supervisor gone', 0)
  })
  await link.listen(async (message) => {
    if (message.kind === 'steer' && !steerPort(server.port, message.positions))
      log.debug('new connections cannot be steered to one process')
    if (message.kind === 'take-over') await server.takeOver()
    if (message.kind === 'affinity') server.bindings.affinity.apply(message.change)
    if (message.kind === 'hand-over') void handOver(link, running)
  })
}

/** Serves its clients to the end, and exits. */
const handOver = async (link: Link, { server, log, stop }: Running): Promise<void> => {
  const { affinity, turns } = server.bindings
  const requests = turns.size
  log.info('handing over to a new process', { requests })
  affinity.onChange ??= (change) => link.send({ kind: 'affinity', change })
  await server.handOver()
  link.send({ kind: 'handed-over', requests })
  await server.unused()
  await stop('handed over')
}

/** Logs uncaught errors, so that one request cannot end the others. A failing log is ignored. */
const logUncaughtErrors = (log: Log): void => {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  process.on('unhandledRejection', (err) => log.error('an unhandled rejection', { err }))
  process.on('uncaughtException', (err) => log.error('an uncaught exception', { err }))
}

/** One stop can arrive as two signals: to the process group, and forwarded by a parent such as npm. */
const SAME_STOP_MS = 1000

/** Drains and exits; without effect when it has begun already. */
type Stop = (reason: string, deadlineSeconds?: number) => Promise<void>

const drainOnSignal = (server: RunningServer, log: Log, isSupervised: boolean): Stop => {
  let stoppedAt: number | null = null
  const stop: Stop = async (reason, deadlineSeconds) => {
    if (stoppedAt !== null) return
    stoppedAt = systemClock.monotonic()
    log.info('stopping', { reason, turns: server.bindings.turns.size })
    await server.drain(deadlineSeconds)
    process.exit(0)
  }
  const obey = (signal: string) => {
    const isSecond = stoppedAt !== null && systemClock.monotonic() - stoppedAt > SAME_STOP_MS
    if (isSecond) process.exit(1) // it means now
    void stop(signal)
  }
  process.on('SIGTERM', obey)
  process.on('SIGINT', obey)
  // The terminal was closed. Without one, as under nohup, the parent's choice for this signal is kept.
  if (!isSupervised && isatty(0) && isatty(2)) process.on('SIGHUP', obey)
  return stop
}

const statusesIn = ({ bindings }: RunningServer) => bindings.pool.all().map(({ state }) => state.status)

/** Version, dashboard, data folder, accounts and keys: one line each. */
const greet = (server: RunningServer, { HOST, DATA_DIR }: Config, processes: number): void => {
  const { url, bindings } = server
  const statuses = statusesIn(server)
  const command = getUserCommand()
  // Browsers cannot open "all addresses". With such a Host, requests do not count as local either.
  const dashboard = `${url.replace(/^http:\/\/(0\.0\.0\.0|\[::\])(?=:|$)/, 'http://127.0.0.1')}/dashboard`
  const next = statuses.length === 0 ? `. Add an account in the dashboard or with "${command} accounts add".` : ''
  const lines = [
    `Sluice ${VERSION} is listening on ${url}${processes > 1 ? ` with ${processes} processes` : ''}`,
    `Dashboard: ${dashboard}`,
    `Data folder: ${resolve(DATA_DIR)}`,
    `${accountsPhrase(statuses)}, ${plural(bindings.keys.size, 'key')}${next}`,
  ]
  if (!isLoopbackHost(HOST) && !bindings.settings.current().apiKeyAuthEnabled)
    lines.push(`Clients on other machines are rejected until you run "${command} settings set apiKeyAuthEnabled=true".`)
  process.stdout.write(`${lines.join('\n')}\n`)
}
