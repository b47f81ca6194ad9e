/** Requests per second and time to first byte of every target compared with the floor, round by round. */
import type { DriverJob, Target, ThroughputResult, TtfbResult } from './driver.ts'
import type { Lab } from './lab.ts'
import { BODIES, type BodyName } from './payload.ts'
import { cpuMs } from './processes.ts'
import { short } from './report.ts'
import { percentile, type Summary, summarize } from './stats.ts'
import type { RunningTarget, TargetName } from './targets.ts'

const CLIENTS = 16
/** The share of the floor's requests per second that Sluice must reach, by request size. */
const THROUGHPUT_TARGET: Record<BodyName, number> = { '2kb': 0.7, '56kb': 0.5 }
/** How much Sluice may add to the first byte, as a multiple of what the floor adds. */
const TTFB_TARGET = 1.7
/** The core the kernel chooses for a process dominates the latency of a run, so each round has several short ones. */
const TTFB_RUNS_PER_ROUND = 3

type RoundCell = { perSecond: number; cpuUs: number }

/** 16 clients in a closed loop. Targets take turns within each round; ratios are computed per round. */
export async function measureThroughput(lab: Lab, targets: RunningTarget[]): Promise<void> {
  await lab.upstream.setMode({ kind: 'burst', groups: 10 })
  for (const body of bodyNames()) {
    const rounds: Map<TargetName, RoundCell>[] = []
    await throughputRound(lab, targets, body) // not counted: compiling takes up to a third of it
    for (let n = 0; n < lab.options.rounds; n++) rounds.push(await throughputRound(lab, targets, body))
    printThroughput(lab, targets, body, rounds)
  }
}

async function throughputRound(
  lab: Lab,
  targets: RunningTarget[],
  body: BodyName,
): Promise<Map<TargetName, RoundCell>> {
  const cells = new Map<TargetName, RoundCell>()
  for (const target of targets) {
    const before = cpuMs(target.child.pid)
    const result = await lab.drive<ThroughputResult>({
      kind: 'throughput',
      target: plain(target),
      body,
      clients: CLIENTS,
      warmupMs: lab.options.seconds * 250,
      durationMs: lab.options.seconds * 1000,
    })
    if (result.failures > 0)
      throw new Error(`${target.name}: ${result.failures} failures, first: ${result.firstFailure}`)
    const cpuUs = ((cpuMs(target.child.pid) - before) * 1000) / result.total
    cells.set(target.name, { perSecond: result.perSecond, cpuUs })
  }
  return cells
}

function printThroughput(
  lab: Lab,
  targets: RunningTarget[],
  body: BodyName,
  rounds: Map<TargetName, RoundCell>[],
): void {
  lab.report.heading(
    `requests per second, ${CLIENTS} clients, ${BODIES[body] / 1000} KB request, ${rounds.length} rounds`,
  )
  const column = (name: TargetName, value: (cell: RoundCell) => number) =>
    summarize(rounds.flatMap((round) => round.get(name) ?? []).map(value))
  const ratio = (name: TargetName) =>
    summarize(rounds.map((round) => (round.get(name)?.perSecond ?? 0) / (round.get('floor')?.perSecond ?? Number.NaN)))
  lab.report.table(
    ['target', 'median/s', 'spread', '× floor', 'worst', 'best', 'CPU µs/request'],
    targets.map(({ name }) => {
      const speed = column(name, (cell) => cell.perSecond)
      const share = ratio(name)
      const cpu = name === 'direct' ? '' : column(name, (cell) => cell.cpuUs).median.toFixed(0)
      return [
        name,
        speed.median.toFixed(0),
        spread(speed),
        share.median.toFixed(2),
        share.min.toFixed(2),
        share.max.toFixed(2),
        cpu,
      ]
    }),
  )
  if (!targets.some((target) => target.name === 'sluice')) return
  lab.report.check(
    `throughput, ${BODIES[body] / 1000} KB`,
    ratio('sluice').median,
    '>=',
    THROUGHPUT_TARGET[body],
    ' × floor',
  )
}

/** One client: from the request's first byte to the first body byte, minus the same without a proxy. */
export async function measureFirstByte(lab: Lab, targets: RunningTarget[]): Promise<void> {
  await lab.upstream.setMode({ kind: 'burst', groups: 10 })
  for (const body of bodyNames()) {
    const rounds: TtfbResult[] = []
    for (let n = 0; n < lab.options.rounds * TTFB_RUNS_PER_ROUND; n++) {
      const job: DriverJob = {
        kind: 'ttfb',
        targets: targets.map(plain),
        body,
        warmup: n === 0 ? lab.options.firstByteRequests : 50,
        requests: lab.options.firstByteRequests,
      }
      rounds.push(await lab.drive<TtfbResult>(job))
    }
    printFirstByte(lab, targets, body, rounds)
  }
}

function printFirstByte(lab: Lab, targets: RunningTarget[], body: BodyName, rounds: TtfbResult[]): void {
  lab.report.heading(`time to first byte, one client, ${BODIES[body] / 1000} KB request, ${rounds.length} runs, µs`)
  const addedUs = (round: TtfbResult, name: TargetName) =>
    (round[name]?.p50Us ?? Number.NaN) - (round.direct?.p50Us ?? Number.NaN)
  const added = (name: TargetName) => summarize(rounds.map((round) => addedUs(round, name)))
  const ratio = (name: TargetName) => summarize(rounds.map((round) => addedUs(round, name) / addedUs(round, 'floor')))
  lab.report.table(
    ['target', 'p50', 'spread', 'p99', 'added p50', '× floor adds'],
    targets.map(({ name }) => {
      const p50 = summarize(rounds.map((round) => round[name]?.p50Us ?? Number.NaN))
      const p99 = summarize(rounds.map((round) => round[name]?.p99Us ?? Number.NaN))
      const over = name === 'direct' ? ['', ''] : [added(name).median.toFixed(0), short(ratio(name).median)]
      return [name, p50.median.toFixed(0), spread(p50), p99.median.toFixed(0), ...over]
    }),
  )
  if (!targets.some((target) => target.name === 'sluice')) return
  const sluice = ratio('sluice').median
  if (body === '2kb')
    lab.report.check('added time to first byte p50, 2 KB', sluice, '<=', TTFB_TARGET, ' × what the floor adds')
  else lab.report.note(`for 56 KB no target is set: ${short(sluice)} × what the floor adds`)
}

/** Time to first byte inside Sluice: the median of each phase of the `Server-Timing` header. */
export async function measurePhases(lab: Lab, targets: RunningTarget[]): Promise<void> {
  const sluice = targets.find((target) => target.name === 'sluice')
  if (!sluice) return
  await lab.upstream.setMode({ kind: 'burst', groups: 10 })
  for (const body of bodyNames()) {
    const phases = await lab.serverTiming(sluice, body, lab.options.firstByteRequests)
    if (phases.size === 0) return lab.report.note('no Server-Timing header on the answers')
    lab.report.heading(`phases before the headers leave, ${BODIES[body] / 1000} KB request, median µs`)
    const rows = [...phases].map(([name, samples]) => [
      name,
      percentile(
        samples.sort((a, b) => a - b),
        0.5,
      ).toFixed(0),
    ])
    lab.report.table(['phase', 'µs'], rows)
  }
}

function bodyNames(): BodyName[] {
  return Object.keys(BODIES) as BodyName[] // the keys of a constant
}

function plain({ name, url, apiKey }: RunningTarget): Target {
  return { name, url, apiKey }
}

function spread(summary: Summary): string {
  return `${summary.spreadPercent.toFixed(0)} %`
}
