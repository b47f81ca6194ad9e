/** What every measurement gets: the running processes, a driver, and a report. */
import { dirname } from 'node:path'
import type { BigSizes } from './dashboard-seed.ts'
import type { DriverJob } from './driver.ts'
import { type BodyName, RESPONSES_PATH, requestBody, requestHeaders, sessionId } from './payload.ts'
import { runCommand } from './processes.ts'
import type { Report } from './report.ts'
import type { SocketJob } from './socket-driver.ts'
import {
  direct,
  type RunningTarget,
  type SeedOptions,
  type SluiceSeed,
  seedSluice,
  sluiceCommand,
  startFloor,
  startFloorSockets,
  startNginx,
  startSluice,
  startUpstream,
  type TargetName,
  type Upstream,
  WITH_COLLECT_SIGNAL,
} from './targets.ts'

export type LabOptions = {
  rounds: number
  seconds: number
  firstByteRequests: number
  streamSeconds: number
  drainSeconds: number
  aborts: number
  socketCycles: number
  /** Number of visits of each page. */
  visits: number
  /** Visits only pages that match. */
  paths?: RegExp
  /** The folder of the dashboard measurements. */
  log: BigSizes
  /** Where to keep that folder for the next run. */
  keepIn?: string | undefined
  useBinary: boolean
  /** How many Sluice processes to start; 1 when absent. */
  processes?: number
}

export type Lab = {
  options: LabOptions
  report: Report
  upstream: Upstream
  seed: SluiceSeed | null
  /** Temporary files of a measurement; deleted at the end. */
  workDir: string
  /** Starts the targets of the speed measurements, in the order in which they take turns. */
  startAll: () => Promise<RunningTarget[]>
  /** The same for sockets. */
  startAllSockets: () => Promise<RunningTarget[]>
  /** Starts a fresh process of the floor, then of Sluice, to measure memory. */
  fresh: (() => Promise<RunningTarget>)[]
  freshSockets: (() => Promise<RunningTarget>)[]
  drive: <Result>(job: DriverJob) => Promise<Result>
  driveSockets: <Result>(job: SocketJob) => Promise<Result>
  serverTiming: (target: RunningTarget, body: BodyName, requests: number) => Promise<Map<string, number[]>>
  close: () => Promise<void>
}

/** Starts the upstream and seeds a data folder. Leaves Sluice out, with a note, if it is missing. */
export async function openLab(options: LabOptions, report: Report, workDir: string): Promise<Lab> {
  const upstream = await startUpstream()
  const command = sluiceCommand(options.useBinary ? 'binary' : 'source')
  const serve = ['--processes', String(options.processes ?? 1)]
  const seed = command && (await seedSluice(command, upstream.url, workDir, { serve }))
  if (!seed) report.note(`sluice is not measured: ${options.useBinary ? 'dist/sluice' : 'src/main.ts'} is missing`)
  const overHttp = seed ? [() => freshSluice(upstream, seed, { transport: 'http' })] : []
  const overSockets = seed ? [() => freshSluice(upstream, seed, { transport: 'auto' })] : []
  return {
    options,
    report,
    upstream,
    seed,
    workDir,
    startAll: () => startAll({ upstream, workDir, report }, [() => startFloor(upstream), ...overHttp]),
    startAllSockets: () => startAll({ upstream, workDir, report }, [() => startFloorSockets(upstream), ...overSockets]),
    fresh: [() => startFloor(upstream), ...overHttp],
    freshSockets: [() => startFloorSockets(upstream), ...overSockets],
    drive: (job) => drive('bench/driver.ts', job),
    driveSockets: (job) => drive('bench/socket-driver.ts', job),
    serverTiming,
    close: () => upstream.stop(),
  }
}

type Ground = { upstream: Upstream; workDir: string; report: Report }

async function startAll({ upstream, workDir, report }: Ground, starts: (() => Promise<RunningTarget>)[]) {
  const nginx = await startNginx(upstream, workDir)
  if (!nginx) report.note('nginx is not measured: it is not installed')
  const started = nginx ? [nginx] : []
  try {
    for (const start of starts) started.unshift(await start())
  } catch (error) {
    for (const { child } of started) await child.stop()
    throw error
  }
  return [direct(upstream), ...inOrder(started)]
}

const ORDER: readonly TargetName[] = ['floor', 'sluice', 'nginx']

function inOrder(targets: RunningTarget[]): RunningTarget[] {
  return targets.toSorted((a, b) => ORDER.indexOf(a.name) - ORDER.indexOf(b.name))
}

/** A data folder has one server at a time, so each fresh process gets a new folder. */
async function freshSluice(upstream: Upstream, seed: SluiceSeed, options: SeedOptions): Promise<RunningTarget> {
  await upstream.setMode({ kind: 'burst', groups: 10 })
  const fresh = await seedSluice(seed.command, upstream.url, dirname(seed.dataDir), { ...options, serve: seed.serve })
  return startSluice(fresh, options.transport === 'auto' ? WITH_COLLECT_SIGNAL : {})
}

async function drive<Result>(script: string, job: unknown): Promise<Result> {
  return JSON.parse(await runCommand(['bun', script, JSON.stringify(job)], {})) as Result // the driver's own type
}

/** Collects `Server-Timing` durations of `requests` requests in µs, by phase name. */
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
