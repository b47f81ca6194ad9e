/**
 * What a change saves: servers of several checkouts run at the same time under the same load, so that whatever else the
 * machine does meets all of them alike. `bun bench/pair.ts ROUNDS FOLDER FOLDER...`, the first being what the others are compared with.
 */
import type { ThroughputResult } from './driver.ts'
import { cpuMs, mainThreadMs, runCommand } from './processes.ts'
import { summarize } from './stats.ts'
import {
  makeWorkDir,
  type RunningTarget,
  removeWorkDir,
  seedSluice,
  startSluice,
  startUpstream,
  type Upstream,
} from './targets.ts'

const CLIENTS_EACH = 8

/** µs a request. */
type Round = { cpu: number; main: number }
type Compared = { folder: string; target: RunningTarget; rounds: Round[] }

const [roundsText, ...folders] = process.argv.slice(2)
if (!(Number(roundsText) > 0) || folders.length < 2) {
  console.error('Usage: bun bench/pair.ts ROUNDS FOLDER FOLDER...')
  process.exit(2)
}
const workDir = await makeWorkDir()
const upstream = await startUpstream()
const all: Compared[] = []
try {
  await upstream.setMode({ kind: 'burst', groups: 10 })
  for (const folder of folders) all.push({ folder, target: await serverOf(folder, upstream), rounds: [] })
  await Promise.all(all.map(measured)) // not counted: compiling
  for (let n = 0; n < Number(roundsText); n++) {
    const round = await Promise.all(all.map(measured))
    for (const [at, { rounds }] of all.entries()) rounds.push(round[at]!) // one for each
  }
  for (const one of all) print(one, all[0]!) // there are two
} finally {
  for (const { target } of all) await target.child.stop()
  await upstream.stop()
  await removeWorkDir(workDir)
}

function print({ folder, rounds }: Compared, base: Compared): void {
  const times = (of: keyof Round) =>
    summarize(rounds.map((round, at) => round[of] / base.rounds[at]![of])).median.toFixed(3) // as many
  const cpu = summarize(rounds.map((round) => round.cpu)).median.toFixed(0)
  console.log(`${folder}: CPU ${cpu} µs/request, × ${times('cpu')}; main thread × ${times('main')}`)
}

async function serverOf(folder: string, { url }: Upstream): Promise<RunningTarget> {
  return startSluice(await seedSluice(['bun', `${folder}/src/main.ts`], url, workDir))
}

async function measured({ target: { url, apiKey, child } }: Compared): Promise<Round> {
  const before = { cpu: cpuMs(child.pid), main: mainThreadMs(child.pid) }
  const target = { name: 'sluice', url, apiKey }
  const job = { kind: 'throughput', target, body: '2kb', clients: CLIENTS_EACH, warmupMs: 300, durationMs: 3000 }
  const result = JSON.parse(await runCommand(['bun', 'bench/driver.ts', JSON.stringify(job)], {})) as ThroughputResult // the driver's own
  if (result.failures > 0) throw new Error(`${url}: ${result.failures} failures, first: ${result.firstFailure}`)
  const perRequest = (ms: number) => (ms * 1000) / result.total
  return {
    cpu: perRequest(cpuMs(child.pid) - before.cpu),
    main: perRequest(mainThreadMs(child.pid) - before.main),
  }
}
