/** Soak steps with a running Sluice: leaks under mixed load, and kill -9 with restart. */
import { Database } from 'bun:sqlite'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { AbortResult, StreamsResult, ThroughputResult } from './driver.ts'
import { type Lab, openLab } from './lab.ts'
import { rssBytes } from './processes.ts'
import { createReport } from './report.ts'
import { Skipped, type SoakContext } from './soak-step.ts'
import { makeWorkDir, type RunningTarget, removeWorkDir, type SluiceSeed, startSluice } from './targets.ts'

type Footprint = { rss: number; descriptors: number; sockets: number; streams: number }

const LEAK_ROUNDS = 10
const MAX_RSS_GROWTH = 15_000_000
/** Idle upstream connections open and close within the keep-alive pool. */
const MAX_DESCRIPTOR_GROWTH = 8

/**
 * Rounds of ordinary requests, aborted streams and abandoned long responses. After the second round memory must not
 * grow.
 */
export function leakRounds(context: SoakContext): Promise<string> {
  return withLab(context, async (lab, seed) => {
    const target = await startSluice(seed)
    try {
      const rounds: Footprint[] = []
      for (let n = 0; n < Math.max(4, LEAK_ROUNDS * context.scale); n++) rounds.push(await leakRound(lab, target))
      return compare(rounds)
    } finally {
      await target.child.stop()
    }
  })
}

async function leakRound(lab: Lab, target: RunningTarget): Promise<Footprint> {
  const client = { name: target.name, url: target.url, apiKey: target.apiKey }
  await lab.upstream.setMode({ kind: 'burst', groups: 10 })
  const load = {
    kind: 'throughput',
    target: client,
    body: '56kb',
    clients: 16,
    warmupMs: 0,
    durationMs: 3_000,
  } as const
  const { failures, firstFailure } = await lab.drive<ThroughputResult>(load)
  if (failures > 0) throw new Error(`${failures} turns failed, first: ${firstFailure}`)
  await lab.upstream.setMode({ kind: 'slow', intervalMs: 50, events: 0 })
  const aborted = await lab.drive<AbortResult>({ kind: 'abort', target: client, count: 3_000, concurrency: 50 })
  if (aborted.failures > 0) throw new Error(`${aborted.failures} streams failed, first: ${aborted.firstFailure}`)
  await lab.upstream.setMode({ kind: 'large', bytes: 50_000_000 })
  await lab.drive({ kind: 'drain', target: client, bytesPerSecond: 1_000_000, durationMs: 1_500 })
  return restingFootprint(lab, target)
}

async function restingFootprint(lab: Lab, target: RunningTarget): Promise<Footprint> {
  let rss = Number.POSITIVE_INFINITY
  for (let n = 0; n < 20; n++) {
    await Bun.sleep(250)
    rss = Math.min(rss, rssBytes(target.child.pid))
  }
  const { turnSockets, openStreams } = await lab.upstream.stats()
  const descriptors = readdirSync(`/proc/${target.child.pid}/fd`).length
  return { rss, descriptors, sockets: turnSockets, streams: openStreams }
}

function compare(rounds: Footprint[]): string {
  const before = rounds[1]
  const after = rounds.at(-1)
  if (!before || !after) throw new Error('too few rounds')
  const growth = {
    rss: after.rss - before.rss,
    descriptors: after.descriptors - before.descriptors,
    sockets: after.sockets - before.sockets,
  }
  const path = rounds.map(({ rss }) => (rss / 1e6).toFixed(0)).join(' ')
  const summary = `RSS ${path} MB, descriptors ${growth.descriptors}, upstream connections of turns ${growth.sockets} since round 2`
  const isLevel = growth.rss <= MAX_RSS_GROWTH && growth.descriptors <= MAX_DESCRIPTOR_GROWTH && after.streams === 0
  if (!isLevel || growth.sockets > MAX_DESCRIPTOR_GROWTH) throw new Error(`${summary}, ${after.streams} streams left`)
  return summary
}

const KILL_ROUNDS = 20
const KILLED_STREAMS = 200

/**
 * Requests that ended 250 ms before the kill are in the log, the database is intact, and the next request is served.
 */
