/** Memory, many streams, back-pressure, aborted streams and start-up, each on a fresh process beside the floor. */
import type { AbortResult, DrainResult, StreamsResult, ThroughputResult } from './driver.ts'
import type { Lab } from './lab.ts'
import { rssBytes, waitForAnswer } from './processes.ts'
import { megabytes, short } from './report.ts'
import { percentile, summarize } from './stats.ts'
import { launchSluice, type RunningTarget, sluiceCommand } from './targets.ts'

const STREAMS = 1_000
const MB = 1_000_000
const LARGE_BYTES = 50 * MB

type StreamsRound = StreamsResult & {
  target: string
  tickLagMs: number
  idle: number
  kibEach: number
  kibAtPeak: number
}

/**
 * A thousand streams with an event every 100 ms: gaps between events, and memory per stream. Memory is the median of
 * the rounds, because the resting RSS of equal processes differs by some MB; the gap is the worst round.
 */
export async function measureStreams(lab: Lab): Promise<void> {
  const { rounds, streamSeconds } = lab.options
  lab.report.heading(`${STREAMS} streams at once, one event each 100 ms, ${rounds} rounds of ${streamSeconds} s`)
  const seen: StreamsRound[] = []
  for (let n = 0; n < rounds; n++)
    for (const start of lab.fresh) {
      const target = await start()
      seen.push(await streamsRound(lab, target))
      await target.child.stop()
    }
  const byTarget = Map.groupBy(seen, ({ target }) => target)
  const columns = ['target', 'open', 'broken', 'p99 gap ms', 'max gap ms', 'gaps > 200 ms', 'own timer lag ms']
  lab.report.table(
    [...columns, 'idle RSS', 'KiB each', 'least', 'most', 'at peak'],
    [...byTarget].map(([name, its]) => [name, ...streamsRow(its)]),
  )
  const ours = byTarget.get('sluice')
  if (ours) checkStreams(lab, ours)
}

async function streamsRound(lab: Lab, target: RunningTarget): Promise<StreamsRound> {
  const idle = await idleAfterWarmup(lab, target)
  await lab.upstream.setMode({ kind: 'slow', intervalMs: 100, events: 0 })
  await lab.upstream.stats()
  const durationMs = lab.options.streamSeconds * 1000
  const load = { count: STREAMS, rampMs: 3_000, settleMs: 2_000, durationMs }
  const memory = sampleRss(target, 5_500, durationMs - 500)
  const result = await lab.drive<StreamsResult>({ kind: 'streams', target: plain(target), ...load })
  const { tickLagMs } = await lab.upstream.stats()
  const { median, peak } = await memory
  const kibOver = (rss: number) => (rss - idle) / STREAMS / 1024
  return { ...result, target: target.name, tickLagMs, idle, kibEach: kibOver(median), kibAtPeak: kibOver(peak) }
}

function streamsRow(rounds: StreamsRound[]): string[] {
  const all = (value: (round: StreamsRound) => number) => summarize(rounds.map(value))
  const sum = (value: (round: StreamsRound) => number) => rounds.reduce((total, round) => total + value(round), 0)
  const kib = all(({ kibEach }) => kibEach)
  return [
    `${all(({ opened }) => opened).min}`,
    `${all(({ broken }) => broken).max}`,
    all(({ p99GapMs }) => p99GapMs).median.toFixed(0),
    all(({ maxGapMs }) => maxGapMs).max.toFixed(0),
    `${sum(({ gapsOver200Ms }) => gapsOver200Ms)} of ${sum(({ events }) => events)}`,
    `driver ${all(({ driverLagMs }) => driverLagMs).max.toFixed(0)}, upstream ${all(({ tickLagMs }) => tickLagMs).max.toFixed(0)}`,
    megabytes(all(({ idle }) => idle).median),
    ...[kib.median, kib.min, kib.max, all(({ kibAtPeak }) => kibAtPeak).max].map((value) => value.toFixed(1)),
  ]
}

