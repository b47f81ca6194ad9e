/** Whether turns are served as fast with a full log as with an empty one, and with ten dashboards open as with none. */
import type { TestBrowser } from '../tests/browser/browser.ts'
import { openListeners } from './dashboard-listener.ts'
import { type BigFolder, bigFolder } from './dashboard-seed.ts'
import { type DashboardServer, startDashboard } from './dashboard-server.ts'
import type { ThroughputResult, TtfbResult } from './driver.ts'
import type { Lab } from './lab.ts'
import { cpuMs } from './processes.ts'
import { type Summary, summarize } from './stats.ts'
import { stepBack } from './step-back.ts'

const CLIENTS = 16
/** What ten people look at. */
const PAGES = (accountId: string): string[] => [
  ...['/dashboard', '/dashboard', '/dashboard', '/logs', '/logs', '/accounts', '/accounts'],
  ...[`/accounts/${accountId}`, '/keys', '/reports'],
]
/** Of CPU for a request: more than the rounds differ by among themselves. */
const MAX_CPU = 1.05
/** As many people at work: their turns take as long as those of a model, so cores are left for who looks on. */
const WORKERS = 40
const LIKE_A_MODEL = { kind: 'slow', intervalMs: 10, events: 20 } as const
/** Of their rate, which the upstream sets where nothing is lost. */
const LEAST_RATE = 0.97

interface Cell {
  perSecond: number
  cpuUs: number
  /** Time to the first byte, less that of the upstream itself. */
  addedUs: number
  p99Us: number
  /** Of the workers' turns. */
  turnsPerSecond: number
  turnCpuUs: number
}

interface Arm {
  name: string
  server: DashboardServer
  folder: BigFolder
  /** Opens dashboards. Returns what closes them. */
  open?: () => Promise<() => Promise<void>>
}

/** The same accounts and keys twice, once with nothing in the log. All in turn in each round; ratios are made within a round. */
export async function measureOpen(lab: Lab, folder: BigFolder): Promise<void> {
  const empty = await bigFolder(lab.seed!, { ...folder.sizes, rows: 0 }, lab.workDir)
  const [server, other] = [await startDashboard(folder), await startDashboard(empty)]
  const browser = await launch().catch((err: unknown) => {
    lab.report.note(`no tabs are opened: ${err instanceof Error ? err.message : err}`)
    return null
  })
  const account = folder.accountIds[0] ?? ''
  const arms: Arm[] = [
    { name: 'empty log', server: other, folder: empty },
    { name: 'full log', server, folder },
    { name: 'full log, 10 listeners', server, folder, open: () => openListeners(server, PAGES(account)) },
    ...(browser ? [{ name: 'full log, 10 tabs', server, folder, open: () => openTabs(browser, server, account) }] : []),
  ]
  try {
    await Bun.sleep(5000)
    const rounds: Map<string, Cell>[] = []
    for (let n = -1; n < lab.options.rounds; n++) {
      const cells = new Map<string, Cell>()
      for (const arm of arms) cells.set(arm.name, await measureArm(lab, arm))
      if (n >= 0) rounds.push(cells) // the first is for warming up
    }
    show(lab, arms, rounds)
  } finally {
    await browser?.[Symbol.asyncDispose]()
    await server.stop()
    await other.stop()
  }
}

/** What it needs has a package of its own, which only the tests install. */
const launch = async (): Promise<TestBrowser> => (await import('../tests/browser/browser.ts')).launchBrowser()

