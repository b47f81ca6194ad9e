/** How long background work blocks the event loop: reports, exports, a backup, a deleted account, retention. */
import { rmSync } from 'node:fs'
import { cp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { BigFolder } from './dashboard-seed.ts'
import { type DashboardServer, startDashboard } from './dashboard-server.ts'
import type { ThroughputResult } from './driver.ts'
import type { Lab } from './lab.ts'
import { LAG_TARGET_MS, type Lag } from './lag.ts'
import { runCommand } from './processes.ts'

/** Deletes a third of the log. */
const KEPT_DAYS = 20
const DAY_MS = 86_400_000
/** The baseline: no background work. */
const YARDSTICKS = ['ten seconds of nothing', 'turns']

/** On a copy, because it deletes rows. */
export async function measureLoop(lab: Lab, big: BigFolder): Promise<void> {
  const dataDir = `${big.dataDir}-copy`
  await cp(big.dataDir, dataDir, { recursive: true })
  await runCommand(['sync'], {}) // otherwise the first commits wait for a checkpoint of two gigabytes
  try {
    await measureCopy(lab, { ...big, dataDir })
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
}

async function measureCopy(lab: Lab, folder: BigFolder): Promise<void> {
  lab.report.heading('longest hold of the event loop, ms')
  const file = join(folder.dataDir, '..', 'lag.json')
  const server = await startDashboard(folder, { BUN_OPTIONS: '--preload ./bench/lag-report.ts', BENCH_LAG_FILE: file })
  const rows: [string, number, Lag][] = []
  const during = async (name: string, work: () => Promise<unknown>) => {
    await getLag(server, file)
    const startedAt = performance.now()
    await work()
    const seconds = (performance.now() - startedAt) / 1000
    rows.push([name, seconds, await getLag(server, file)])
  }
  try {
    await Bun.sleep(5000)
    for (const [name, work] of Object.entries(worksOn(lab, server, folder))) await during(name, work)
  } finally {
    await server.stop()
  }
  const upkeep = await runCommand(['bun', 'bench/upkeep.ts', join(folder.dataDir, 'sluice.db'), `${KEPT_DAYS}`], {})
  const { removed, seconds, lag } = JSON.parse(upkeep) as { removed: number; seconds: number; lag: Lag } // as: its own format
  rows.push([`retention of ${removed} turns`, seconds, lag])
  lab.report.table(
    ['during', 'seconds', 'looks', 'longest', 'of its own', 'on a core', `own over ${LAG_TARGET_MS}`],
    rows.map(([name, took, { looks, longestMs, ownMs, coreMs, overTarget }]) => [
      name,
      ...[took.toFixed(1), `${looks}`, longestMs.toFixed(1), ownMs.toFixed(1), coreMs.toFixed(1), `${overTarget}`],
    ]),
  )
  lab.report.note('the rest of its own is waiting for the disk, which other processes may be using')
  for (const [name, , { coreMs }] of rows.filter(([name]) => !YARDSTICKS.includes(name)))
    lab.report.check(`the loop during ${name}, on a core`, coreMs, '<=', LAG_TARGET_MS, ' ms')
}

const worksOn = (lab: Lab, server: DashboardServer, folder: BigFolder): Record<string, () => Promise<unknown>> => {
  const json = { accept: 'application/json' }
  const daysAgo = (days: number) => new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10)
  const each = async (paths: string[], headers?: Record<string, string>) => {
    for (const path of paths) await server.visit(path, headers)
  }
  return {
    'ten seconds of nothing': () => Bun.sleep(10_000),
    'reports over two years': () =>
      each(
        Array.from({ length: 5 }, () => `/api/reports?start_date=${daysAgo(729)}`),
        json,
      ),
    'a CSV file of 90 days': () => each([`/api/reports?format=csv&start_date=${daysAgo(89)}`], json),
    'searches of the log': () =>
      each(
        Array.from({ length: 5 }, () => '/logs?search=nowhere+to+be+found'),
        json,
      ),
    'table sizes': () => each(['/settings/data/sizes']),
    metrics: () => each(['/metrics', '/metrics']),
    'an account deleted with its history': () => deleteWithHistory(server, folder.accountIds.at(-1) ?? ''),
    turns: () => takeTurns(lab, server, folder),
    'a backup among turns': () => Promise.all([takeTurns(lab, server, folder), server.send('POST', '/api/backups')]),
  }
}

/** A hundred requests a second, so that the log is written continuously. */
const takeTurns = async (lab: Lab, { url }: DashboardServer, { apiKey }: BigFolder): Promise<void> => {
  await lab.upstream.setMode({ kind: 'slow', intervalMs: 10, events: 20 })
  const target = { name: 'sluice', url, apiKey }
  const job = { kind: 'throughput', target, body: '2kb', clients: 20, warmupMs: 0, durationMs: 20_000 } as const
  const { failures, firstFailure } = await lab.drive<ThroughputResult>(job)
  if (failures > 0) throw new Error(`${failures} failures, first: ${firstFailure}`)
}

const deleteWithHistory = async (server: DashboardServer, id: string): Promise<void> => {
  await server.send('DELETE', `/api/accounts/${id}?delete_history=true`)
  const path = `/api/request-logs?accountId=${id}&limit=1`
  while ((JSON.parse((await server.visit(path)).body) as { requests: unknown[] }).requests.length > 0)
    // as: its documented shape
    await Bun.sleep(500)
}

async function getLag(server: DashboardServer, file: string): Promise<Lag> {
  rmSync(file, { force: true })
  process.kill(server.pid, 'SIGUSR1')
  while (!(await Bun.file(file).exists())) await Bun.sleep(5)
  return (await Bun.file(file).json()) as Lag // as: written by lag-report.ts
}
