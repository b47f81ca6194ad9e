/** The running server: listens and drains. */
import { announceAll } from '../../db/commit.ts'
import type { FolderLock } from '../../db/lock.ts'
import { waitForLocksAtMost } from '../../db/open.ts'
import { deferCheckpoints } from '../../db/short-log.ts'
import { watchDatabase } from '../../db/watch.ts'
import { prepareBootstrapToken, warnOfOpenDashboard } from '../auth/bootstrap.ts'
import { AppError } from '../errors.ts'
import { websocket } from '../http/websocket.ts'
import { scheduleJobs } from '../jobs/all.ts'
import { IDLE_SECONDS } from '../lib/idle-limit.ts'
import { Schedule } from '../lib/schedule.ts'
import { pingForJob } from '../proxy/relay/ping.ts'
import { answer } from '../routes/app.ts'
import type { Bindings } from './bindings.ts'
import { buildBindings, type World } from './build-bindings.ts'

/**
 * How long a commit waits for another process's lock. The event loop waits too, and the ledger retries every 100 ms, so
 * this limits the delay of other requests (`bench/foreign-lock.ts`). Commands hold the lock for one commit.
 */
const BUSY_MS = 20
/** At shutdown nothing else is delayed, and the last writes cannot be retried. */
const LAST_BUSY_MS = 2500

export interface RunningServer {
  url: string
  bindings: Bindings
  /** Finishes running requests until the deadline, then ends them with an error, and closes everything. */
  drain(): Promise<void>
}

/** Starts listening, and releases `lock` at the end. Throws the system's error for a port in use. */
export const startServer = (world: World, lock: FolderLock): RunningServer => {
  const { config, folder, clock, log } = world
  waitForLocksAtMost(folder.sqlite, BUSY_MS)
  if (world.checkpointer) deferCheckpoints(folder.db)
  const bindings = buildBindings(world)
  prepareBootstrapToken(bindings)
  warnOfOpenDashboard(bindings)
  const schedule = new Schedule({
    clock,
    random: world.random,
    onError: (job, err) => log.warn('a job failed', { job, err }),
  })
  scheduleJobs(schedule, bindings, {
    startWindow: (wanted, signal) => pingForJob(bindings, { ...wanted, route: 'window-start' }, signal),
    ping: ({ includePaused, ...wanted }, signal) =>
      pingForJob(bindings, { ...wanted, route: 'automation', mayBePaused: includePaused }, signal),
  })
  const server = Bun.serve({
    hostname: config.HOST,
    port: config.PORT,
    idleTimeout: IDLE_SECONDS,
    // Routes reject large bodies with an envelope (`proxy/ingress/raw-body.ts`); the runtime's own 413 has none.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    development: false,
    reusePort: false, // set explicitly: otherwise the runtime shares the port with other processes (Bun 1.4.5)
    fetch: (request) => answer(request, bindings),
    websocket,
  })
  bindings.server = server
  bindings.ledger.start()
  bindings.ops.loopLag.start()
  schedule.start()
  bindings.signIns.follow()
  const stopWatching = watchDatabase({
    sqlite: folder.sqlite,
    clock,
    onMoved: () => announceAll(folder.db),
    onError: (err) => log.error('database changes could not be watched', { err }),
  })
  const drain = async () => {
    bindings.lifecycle.draining = true
    for (const socket of bindings.sockets) socket.drain()
    bindings.live.stop()
    bindings.replayer.stop()
    await finishTurns(bindings, config.SHUTDOWN_DRAIN_SECONDS * 1000)
    await waitForSockets(bindings)
    await server.stop(true)
    stopWatching()
    bindings.ops.loopLag.stop()
    await bindings.signIns.stop()
    await schedule.stop()
    await bindings.proxyDeps.credentials.settled(REFRESH_GRACE_MS)
    world.dial.close()
    waitForLocksAtMost(folder.sqlite, LAST_BUSY_MS)
    bindings.pool.stop()
    await bindings.captures.stop()
    bindings.ledger.stop()
    bindings.views.stop()
    bindings.reader.stop()
    await world.checkpointer?.stop()
    folder.close()
    lock.release()
  }
  return { url: server.url.href.replace(/\/$/, ''), bindings, drain }
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

/** Waits for sockets, which close after an answer of the client. */
const waitForSockets = async ({ sockets, clock }: Pick<Bindings, 'sockets' | 'clock'>): Promise<void> => {
  const deadline = clock.monotonic() + SOCKET_CLOSE_MS
  while (sockets.size > 0 && clock.monotonic() < deadline) await clock.sleep(DRAIN_BEAT_MS)
}