async function measureArm(lab: Lab, { server, folder, open }: Arm): Promise<Cell> {
  await lab.upstream.setMode({ kind: 'burst', groups: 10 })
  const close = await open?.()
  const target = { name: 'sluice', url: server.url, apiKey: folder.apiKey }
  const { seconds } = lab.options
  const load = async (clients: number) => {
    const before = cpuMs(server.pid)
    const times = { warmupMs: seconds * 250, durationMs: seconds * 1000 }
    const result = await lab.drive<ThroughputResult>({ kind: 'throughput', target, body: '2kb', clients, ...times })
    if (result.failures > 0) throw new Error(`${result.failures} failures, first: ${result.firstFailure}`)
    return { perSecond: result.perSecond, cpuUs: ((cpuMs(server.pid) - before) * 1000) / result.total }
  }
  const { perSecond, cpuUs } = await load(CLIENTS)
  await lab.upstream.setMode(LIKE_A_MODEL)
  const work = await load(WORKERS)
  await lab.upstream.setMode({ kind: 'burst', groups: 10 })
  const requests = lab.options.firstByteRequests
  const targets = [{ name: 'direct', url: lab.upstream.url, apiKey: 'none' }, target]
  const first = await lab.drive<TtfbResult>({ kind: 'ttfb', targets, body: '2kb', warmup: 50, requests })
  await close?.()
  const addedUs = (first.sluice?.p50Us ?? Number.NaN) - (first.direct?.p50Us ?? Number.NaN)
  const p99Us = first.sluice?.p99Us ?? Number.NaN
  return { perSecond, cpuUs, addedUs, p99Us, turnsPerSecond: work.perSecond, turnCpuUs: work.cpuUs }
}

/** In a profile each, so that every one of them is in front and has a stream of its own. */
async function openTabs(browser: TestBrowser, { url, cookie }: DashboardServer, accountId: string) {
  const [name = '', value = ''] = cookie.split('=')
  const visits = await Promise.all(
    PAGES(accountId).map(async (path) => {
      const visit = await browser.visit(`${url}/login`)
      await visit.page.context().addCookies([{ name, value, url }])
      await visit.page.goto(url + path)
      const tail = visit.page.locator('[data-tail]')
      if ((await tail.count()) > 0) await tail.check()
      return visit
    }),
  )
  stepBack('chrom')
  return async () => {
    for (const visit of visits) await visit[Symbol.asyncDispose]()
  }
}

function show(lab: Lab, arms: readonly Arm[], rounds: readonly Map<string, Cell>[]): void {
  lab.report.heading(`turns beside dashboards, ${CLIENTS} clients, ${rounds.length} rounds`)
  const column = (name: string, value: (cell: Cell) => number): Summary =>
    summarize(rounds.flatMap((round) => round.get(name) ?? []).map(value))
  const ratio = (name: string, to: string, value: (cell: Cell) => number): Summary =>
    summarize(
      rounds.map((round) => {
        const [cell, base] = [round.get(name), round.get(to)]
        return cell && base ? value(cell) / value(base) : Number.NaN
      }),
    )
  const spread = ({ median, min, max }: Summary) => `${median.toFixed(2)} (${min.toFixed(2)}–${max.toFixed(2)})`
  lab.report.table(
    [
      '',
      'median/s',
      '× full log',
      'CPU µs/request',
      '× full log',
      'added p50 µs',
      'p99 µs',
      'turns/s',
      '× full log',
      'CPU µs/turn',
    ],
    arms.map(({ name }) => [
      name,
      column(name, (cell) => cell.perSecond).median.toFixed(0),
      spread(ratio(name, 'full log', (cell) => cell.perSecond)),
      column(name, (cell) => cell.cpuUs).median.toFixed(0),
      spread(ratio(name, 'full log', (cell) => cell.cpuUs)),
      column(name, (cell) => cell.addedUs).median.toFixed(0),
      column(name, (cell) => cell.p99Us).median.toFixed(0),
      column(name, (cell) => cell.turnsPerSecond).median.toFixed(0),
      spread(ratio(name, 'full log', (cell) => cell.turnsPerSecond)),
      column(name, (cell) => cell.turnCpuUs).median.toFixed(0),
    ]),
  )
  lab.report.note(`requests: ${CLIENTS} clients as fast as they can; turns: ${WORKERS}, each of 200 ms`)
  lab.report.note('the browsers get what is left of the cores; still they share caches and memory with who is measured')
  const cpu = (name: string, to: string) => {
    lab.report.check(
      `CPU for a request, ${name} / ${to}`,
      ratio(name, to, (cell) => cell.cpuUs).median,
      '<=',
      MAX_CPU,
      ' ×',
    )
  }
  cpu('full log', 'empty log')
  cpu('full log, 10 listeners', 'full log')
  for (const { name } of arms.slice(2)) {
    const kept = ratio(name, 'full log', (cell) => cell.turnsPerSecond).median
    lab.report.check(`rate of turns, ${name} / full log`, kept, '>=', LEAST_RATE, ' ×')
  }
}
