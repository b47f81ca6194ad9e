/** The running server: listens and drains. */
import { announceAll, onWriter } from '../../db/commit.ts'
import { waitForLocksAtMost, waitForOneLockAtMost } from '../../db/connection.ts'
import type { FolderLock } from '../../db/lock.ts'
import { prepareBootstrapToken, warnOfOpenDashboard } from '../auth/bootstrap.ts'
import { AppError } from '../errors.ts'
import { websocket } from '../http/websocket.ts'
import { scheduleJobs, scheduleUpkeep } from '../jobs/all.ts'
import type { Clock } from '../lib/clock.ts'
import { IDLE_SECONDS } from '../lib/idle-limit.ts'
import { Schedule } from '../lib/schedule.ts'
import { pingForJob } from '../proxy/relay/ping.ts'
import { answer } from '../routes/app.ts'
import type { Bindings } from './bindings.ts'
import { buildBindings, type World } from './build-bindings.ts'
import { closeIdleConnections } from './idle-connections.ts'
import { Leader } from './leader.ts'
import { watchOtherProcesses } from './other-processes.ts'
import type { Listening } from './worker-messages.ts'

/** How long a commit waits for another process's lock. After a timeout, queued commits wait only briefly. */
const BUSY_MS = 1000
/** At shutdown nothing else is delayed, and the last writes cannot be retried. */
const LAST_BUSY_MS = 2500

export interface RunningServer {
  url: string
  port: number
  bindings: Bindings
  /** A successor serves new connections: gives up the jobs and closes idle sockets. */
  handOver(): Promise<void>
  /** Resolves when no client uses this process any more, at latest at the deadline of a hand-over. */
  unused(): Promise<void>
  /** The predecessor has given up the jobs and written its log. */
  takeOver(): Promise<unknown>
  /** Finishes running requests until the deadline, then ends them with an error, and closes everything. */
  drain(deadlineSeconds?: number): Promise<void>
}

/** How this process shares its folder and its port. */
export interface Share {
  /** Released at the end. Null: the supervisor holds it. */
  lock: FolderLock | null
  /** Other processes of this supervisor may listen on the port, too. */
  isPortShared: boolean
  port: number
  /** The port of the server this one succeeds. */
  predecessor: Listening | null
}

/** Starts listening. Throws the system's error for a port in use. */
export const startServer = async (
  world: World,
  { lock, isPortShared, port, predecessor }: Share,
): Promise<RunningServer> => {
  const { config, folder } = world
  await onWriter(folder.db, waitForOneLockAtMost, BUSY_MS)
  const bindings = await buildBindings(world)
  await prepareBootstrapToken(bindings, predecessor !== null)
  warnOfOpenDashboard(bindings)
  const work = prepareWork(world, bindings)
  const server = Bun.serve({
    hostname: config.HOST,
    port,
    idleTimeout: IDLE_SECONDS,
    // Routes reject large bodies with an envelope (`proxy/ingress/raw-body.ts`); the runtime's own 413 has none.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    development: false,
    reusePort: isPortShared, // set explicitly: otherwise the runtime shares the port with other processes (Bun 1.4.5)
    fetch: (request) => answer(request, bindings),
    websocket,
  })
  bindings.server = server
  bindings.ledger.start()
  bindings.ops.loopLag.start()
  await work.start()
  const stopWatching = await watchOtherProcesses(world, bindings, work.follow)
  const handOver = async () => {
    bindings.lifecycle.handedOver = true
    await bindings.ledger.flush()
    await bindings.keyLeases.close()
    await bindings.pool.handOver()
    for (const socket of bindings.sockets) socket.drain()
    bindings.live.endAll()
    await work.handOver()
  }
  const takeOver = async () => {
    await bindings.affinity.load(folder.db, bindings.lifecycle.startedAt - RECENT_MS)
    await announceAll(folder.db)
  }
  const drain = async (deadlineSeconds = config.SHUTDOWN_DRAIN_SECONDS) => {
    await leave(world, bindings)
    bindings.lifecycle.draining = true
    const stopClosing = closeIdleConnections(server, bindings.clock)
    for (const socket of bindings.sockets) socket.drain()
    bindings.live.stop()
    bindings.replayer.stop()
    await finishTurns(bindings, deadlineSeconds * 1000)
    await waitForSockets(bindings)
    await waitForAnswers(server, bindings.clock)
    stopClosing()
    await server.stop(true)
    await stopWatching()
    bindings.ops.loopLag.stop()
    await work.stop()
    await bindings.proxyDeps.credentials.settled(REFRESH_GRACE_MS)
    world.dial.close()
    await onWriter(folder.db, waitForLocksAtMost, LAST_BUSY_MS)
    await bindings.pool.stop()
    await bindings.captures.stop()
    await bindings.ledger.stop()
    await bindings.keyLeases.close()
    await bindings.views.stop()
    await bindings.reader.stop()
    await folder.close()
    work.release()
    lock?.release()
  }
  return {
    url: server.url.href.replace(/\/$/, ''),
    port: server.port ?? port,
    bindings,
    handOver,
    unused: () => untilUnused(bindings, server, config.RELOAD_DRAIN_SECONDS * 1000),
    takeOver,
    drain,
  }
}

