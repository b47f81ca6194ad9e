/** Sockets against a pass-through of frames: latency per event and per turn, memory of idle sessions, and leaks. */
import { readdirSync } from 'node:fs'
import type { Lab } from './lab.ts'
import { rssBytes } from './processes.ts'
import { megabytes, short } from './report.ts'
import type { CyclesResult, IdleResult, Latency, SocketJob, TurnsResult } from './socket-driver.ts'
import { type Summary, summarize } from './stats.ts'
import type { RunningTarget, TargetName } from './targets.ts'

const SOCKETS = 16
const EVENT_INTERVAL_MS = 10
const SESSIONS = 1_000
const MB = 1_000_000
const REST_MS = 10_000

/** 100 events a second on each of 16 sockets. Targets take turns inside each round. */
export async function measureSocketEvents(lab: Lab, targets: RunningTarget[]): Promise<void> {
  await lab.upstream.setMode({ kind: 'slow', intervalMs: EVENT_INTERVAL_MS, events: 0 })
  const rounds: Map<TargetName, Latency>[] = []
  for (let n = 0; n < lab.options.rounds; n++) {
    const round = new Map<TargetName, Latency>()
    for (const target of targets) {
      const job: SocketJob = {
        kind: 'events',
        target: plain(target),
        sockets: SOCKETS,
        warmupMs: lab.options.seconds * 500,
        durationMs: lab.options.seconds * 1000,
      }
      round.set(target.name, await lab.driveSockets<Latency>(job))
    }
    rounds.push(round)
  }
  lab.report.heading(`time of an event on the way, µs: ${SOCKETS} sockets, 100 events/s each, ${rounds.length} rounds`)
  const added = printLatency(lab, targets, rounds)
  if (!added) return
  lab.report.check('added per event on a socket, p50', added.p50.median / 1000, '<=', 0.3, ' ms')
  lab.report.check('per event on a socket, p99', added.p99Ratio.median, '<=', 2, ' × direct')
}

/** One client, a short answer, on a socket that has served turns before. */
export async function measureSocketTurns(lab: Lab, targets: RunningTarget[]): Promise<void> {
  await lab.upstream.setMode({ kind: 'burst', groups: 1 })
  const rounds: Map<TargetName, Latency>[] = []
  for (let n = 0; n < lab.options.rounds; n++) {
    const turns = lab.options.firstByteRequests
    const job: SocketJob = { kind: 'turns', targets: targets.map(plain), body: '2kb', warmup: turns, turns }
    rounds.push(new Map(Object.entries(await lab.driveSockets<TurnsResult>(job)) as [TargetName, Latency][])) // as: the names given
  }
  lab.report.heading(`a turn of ten events on a warm socket, µs: one client, 2 KB frame, ${rounds.length} rounds`)
  const added = printLatency(lab, targets, rounds)
  if (added) lab.report.check('added to a turn on a warm socket, p50', added.p50.median / 1000, '<=', 0.5, ' ms')
}

/** Prints a row per target, and what Sluice adds to a direct connection in each round. */
function printLatency(lab: Lab, targets: RunningTarget[], rounds: Map<TargetName, Latency>[]) {
  const of = (name: TargetName, value: (cell: Latency, direct: Latency) => number): Summary =>
    summarize(
      rounds.flatMap((round) => {
        const [cell, direct] = [round.get(name), round.get('direct')]
        return cell && direct ? [value(cell, direct)] : []
      }),
    )
  const added = (name: TargetName) => ({
    p50: of(name, (cell, direct) => cell.p50Us - direct.p50Us),
    p99Ratio: of(name, (cell, direct) => cell.p99Us / direct.p99Us),
  })
  lab.report.table(
    ['target', 'p50', 'spread', 'p99', 'added p50', 'p99 × direct'],
    targets.map(({ name }) => {
      const p50 = of(name, (cell) => cell.p50Us)
      const p99 = of(name, (cell) => cell.p99Us).median.toFixed(0)
      const over = name === 'direct' ? [] : [added(name).p50.median.toFixed(0), short(added(name).p99Ratio.median)]
      return [name, p50.median.toFixed(0), `${p50.spreadPercent.toFixed(0)} %`, p99, ...over]
    }),
  )
  return targets.some(({ name }) => name === 'sluice') ? added('sluice') : null
}

