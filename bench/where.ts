/** Where the main thread's time goes while turns run: stacks are sampled and told apart by whose code is innermost in them. */
import { rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { DriverJob, ThroughputResult } from './driver.ts'
import type { Lab } from './lab.ts'
import { BODIES, type BodyName } from './payload.ts'
import { mainThreadMs } from './processes.ts'
import type { Sampled } from './profiled.ts'
import { type RunningTarget, seedSluice, startFloor, startSluice } from './targets.ts'

const CLIENTS = 16
/** Until the compiler has done its work. */
const WARM_UP_MS = 3000
const SECONDS = 6

/** A sample belongs to the innermost of its frames that is named here; what helps everybody (`src/lib`) counts for its caller. */
const PARTS: readonly (readonly [part: string, frame: RegExp])[] = [
  ['fetch', /^fetch$/],
  ['bytes to the client', /^(onReadStreamIntoSinkChunk|readStreamIntoSink)$/],
  ['the ledger: 2 rows, sums, commits', /^bun:sqlite|^src\/proxy\/ledger|^db\/|request-spans/],
  ['upstream: headers, answer read', /^src\/upstream\//],
  ['events told apart, passed on', /^src\/(lib\/sse|proxy\/(meter|flow|first-events|contracts|event-stream|pulse))\./],
  ['router, gate, key', /\/hono\/|^src\/(gateway|http\/|auth\/|model\/(key-ring|api-keys)\.)/],
  [
    'body: read, parsed, checked',
    /^src\/(lib\/json-(members|bounds)|proxy\/(raw-body|single-members|body-bounds|splice))\./,
  ],
  ['selection, affinity', /^src\/proxy\/(select|policies|pool|affinity|continuity|rate-headers)\./],
  ['limits, settling, counts', /^src\/(model\/(reservations|pricing)|proxy\/(admit|settle|key-policy)|ops\/)/],
  ['turn, attempt, answer', /^src\/(proxy|server)/],
  ["the floor's own", /^bench\/floor/],
]
const RUNTIME = 'runtime: loop, HTTP, promises, collector'

type Place = { perTurnUs: number; parts: Map<string, number> }

/** A fresh process of the floor and of Sluice for each size. From the source only: the binary has one file. */
export async function measureWhere(lab: Lab): Promise<void> {
  const { seed } = lab
  if (!seed || lab.options.useBinary) return lab.report.note('where: sampled from the source only')
  await lab.upstream.setMode({ kind: 'burst', groups: 10 })
  const file = join(lab.workDir, 'profile.json')
  const env = {
    BUN_OPTIONS: '--preload ./bench/profiled.ts',
    BENCH_PROFILE_FILE: file,
    BENCH_PROFILE_SECONDS: String(SECONDS),
  }
  for (const body of Object.keys(BODIES) as BodyName[]) {
    const floor = await sampled(lab, await startFloor(lab.upstream, env), { body, file })
    const fresh = await seedSluice(seed.command, lab.upstream.url, dirname(seed.dataDir))
    const sluice = await sampled(lab, await startSluice(fresh, env), { body, file })
    print(lab, body, { floor, sluice })
  }
}

async function sampled(
  lab: Lab,
  { name, url, apiKey, child }: RunningTarget,
  { body, file }: { body: BodyName; file: string },
): Promise<Place> {
  rmSync(file, { force: true })
  const durationMs = (SECONDS + 2) * 1000
  const target = { name, url, apiKey }
  const job: DriverJob = { kind: 'throughput', target, body, clients: CLIENTS, warmupMs: WARM_UP_MS, durationMs }
  const driven = lab.drive<ThroughputResult>(job)
  await Bun.sleep(WARM_UP_MS + 500)
  process.kill(child.pid, 'SIGUSR2')
  const before = { ms: mainThreadMs(child.pid), at: performance.now() }
  await Bun.sleep(SECONDS * 1000)
  const coreMs = (mainThreadMs(child.pid) - before.ms) / (performance.now() - before.at)
  const { perSecond, failures, firstFailure } = await driven
  if (failures > 0) throw new Error(`${name}: ${failures} failures, first: ${firstFailure}`)
  while (!(await Bun.file(file).exists())) await Bun.sleep(50)
  const stacks = (await Bun.file(file).json()) as Sampled[] // as: written by profiled.ts
  await child.stop()
  return { perTurnUs: (coreMs * 1e6) / perSecond, parts: getShares(stacks) }
}

const getShares = (stacks: readonly Sampled[]): Map<string, number> => {
  const shares = new Map<string, number>()
  const total = stacks.reduce((sum, { samples }) => sum + samples, 0)
  for (const { frames, samples } of stacks) {
    const part = getPart(frames)
    shares.set(part, (shares.get(part) ?? 0) + samples / total)
  }
  return shares
}

const getPart = (frames: readonly string[]): string => {
  for (const frame of frames) {
    const found = PARTS.find(([, pattern]) => pattern.test(frame))
    if (found) return found[0]
  }
  return RUNTIME
}

function print(lab: Lab, body: BodyName, { floor, sluice }: Record<'floor' | 'sluice', Place>): void {
  lab.report.heading(`where a turn's time goes, ${CLIENTS} clients, ${BODIES[body] / 1000} KB request, main thread, µs`)
  const us = ({ perTurnUs, parts }: Place, part: string) => (parts.get(part) ?? 0) * perTurnUs
  const names = [RUNTIME, ...PARTS.map(([part]) => part)]
  const rows = names.map((part) => [part, us(floor, part).toFixed(0), us(sluice, part).toFixed(0)])
  rows.push(['together', floor.perTurnUs.toFixed(0), sluice.perTurnUs.toFixed(0)])
  lab.report.table(['part', 'floor', 'sluice'], rows)
}
