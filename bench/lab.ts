/** What every measurement is given: the running processes, a way to drive them, and where to report. */
import { dirname } from 'node:path'
import type { DriverJob } from './driver.ts'
import { type BodyName, RESPONSES_PATH, requestBody, requestHeaders, sessionId } from './payload.ts'
import { runCommand } from './processes.ts'
import type { Report } from './report.ts'
import {
  direct,
  type RunningTarget,
  type SluiceSeed,
  seedSluice,
  sluiceCommand,
  startFloor,
  startNginx,
  startSluice,
  startUpstream,
  type Upstream,
} from './targets.ts'

export type LabOptions = {
  rounds: number
  seconds: number
  firstByteRequests: number
  streamSeconds: number
  drainSeconds: number
  aborts: number
  useBinary: boolean
}

export type Lab = {
  options: LabOptions
  report: Report
  upstream: Upstream
  seed: SluiceSeed | null
  /** Starts the four targets of the speed measurements, in the order in which they take turns. */
  startAll: () => Promise<RunningTarget[]>
  /** Starts a fresh process of the floor, then of Sluice, for measurements of memory. */
  fresh: (() => Promise<RunningTarget>)[]
  drive: <Result>(job: DriverJob) => Promise<Result>
  serverTiming: (target: RunningTarget, body: BodyName, requests: number) => Promise<Map<string, number[]>>
  close: () => Promise<void>
}

/** Starts the upstream and seeds a data folder. Sluice is left out, with a note, where it does not exist. */
export async function openLab(options: LabOptions, report: Report, workDir: string): Promise<Lab> {
  const upstream = await startUpstream()
  const command = sluiceCommand(options.useBinary ? 'binary' : 'source')
  const seed = command && (await seedSluice(command, upstream.url, workDir))
  if (!seed) report.note(`sluice is not measured: ${options.useBinary ? 'dist/sluice' : 'src/main.ts'} is missing`)
  return {
    options,
    report,
    upstream,
    seed,
    startAll: () => startAll(upstream, seed, workDir, report),
    fresh: [() => startFloor(upstream), seed && (() => freshSluice(upstream, seed))].filter((start) => start !== null),
    drive,
    serverTiming,
    close: () => upstream.stop(),
  }
}

async function startAll(upstream: Upstream, seed: SluiceSeed | null, workDir: string, report: Report) {
  const nginx = await startNginx(upstream, workDir)
  if (!nginx) report.note('nginx is not measured: it is not installed')
  const targets = [direct(upstream), await startFloor(upstream), seed && (await freshSluice(upstream, seed)), nginx]
  return targets.filter((target) => target !== null)
}

/** A data folder has one server at a time, so a fresh process gets a freshly seeded folder. */
async function freshSluice(upstream: Upstream, seed: SluiceSeed): Promise<RunningTarget> {
  await upstream.setMode({ kind: 'burst', groups: 10 })
  return startSluice(await seedSluice(seed.command, upstream.url, dirname(seed.dataDir)))
}

async function drive<Result>(job: DriverJob): Promise<Result> {
  return JSON.parse(await runCommand(['bun', 'bench/driver.ts', JSON.stringify(job)], {})) as Result // the driver's own type
}

/** Collects the `Server-Timing` durations of `requests` turns in µs, by phase name. */
async function serverTiming(target: RunningTarget, body: BodyName, requests: number): Promise<Map<string, number[]>> {
  const phases = new Map<string, number[]>()
  const id = sessionId(1)
  const init = { method: 'POST', headers: requestHeaders(id, target.apiKey), body: requestBody(body, id) }
  for (let n = 0; n < requests; n++) {
    const response = await fetch(target.url + RESPONSES_PATH, init)
    await response.arrayBuffer()
    for (const entry of (response.headers.get('server-timing') ?? '').split(',')) {
      const match = /^ *([\w-]+).*;dur=([\d.]+)/.exec(entry)
      if (!match?.[1]) continue
      const samples = phases.get(match[1]) ?? []
      samples.push(Number(match[2]) * 1000)
      phases.set(match[1], samples)
    }
  }
  return phases
}