/** A thousand sessions after their first turn, each with its upstream socket. */
export async function measureIdleSessions(lab: Lab): Promise<void> {
  lab.report.heading(`${SESSIONS} sessions on sockets, idle after a turn`)
  const rows: string[][] = []
  for (const start of lab.freshSockets) {
    const target = await start()
    await lab.upstream.setMode({ kind: 'burst', groups: 1 })
    await cycle(lab, target, { count: 500 })
    const before = await settledRss(target)
    const hold = lab.driveSockets<IdleResult>({ kind: 'idle', target: plain(target), count: SESSIONS, holdMs: REST_MS })
    const samples: { at: number; rss: number }[] = []
    let isOver = false
    void hold.finally(() => (isOver = true)).catch(() => {}) // awaited below
    while (!isOver) {
      if (samples.length % 8 === 0) collect(target)
      samples.push({ at: performance.now(), rss: rssBytes(target.child.pid) })
      await Bun.sleep(250)
    }
    const { opened, rampSeconds } = await hold
    const rest = samples.filter(
      ({ at }) => at > (samples.at(-1)?.at ?? 0) - REST_MS + 1_500 && at < (samples.at(-1)?.at ?? 0) - 750,
    )
    const kibEach = (Math.min(...rest.map(({ rss }) => rss)) - before) / SESSIONS / 1024
    rows.push([target.name, `${opened}`, `${short(rampSeconds)} s`, megabytes(before), kibEach.toFixed(1)])
    if (target.name === 'sluice') {
      lab.report.check('idle sessions open', opened, '>=', SESSIONS, '')
      lab.report.check('memory per idle session', kibEach, '<=', 40, ' KiB')
    }
    await target.child.stop()
  }
  lab.report.table(['target', 'open', 'ramp', 'resting RSS before', 'KiB each'], rows)
}

/**
 * Turns with a clean close, then clients that stop reading while the upstream keeps sending, and disconnect: memory
 * after a second run.
 */
export async function measureSocketCycles(lab: Lab): Promise<void> {
  const count = lab.options.socketCycles
  lab.report.heading(
    `${count} times connect, turn, close, and ${count / 50} times a drop behind a client that does not read, twice`,
  )
  const rows: string[][] = []
  for (const start of lab.freshSockets) {
    const target = await start()
    const first = await cyclesRound(lab, target, count)
    const second = await cyclesRound(lab, target, count)
    const [descriptors, growth] = [second.descriptors - first.descriptors, second.rss - first.rss]
    rows.push([
      target.name,
      `${short(second.seconds)} s`,
      `${first.descriptors}`,
      `${second.descriptors}`,
      `${second.openSessions}`,
      megabytes(first.rss),
      megabytes(second.rss),
    ])
    if (target.name === 'sluice') {
      lab.report.check('descriptors added by the second round of sockets', descriptors, '<=', 0, '')
      lab.report.check('upstream sockets still open', second.openSessions, '<=', 0, '')
      lab.report.check('memory added by the second round of sockets', growth / MB, '<=', 15, ' MB')
    }
    await target.child.stop()
  }
  lab.report.table(
    ['target', 'took', 'descriptors after 1', 'after 2', 'upstream sockets', 'RSS after 1', 'after 2'],
    rows,
  )
}

async function cyclesRound(lab: Lab, target: RunningTarget, count: number) {
  await lab.upstream.setMode({ kind: 'burst', groups: 1 })
  const { seconds } = await cycle(lab, target, { count })
  await lab.upstream.setMode({ kind: 'flood', bytes: 60 * MB, dropAfterMs: 150 })
  await cycle(lab, target, { count: count / 50, abandonMs: 400 })
  const rss = await settledRss(target)
  const { openSessions } = await lab.upstream.stats()
  return {
    rss,
    descriptors: readdirSync(`/proc/${target.child.pid}/fd`).length,
    openSessions,
    seconds,
  }
}

function cycle(
  lab: Lab,
  target: RunningTarget,
  { count, abandonMs = null }: { count: number; abandonMs?: number | null },
) {
  return lab.driveSockets<CyclesResult>({ kind: 'cycles', target: plain(target), count, concurrency: 16, abandonMs })
}

/** The lowest RSS seen while the process rests, collections included. */
async function settledRss(target: RunningTarget): Promise<number> {
  const end = performance.now() + REST_MS
  let lowest = Number.POSITIVE_INFINITY
  for (let n = 0; performance.now() < end; n++) {
    if (n % 8 === 0) collect(target)
    await Bun.sleep(250)
    lowest = Math.min(lowest, rssBytes(target.child.pid))
  }
  return lowest
}

function collect({ child }: RunningTarget): void {
  process.kill(child.pid, 'SIGUSR2')
}

function plain({ name, url, apiKey }: RunningTarget) {
  return { name, url, apiKey }
}
