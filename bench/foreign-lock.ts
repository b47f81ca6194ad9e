/**
 * `/health` under load, alternately without and with another process holding the database lock: `bun
 * bench/foreign-lock.ts [rounds] [seconds]`.
 */
import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import type { ThroughputResult } from './driver.ts'
import { type LabOptions, openLab } from './lab.ts'
import { createReport } from './report.ts'
import { percentile } from './stats.ts'
import { makeWorkDir, removeWorkDir, startSluice } from './targets.ts'

const [rounds = 3, seconds = 6] = process.argv.slice(2).map(Number)
const PAUSE_MS = 5
const TARGET_MS = 50

const options: LabOptions = {
  rounds,
  seconds,
  firstByteRequests: 0,
  streamSeconds: 0,
  drainSeconds: 0,
  aborts: 0,
  socketCycles: 0,
  visits: 0,
  log: { accounts: 0, keys: 0, rows: 0, days: 0 },
  useBinary: false,
}

const workDir = await makeWorkDir()
const lab = await openLab(options, createReport(console.log), workDir)
if (!lab.seed) throw new Error('src/main.ts is missing')
const { seed } = lab
const target = await startSluice(seed)
const client = { name: target.name, url: target.url, apiKey: target.apiKey }

/** Response times of `/health` while one client sends requests, in ms. */
const measure = async (): Promise<number[]> => {
  const durationMs = seconds * 1000
  const load = { kind: 'throughput', target: client, body: '2kb', clients: 1, warmupMs: 0, durationMs } as const
  const driving = lab.drive<ThroughputResult>(load)
  const took: number[] = []
  for (const end = performance.now() + durationMs; performance.now() < end; await Bun.sleep(PAUSE_MS)) {
    const began = performance.now()
    await (await fetch(`${target.url}/health`)).text()
    took.push(performance.now() - began)
  }
  const { failures, firstFailure } = await driving
  if (failures > 0) throw new Error(`${failures} requests failed, first: ${firstFailure}`)
  return took
}

const free: number[] = []
const locked: number[] = []
try {
  await lab.upstream.setMode({ kind: 'burst', groups: 10 })
  await measure() // the first round is not counted
  const other = new Database(join(seed.dataDir, 'sluice.db'))
  other.run('PRAGMA busy_timeout = 5000')
  for (let n = 0; n < rounds; n++) {
    free.push(...(await measure()))
    other.run('BEGIN IMMEDIATE')
    locked.push(...(await measure()))
    other.run('ROLLBACK')
    await Bun.sleep(1000) // the delayed writes are done
  }
  other.close()
} finally {
  await target.child.stop()
  await lab.close()
  await removeWorkDir(workDir)
}

const told = (name: string, values: number[]) => {
  const sorted = values.toSorted((a, b) => a - b)
  const [p50, p99] = [0.5, 0.99].map((share) => percentile(sorted, share))
  console.log(`${name.padEnd(7)} p50 ${p50?.toFixed(1)} ms, p99 ${p99?.toFixed(1)} ms, of ${values.length} requests`)
  return p99 ?? Number.POSITIVE_INFINITY
}
told('free', free)
process.exit(told('locked', locked) <= TARGET_MS ? 0 : 1)
