/** What fifty dashboards that listen for changes take of the server's memory. */
import type { BigFolder } from './dashboard-seed.ts'
import { type DashboardServer, startDashboard } from './dashboard-server.ts'
import type { Lab } from './lab.ts'
import { rssBytes } from './processes.ts'
import { megabytes } from './report.ts'
import { percentile } from './stats.ts'
import { COLLECTS } from './targets.ts'

const STREAMS = 50
const TARGET_MB = 10
/** Of one person at one address there may be eight. */
const EACH = 5

/** After some use, so that the code for streams and pages is there; the second fifty show what is kept of the first. */
export async function measureLive(lab: Lab, folder: BigFolder): Promise<void> {
  lab.report.heading(`${STREAMS} event streams`)
  const server = await startDashboard(folder, COLLECTS)
  try {
    await useOnce(server)
    const rest = await settledRss(server)
    const rows: string[][] = []
    for (const round of [1, 2]) {
      const close = await openStreams(server, STREAMS)
      const open = await settledRss(server)
      close()
      const after = await settledRss(server)
      rows.push([`${round}`, megabytes(rest), megabytes(open), megabytes(after), megabytes(open - rest)])
      if (round === 1) lab.report.check(`${STREAMS} event streams`, (open - rest) / 1e6, '<=', TARGET_MB, ' MB')
    }
    lab.report.table(['round', 'RSS at rest', 'open', 'closed again', 'growth'], rows)
  } finally {
    await server.stop()
  }
}

const useOnce = async (server: DashboardServer): Promise<void> => {
  for (const path of ['/dashboard', '/logs', '/accounts', '/dashboard']) await server.visit(path)
  const close = await openStreams(server, 2)
  await Bun.sleep(2000)
  close()
}

/** Each has had its first message when this resolves. Returns what closes them all. */
async function openStreams({ url, cookie }: DashboardServer, count: number): Promise<() => void> {
  const stop = new AbortController()
  const open = async (n: number) => {
    const headers = { cookie, accept: 'text/event-stream', 'x-forwarded-for': `10.9.0.${1 + Math.floor(n / EACH)}` }
    const response = await fetch(`${url}/api/events`, { headers, signal: stop.signal })
    const reader = response.body?.getReader()
    if (response.status !== 200 || !reader) throw new Error(`/api/events answered ${response.status}`)
    await reader.read()
    void drain(reader)
  }
  await Promise.all(Array.from({ length: count }, (_, n) => open(n)))
  return () => stop.abort()
}

const drain = async (reader: { read(): Promise<{ done: boolean }> }): Promise<void> => {
  try {
    while (!(await reader.read()).done);
  } catch {
    // closed by this side
  }
}

/** The median over five seconds, after a collection. */
async function settledRss({ pid }: DashboardServer): Promise<number> {
  await Bun.sleep(1000)
  process.kill(pid, 'SIGUSR2')
  await Bun.sleep(1000)
  const samples: number[] = []
  for (let n = 0; n < 20; n++) {
    samples.push(rssBytes(pid))
    await Bun.sleep(250)
  }
  return percentile(
    samples.sort((a, b) => a - b),
    0.5,
  )
}
