/**
 * What a change saves. Servers of several checkouts run at the same time under the same load, two of each, and are
 * restarted between rounds, because equal processes differ by 3 %. `bun bench/pair.ts RESTARTS FOLDER FOLDER...`; the
 * first folder is the baseline. `FOLDER+capture` runs while everything is captured; `FOLDER+chat` and `FOLDER+messages`
 * get the same conversation on `/v1/chat/completions` and `/v1/messages`.
 */
import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { isDialect } from './conversation.ts'
import type { ThroughputResult } from './driver.ts'
import { cpuMs, mainThreadMs, runCommand } from './processes.ts'
import { mean } from './stats.ts'
import {
  makeWorkDir,
  type RunningTarget,
  removeWorkDir,
  seedSluice,
  startSluice,
  startUpstream,
  type Upstream,
} from './targets.ts'

const CLIENTS_EACH = 4
const ROUNDS = 4

/** µs per request. */
type Cost = { cpu: number; main: number }
type Running = { folder: number; target: RunningTarget }

const [restartsText, ...folders] = process.argv.slice(2)
if (!(Number(restartsText) > 1) || folders.length < 2) {
  console.error('Usage: bun bench/pair.ts RESTARTS FOLDER FOLDER...')
  process.exit(2)
}
const workDir = await makeWorkDir()
const upstream = await startUpstream()
try {
  await upstream.setMode({ kind: 'burst', groups: 10 })
  const starts: Cost[][] = []
  for (let n = 0; n < Number(restartsText); n++) starts.push(await costOfOneStart(upstream))
  for (const at of folders.keys()) print(at, starts)
} finally {
  await upstream.stop()
  await removeWorkDir(workDir)
}

function print(at: number, starts: Cost[][]): void {
  const shares = (of: keyof Cost) => starts.map((costs) => costs[at]![of] / costs[0]![of]) // one per folder
  const cpu = mean(starts.map((costs) => costs[at]!.cpu)).toFixed(0)
  const main = mean(shares('main')).toFixed(3)
  console.log(`${folders[at]}: CPU ${cpu} µs/request, × ${withError(shares('cpu'))}; main thread × ${main}`)
}

/** The mean and its standard error, which needs at least two values. */
function withError(values: number[]): string {
  const middle = mean(values)
  const variance = values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (values.length - 1)
  return `${middle.toFixed(3)} ± ${Math.sqrt(variance / values.length).toFixed(3)}`
}

/** The servers of each folder, in order. The first one to start is also the last. */
async function costOfOneStart(upstream: Upstream): Promise<Cost[]> {
  const running: Running[] = []
  try {
    const order = [...folders.keys()]
    for (const folder of [...order, ...order.toReversed()])
      running.push({ folder, target: await getServer(folders[folder]!, upstream) }) // one of its own keys
    await Promise.all(running.map(measured)) // not counted: code is being compiled
    const costs = folders.map(() => ({ cpu: 0, main: 0 }))
    for (let n = 0; n < ROUNDS; n++)
      for (const { folder, cpu, main } of await Promise.all(running.map(measured))) {
        costs[folder]!.cpu += cpu / ROUNDS / 2 // as above, and there are two of each
        costs[folder]!.main += main / ROUNDS / 2
      }
    return costs
  } finally {
    for (const { target } of running) await target.child.stop()
  }
}

async function getServer(folder: string, { url }: Upstream): Promise<RunningTarget> {
  const [checkout, option] = folder.split('+')
  const seed = await seedSluice(['bun', `${checkout}/src/main.ts`], url, workDir)
  if (option === 'capture') await captureAll(seed.dataDir)
  return startSluice(seed)
}

/** As if a user had started a capture of its key. */
async function captureAll(dataDir: string): Promise<void> {
  using db = new Database(join(dataDir, 'sluice.db'), { readonly: true })
  const { id: keyId } = db.query('SELECT id FROM api_keys').get() as { id: string } // as: the one that was seeded
  const at = Date.now()
  const times = { startedAt: at, endsAt: at + 3_600_000, endedAt: null, endReason: null }
  const sizes = { maxBytes: 2 ** 32, bytes: 0, requests: 0, droppedBytes: 0 }
  const capture = { id: 'cap_bench', keyId, accountId: null, startedBy: { id: 'cli', name: null }, ...times, ...sizes }
  await Bun.write(join(dataDir, 'captures/cap_bench/capture.json'), JSON.stringify(capture))
}

async function measured({ folder, target: { url, apiKey, child } }: Running): Promise<Cost & { folder: number }> {
  const before = { cpu: cpuMs(child.pid), main: mainThreadMs(child.pid) }
  const target = { name: 'sluice', url, apiKey }
  const [, option] = folders[folder]!.split('+')
  const load = { body: '2kb', ...(isDialect(option) && { dialect: option }) }
  const job = { kind: 'throughput', target, ...load, clients: CLIENTS_EACH, warmupMs: 300, durationMs: 3000 }
  const result = JSON.parse(await runCommand(['bun', 'bench/driver.ts', JSON.stringify(job)], {})) as ThroughputResult // the driver's own
  if (result.failures > 0) throw new Error(`${url}: ${result.failures} failures, first: ${result.firstFailure}`)
  const perRequest = (ms: number) => (ms * 1000) / result.total
  return {
    folder,
    cpu: perRequest(cpuMs(child.pid) - before.cpu),
    main: perRequest(mainThreadMs(child.pid) - before.main),
  }
}