/** Enough time for load balancers that check the health once a second to stop sending requests. */
const LEAVE_MS = 3000

/** Reports that it is not ready, so that other nodes get new requests. Requests that still arrive are served. */
const leave = async ({ nodes, clock }: World, { lifecycle }: Pick<Bindings, 'lifecycle'>): Promise<void> => {
  if (!nodes) return
  lifecycle.leaving = true
  if (!(await nodes.hasOthers())) return
  await clock.sleep(LEAVE_MS)
}

/** Owners of conversations used this long before this process began may be newer than what it loaded. */
const RECENT_MS = 120_000

/** The upkeep of this process, and the jobs and sign-ins of the folder while this process leads. */
const prepareWork = (world: World, bindings: Bindings) => {
  const { clock, log, random, folder } = world
  const onError = (job: string, err: unknown) => log.warn('a job failed', { job, err })
  const upkeep = new Schedule({ clock, random, onError })
  scheduleUpkeep(upkeep, bindings)
  const { signIns } = bindings
  signIns.suspend()
  const stopping = new AbortController()
  let endJobs = async () => {}
  const lead = async () => {
    const jobs = new Schedule({ clock, random, onError })
    const unfollow = scheduleJobs(jobs, bindings, {
      startWindow: (wanted, signal) => pingForJob(bindings, { ...wanted, route: 'window-start' }, signal),
      ping: ({ includePaused, ...wanted }, signal) =>
        pingForJob(bindings, { ...wanted, route: 'automation', mayBePaused: includePaused }, signal),
      stopping: stopping.signal,
    })
    endJobs = async () => {
      unfollow()
      await jobs.stop()
    }
    jobs.start()
    await signIns.resume()
  }
  const stopJobs = async () => {
    await signIns.stop()
    await endJobs()
  }
  const leader = new Leader({ locks: folder.locks, clock, log, lead, resign: stopJobs })
  return {
    start: async () => {
      upkeep.start()
      await leader.start()
    },
    /** Another process may have begun or ended a sign-in. */
    follow: async () => {
      if (leader.isLeading) await signIns.follow()
    },
    handOver: async () => {
      stopping.abort()
      await stopJobs()
      leader.stop()
    },
    stop: async () => {
      stopping.abort()
      if (!leader.isLeading) leader.stop()
      await stopJobs()
      await upkeep.stop()
    },
    release: () => leader.stop(),
  }
}

/** After this, connections that sent nothing are closed by the idle limit. */
const QUIET_MS = (IDLE_SECONDS + 2) * 1000

const untilUnused = async (
  { turns, sockets, clock }: Pick<Bindings, 'turns' | 'sockets' | 'clock'>,
  server: Bun.Server<unknown>,
  deadlineMs: number,
): Promise<void> => {
  const deadline = clock.monotonic() + deadlineMs
  let quietSince = clock.monotonic()
  for (let now = quietSince; now < deadline && now - quietSince < QUIET_MS; now = clock.monotonic()) {
    if (turns.size > 0 || sockets.size > 0 || server.pendingRequests > 0) quietSince = now
    await clock.sleep(DRAIN_BEAT_MS)
  }
}

const DRAIN_BEAT_MS = 50
/** If the answer of a running token refresh is not stored, its account is lost. */
const REFRESH_GRACE_MS = 4000
/** Time for terminal events of cut-off requests to reach their clients. */
const SOCKET_CLOSE_MS = 500

/** Routes reject new requests; those running at the deadline end with one terminal event. */
const finishTurns = async ({ turns, clock }: Pick<Bindings, 'turns' | 'clock'>, deadlineMs: number): Promise<void> => {
  const deadline = clock.monotonic() + deadlineMs
  while (turns.size > 0 && clock.monotonic() < deadline) await clock.sleep(DRAIN_BEAT_MS)
  if (turns.size === 0) return
  for (const turn of turns) turn.abort(new AppError('draining', { retryAfterSeconds: 5 }))
  await clock.sleep(SOCKET_CLOSE_MS)
}

/**
 * Time to answer requests that wait for a commit. Otherwise their changes would be stored, but the client would get an
 * error.
 */
const ANSWER_MS = BUSY_MS + 500

const waitForAnswers = async (server: Bun.Server<unknown>, clock: Clock): Promise<void> => {
  const deadline = clock.monotonic() + ANSWER_MS
  while (server.pendingRequests > 0 && clock.monotonic() < deadline) await clock.sleep(DRAIN_BEAT_MS)
}

/** Waits for sockets, which close after an answer of the client. */
const waitForSockets = async ({ sockets, clock }: Pick<Bindings, 'sockets' | 'clock'>): Promise<void> => {
  const deadline = clock.monotonic() + SOCKET_CLOSE_MS
  while (sockets.size > 0 && clock.monotonic() < deadline) await clock.sleep(DRAIN_BEAT_MS)
}
