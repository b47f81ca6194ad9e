/** `bun run bench`: measures Sluice against a bare pass-through in the same run and prints PASS or FAIL per target. */
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { measureLoop } from './dashboard-loop.ts'
import { measurePages } from './dashboard-pages.ts'
import { type BigFolder, bigFolder } from './dashboard-seed.ts'
import { measureAborts, measureBackpressure, measureIdle, measureStart, measureStreams } from './endurance.ts'
import { type Lab, type LabOptions, openLab } from './lab.ts'
import { createReport } from './report.ts'
import { measureIdleSessions, measureSocketCycles, measureSocketEvents, measureSocketTurns } from './sockets.ts'
import { measureFirstByte, measurePhases, measureThroughput } from './speed.ts'
import { makeWorkDir, type RunningTarget, removeWorkDir } from './targets.ts'

/** These run against processes that stay up and take turns. */
const SPEED: Record<string, (lab: Lab, targets: RunningTarget[]) => Promise<void>> = {
  throughput: measureThroughput,
  ttfb: measureFirstByte,
  phases: measurePhases,
}

/** The same for sockets. */
const SOCKET_SPEED: Record<string, (lab: Lab, targets: RunningTarget[]) => Promise<void>> = {
  'socket-events': measureSocketEvents,
  'socket-turns': measureSocketTurns,
}

/** Each of these gets a fresh process. */
const ENDURANCE: Record<string, (lab: Lab) => Promise<void>> = {
  start: measureStart,
  memory: measureIdle,
  streams: measureStreams,
  backpressure: measureBackpressure,
  abort: measureAborts,
  'socket-idle': measureIdleSessions,
  'socket-cycles': measureSocketCycles,
}

/** These share a folder with a large log. */
const DASHBOARD: Record<string, (lab: Lab, folder: BigFolder) => Promise<void>> = {
  pages: measurePages,
  loop: measureLoop,
}

const NAMES = [SPEED, SOCKET_SPEED, ENDURANCE, DASHBOARD].flatMap(Object.keys)

const FULL = {
  rounds: 5,
  seconds: 2,
  firstByteRequests: 500,
  streamSeconds: 15,
  drainSeconds: 60,
  aborts: 10_000,
  socketCycles: 5_000,
  visits: 40,
  log: { accounts: 200, keys: 100, rows: 1_000_000, days: 730 },
}
const QUICK = {
  rounds: 2,
  seconds: 1,
  firstByteRequests: 200,
  streamSeconds: 5,
  drainSeconds: 8,
  aborts: 2_000,
  socketCycles: 1_000,
  visits: 10,
  log: { accounts: 20, keys: 10, rows: 20_000, days: 60 },
}

const { values } = parseArgs({
  options: {
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    only: { type: 'string', multiple: true },
    quick: { type: 'boolean', default: false },
    binary: { type: 'boolean', default: false },
    processes: { type: 'string', default: '1' },
    folder: { type: 'string' },
    paths: { type: 'string' },
    visits: { type: 'string' },
    help: { type: 'boolean', short: 'h', default: false },
  },
})

if (values.help) {
  console.log(
    'bun run bench [--quick] [--binary] [--processes N] [--rounds N] [--seconds S] [--only NAME …] [--folder DIR] [--paths REGEX] [--visits N]',
  )
  console.log(`NAME: ${NAMES.join(', ')}`)
} else process.exitCode = await bench()

async function bench(): Promise<number> {
  const preset = values.quick ? QUICK : FULL
  const options: LabOptions = {
    ...preset,
    rounds: Number(values.rounds ?? preset.rounds),
    seconds: Number(values.seconds ?? preset.seconds),
    useBinary: values.binary,
    processes: Number(values.processes),
    keepIn: values.folder,
    visits: Number(values.visits ?? preset.visits),
    paths: new RegExp(values.paths ?? ''),
  }
  const names = (values.only ?? NAMES).flatMap((name) => name.split(','))
  const unknown = names.find((name) => !NAMES.includes(name))
  if (unknown) {
    console.error(`Unknown measurement "${unknown}". Choose from ${NAMES.join(', ')}.`)
    return 2
  }
  const report = createReport(console.log)
  console.log(
    `Bun ${Bun.version}, ${cpus().length} × ${cpus()[0]?.model}, sluice from ${options.useBinary ? 'dist/sluice' : 'source'}`,
  )
  const workDir = await makeWorkDir()
  try {
    const lab = await openLab(options, report, workDir)
    try {
      await measure(lab, names)
    } finally {
      await lab.close()
    }
  } finally {
    await removeWorkDir(workDir)
  }
  return conclude(report.verdicts)
}

async function measure(lab: Lab, names: string[]): Promise<void> {
  for (const [runs, start] of [
    [names.flatMap((name) => SPEED[name] ?? []), lab.startAll],
    [names.flatMap((name) => SOCKET_SPEED[name] ?? []), lab.startAllSockets],
  ] as const) {
    const targets = runs.length > 0 ? await start() : []
    for (const run of runs) await run(lab, targets)
    for (const target of targets) if (target.name !== 'direct') await target.child.stop()
  }
  for (const run of names.flatMap((name) => ENDURANCE[name] ?? [])) await run(lab)
  const dashboard = names.flatMap((name) => DASHBOARD[name] ?? [])
  if (dashboard.length === 0 || !lab.seed) return
  const { log, keepIn } = lab.options
  const folder = await bigFolder(lab.seed, log, lab.workDir, keepIn)
  for (const run of dashboard) await run(lab, folder)
}

function conclude(verdicts: readonly { isPass: boolean }[]): number {
  const failed = verdicts.filter((verdict) => !verdict.isPass).length
  console.log(`\n${verdicts.length - failed} passed, ${failed} failed`)
  return failed === 0 ? 0 : 1
}