export function killRounds(context: SoakContext): Promise<string> {
  return withLab(context, async (lab, seed) => {
    let finished = 0
    const rounds = Math.max(2, Math.ceil(KILL_ROUNDS * context.scale))
    for (let n = 0; n < rounds; n++) {
      await lab.upstream.setMode({ kind: 'burst', groups: 10 })
      const target = await startSluice(seed)
      finished += 1 + (await killOnce(lab, target))
      checkDatabase(seed.dataDir)
    }
    await lab.upstream.setMode({ kind: 'burst', groups: 10 })
    const target = await startSluice(seed)
    try {
      const logged = await loggedTurns(target)
      if (logged < finished) throw new Error(`${finished} turns had ended well before a kill, ${logged} are in the log`)
      return `${rounds} kills, ${finished} turns all in the log (${logged} rows)`
    } finally {
      await target.child.stop()
    }
  })
}

/** Kills the server while `KILLED_STREAMS` streams run. Returns how many requests had ended at least 250 ms before. */
async function killOnce(lab: Lab, target: RunningTarget): Promise<number> {
  const client = { name: target.name, url: target.url, apiKey: target.apiKey }
  const load = { kind: 'throughput', target: client, body: '2kb', clients: 4, warmupMs: 0, durationMs: 300 } as const
  const { total } = await lab.drive<ThroughputResult>(load)
  await lab.upstream.setMode({ kind: 'slow', intervalMs: 50, events: 0 })
  const job = {
    kind: 'streams',
    target: client,
    count: KILLED_STREAMS,
    rampMs: 400,
    settleMs: 0,
    durationMs: 4_000,
  } as const
  const streams = lab.drive<StreamsResult>(job)
  await untilOpen(lab, KILLED_STREAMS)
  process.kill(target.child.pid, 'SIGKILL')
  const { opened, broken } = await streams
  await target.child.stop()
  if (opened < KILLED_STREAMS || broken < KILLED_STREAMS)
    throw new Error(`${opened} streams open, ${broken} broken by the kill`)
  return total
}

/** Waits at most as long as the driver holds them. Its own count shows missing ones. */
async function untilOpen(lab: Lab, streams: number): Promise<void> {
  for (let tries = 0; tries < 60 && (await lab.upstream.stats()).openStreams < streams; tries++) await Bun.sleep(50)
  await Bun.sleep(300) // for the first bytes to reach the driver, and for the 250 ms of earlier requests
}

function checkDatabase(dataDir: string): void {
  const database = new Database(join(dataDir, 'sluice.db'))
  try {
    const verdict = database.query<{ integrity_check: string }, []>('PRAGMA integrity_check').get()?.integrity_check
    if (verdict !== 'ok') throw new Error(`integrity_check after the kill: ${verdict}`)
  } finally {
    database.close()
  }
}

async function loggedTurns(target: RunningTarget): Promise<number> {
  const response = await fetch(`${target.url}/api/request-logs?limit=1`)
  const answer: unknown = await response.json()
  const total = typeof answer === 'object' && answer !== null && 'total' in answer ? answer.total : undefined
  if (typeof total !== 'number') throw new Error(`GET /api/request-logs answered ${response.status} without a total`)
  return total
}

async function withLab(context: SoakContext, work: (lab: Lab, seed: SluiceSeed) => Promise<string>): Promise<string> {
  const workDir = await makeWorkDir()
  const options = { ...NO_BENCH, useBinary: context.useBinary }
  const lab = await openLab(
    options,
    createReport(() => {}),
    workDir,
  )
  try {
    if (!lab.seed) throw new Skipped(context.useBinary ? 'dist/sluice is missing' : 'src/main.ts is missing')
    return await work(lab, lab.seed)
  } finally {
    await lab.close()
    await removeWorkDir(workDir)
  }
}

const NO_BENCH = {
  rounds: 0,
  seconds: 0,
  firstByteRequests: 0,
  streamSeconds: 0,
  drainSeconds: 0,
  aborts: 0,
  socketCycles: 0,
  visits: 0,
  log: { accounts: 0, keys: 0, rows: 0, days: 0 },
}