function checkStreams(lab: Lab, rounds: StreamsRound[]): void {
  const open = Math.min(...rounds.map(({ opened, broken }) => opened - broken))
  const gap = Math.max(...rounds.map(({ maxGapMs }) => maxGapMs))
  const { median } = summarize(rounds.map(({ kibEach }) => kibEach))
  lab.report.check('streams open', open, '>=', STREAMS, '')
  lab.report.check('longest gap between two events of a stream', gap, '<=', 200, ' ms')
  lab.report.check('memory per stream', median, '<=', 45, ' KiB')
}

/** A long response to a client that reads 1 MB/s: the proxy must not buffer what the client has not read. */
export async function measureBackpressure(lab: Lab): Promise<void> {
  lab.report.heading(`${LARGE_BYTES / MB} MB answer, client reads 1 MB/s, ${lab.options.drainSeconds} s`)
  const rows: string[][] = []
  for (const start of lab.fresh) {
    const target = await start()
    const idle = await idleAfterWarmup(lab, target)
    await lab.upstream.setMode({ kind: 'large', bytes: LARGE_BYTES })
    const durationMs = lab.options.drainSeconds * 1000
    const memory = sampleRss(target, 0, durationMs - 500)
    const early = Bun.sleep(Math.min(5_000, durationMs - 500)).then(() => lab.upstream.stats())
    const result = await lab.drive<DrainResult>({
      kind: 'drain',
      target: plain(target),
      bytesPerSecond: MB,
      durationMs,
    })
    if (result.failure) throw new Error(`${target.name}: ${result.failure}`)
    const growth = (await memory).peak - idle
    const sentEarly = (await early).largeBytesWritten
    const whole = result.complete ? 'whole answer' : 'stopped early'
    rows.push([target.name, megabytes(result.bytes), whole, megabytes(sentEarly), megabytes(growth)])
    if (target.name === 'sluice') {
      lab.report.check('memory under back-pressure', growth / MB, '<=', 20, ' MB')
    }
    await target.child.stop()
  }
  lab.report.table(['target', 'read', '', 'sent by upstream in 5 s', 'RSS growth at peak'], rows)
}

/** Two rounds of streams closed at their first bytes. The second must not leave more memory behind than the first. */
export async function measureAborts(lab: Lab): Promise<void> {
  const count = lab.options.aborts
  lab.report.heading(`${count} aborted streams, twice`)
  lab.report.note('no collection can be forced from outside: RSS is the lowest seen in 10 s of rest after each round')
  const rows: string[][] = []
  for (const start of lab.fresh) {
    const target = await start()
    await lab.upstream.setMode({ kind: 'slow', intervalMs: 100, events: 0 })
    const first = await abortRound(lab, target, count)
    const second = await abortRound(lab, target, count)
    const growth = second.rss - first.rss
    const cells = [first.sockets, second.sockets, first.streams + second.streams].map(String)
    rows.push([target.name, `${short(second.seconds)} s`, ...cells, megabytes(first.rss), megabytes(second.rss)])
    if (target.name === 'sluice') {
      lab.report.check('connections of turns added by the second round', second.sockets - first.sockets, '<=', 0, '')
      lab.report.check('upstream streams still open', second.streams, '<=', 0, '')
      lab.report.check('memory added by the second round', growth / MB, '<=', 15, ' MB')
    }
    await target.child.stop()
  }
  lab.report.table(['target', 'took', 'connections after 1', 'after 2', 'streams left', 'RSS after 1', 'after 2'], rows)
}

async function abortRound(lab: Lab, target: RunningTarget, count: number) {
  const result = await lab.drive<AbortResult>({ kind: 'abort', target: plain(target), count, concurrency: 100 })
  if (result.failures > 0) throw new Error(`${target.name}: ${result.failures} failures, first: ${result.firstFailure}`)
  const rss = await settledRss(target, 10_000)
  const { turnSockets, openStreams } = await lab.upstream.stats()
  return { rss, sockets: turnSockets, streams: openStreams, seconds: result.seconds }
}

/**
 * RSS some time after the start. For the executable twice: read from disk, and right after it was written, when the
 * page cache has it in larger pieces of which the kernel maps more (4 MB). The first is the case after a restart of the
 * machine.
 */
export async function measureIdle(lab: Lab): Promise<void> {
  const { rounds, useBinary } = lab.options
  lab.report.heading(`idle memory, 5 s after the start, ${rounds} rounds, MB`)
  const files = useBinary ? [readFromDisk, justWritten] : [{ name: '', prepare: () => {} }]
  const cells = new Map<string, number[]>()
  for (let n = 0; n < rounds; n++)
    for (const [at, start] of lab.fresh.entries())
      for (const file of at === 0 ? files.slice(0, 1) : files) {
        file.prepare()
        const target = await start()
        await Bun.sleep(5_000)
        const name = target.name === 'sluice' ? target.name + file.name : target.name
        cells.set(name, [...(cells.get(name) ?? []), rssBytes(target.child.pid) / MB])
        await target.child.stop()
      }
  lab.report.table(
    ['target', 'median', 'least', 'most'],
    [...cells].map(([name, samples]) => {
      const { median, min, max } = summarize(samples)
      return [name, ...[median, min, max].map((value) => value.toFixed(1))]
    }),
  )
  const ours = cells.get('sluice')
  if (ours) lab.report.check('idle memory', summarize(ours).median, '<=', 65, ' MB')
}

const BINARY = 'dist/sluice'

const readFromDisk = {
  name: '',
  /** `dd` with a count of zero drops the file from the page cache. */
  prepare: () => void Bun.spawnSync(['sh', '-c', `sync ${BINARY}; dd if=${BINARY} iflag=nocache count=0 status=none`]),
}

const justWritten = {
  name: ', file just written',
  prepare: () => void Bun.spawnSync(['sh', '-c', `cp ${BINARY} ${BINARY}.copy && mv ${BINARY}.copy ${BINARY}`]),
}

/** From the start of the process to its first response, including the re-exec, on a seeded data folder. */
export async function measureStart(lab: Lab): Promise<void> {
  lab.report.heading(`first answer after the start, ${lab.options.rounds} rounds, ms`)
  const rows: string[][] = []
  for (const kind of ['binary', 'source'] as const) {
    const command = sluiceCommand(kind)
    if (!command || !lab.seed) {
      lab.report.note(`${kind} not measured: ${kind === 'binary' ? 'dist/sluice' : 'src/main.ts'} is missing`)
      continue
    }
    const samples: number[] = []
    for (let n = 0; n < lab.options.rounds; n++) {
      const started = performance.now()
      const child = launchSluice({ ...lab.seed, command })
      await waitForAnswer(`${child.url}/health`, 15_000)
      samples.push(performance.now() - started)
      await child.stop()
    }
    const { median, min, max } = summarize(samples)
    rows.push([kind, median.toFixed(0), min.toFixed(0), max.toFixed(0)])
    if (kind === 'binary') lab.report.check('first answer of the binary', median, '<=', 200, ' ms')
  }
  lab.report.table(['', 'median', 'fastest', 'slowest'], rows)
}

/**
 * Resting memory after a second of ordinary requests, when code is compiled and the heap has its working size, so that
 * later growth belongs to the streams. `measureIdle` measures a process that has served nothing.
 */
async function idleAfterWarmup(lab: Lab, target: RunningTarget): Promise<number> {
  await lab.upstream.setMode({ kind: 'burst', groups: 10 })
  const load = {
    kind: 'throughput',
    target: plain(target),
    body: '2kb',
    clients: 2,
    warmupMs: 0,
    durationMs: 1_000,
  } as const
  await lab.drive<ThroughputResult>(load)
  return settledRss(target, 5_000)
}

/** The lowest RSS seen while the process rests. */
async function settledRss(target: RunningTarget, restMs: number): Promise<number> {
  const end = performance.now() + restMs
  let lowest = Number.POSITIVE_INFINITY
  while (performance.now() < end) {
    await Bun.sleep(250)
    lowest = Math.min(lowest, rssBytes(target.child.pid))
  }
  return lowest
}

async function sampleRss(target: RunningTarget, delayMs: number, durationMs: number) {
  await Bun.sleep(delayMs)
  const samples: number[] = []
  const end = performance.now() + durationMs
  while (performance.now() < end) {
    samples.push(rssBytes(target.child.pid))
    await Bun.sleep(100)
  }
  samples.sort((a, b) => a - b)
  return { median: percentile(samples, 0.5), peak: percentile(samples, 1) }
}

function plain({ name, url, apiKey }: RunningTarget) {
  return { name, url, apiKey }
}
