/** The server's response time for every page of a large folder, and the size of the first page. */
import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { getFolderPaths, type Ids, KINDS, type Kind, type Place } from './dashboard-places.ts'
import type { BigFolder } from './dashboard-seed.ts'
import { type DashboardServer, startDashboard, type Visit } from './dashboard-server.ts'
import type { Lab } from './lab.ts'
import { percentile } from './stats.ts'

const TARGET_MS: Record<Kind, number | null> = { page: 25, 'filtered log': 80, 'long report': null, JSON: 25 }
const FIRST_PAGE_BYTES = 60 * 1024
const HTML_BYTES = 40 * 1024

/** Visits all pages in turn, round by round, so that other load on the machine affects all of them equally. */
export async function measurePages(lab: Lab, folder: BigFolder): Promise<void> {
  const places = getFolderPaths(getIds(folder)).filter(({ path }) => lab.options.paths?.test(path) ?? true)
  const server = await startDashboard(folder)
  await Bun.sleep(5000) // users do not open the dashboard in the second in which the server starts
  try {
    const visits = new Map<Place, Visit[]>(places.map((place) => [place, []]))
    for (let round = 0; round < lab.options.visits; round++)
      for (const place of places) visits.get(place)?.push(await visit(server, place))
    for (const kind of KINDS)
      show(
        lab,
        kind,
        [...visits].filter(([place]) => place.kind === kind),
      )
    await measureWeight(lab, server)
  } finally {
    await server.stop()
  }
}

const visit = (server: DashboardServer, { path, kind, isStranger }: Place): Promise<Visit> =>
  server.visit(path, { ...(kind === 'JSON' && { accept: 'application/json' }), ...(isStranger && { cookie: '' }) })

/** CPU time of the visit, an upper bound of the server's own time whatever else used the cores. */
const ownMs = ({ ms, coreMs }: Visit): number => (coreMs < 0 ? ms : Math.min(ms, coreMs)) // the counts of an ended thread are lost

function show(lab: Lab, kind: Kind, visits: readonly (readonly [Place, Visit[]])[]): void {
  if (visits.length === 0) return
  lab.report.heading(`${kind}s, server time of ${lab.options.visits} visits each, ms`)
  const measured = visits.map(([{ path }, of]) => {
    const sorted = (value: (visit: Visit) => number) => of.map(value).sort((a, b) => a - b)
    const [own, wall] = [sorted(ownMs), sorted(({ ms }) => ms)]
    const first = of[0]
    return {
      path,
      p95: percentile(own, 0.95),
      cells: [
        first ? ownMs(first) : Number.NaN,
        percentile(own, 0.5),
        percentile(own, 0.95),
        percentile(own, 1),
        percentile(wall, 0.5),
        percentile(wall, 0.95),
        (first?.body.length ?? 0) / 1024,
      ].map((value) => value.toFixed(1)),
    }
  })
  measured.sort((a, b) => b.p95 - a.p95)
  lab.report.table(
    [kind, 'first', 'p50', 'p95', 'max', 'p50 with waits', 'p95 with waits', 'KiB'],
    measured.map(({ path, cells }) => [path.slice(0, 90), ...cells]),
  )
  const target = TARGET_MS[kind]
  if (target === null) {
    lab.report.note('no target is set for these; they are read in a thread of their own')
    return
  }
  lab.report.check(`slowest ${kind}, p95`, measured[0]?.p95 ?? 0, '<=', target, ' ms')
  const over = measured.filter(({ p95 }) => p95 > target).length
  if (over > 0) lab.report.note(`${over} of ${measured.length} are over`)
}

/** Including the styles and scripts that a browser loads on its first visit. */
async function measureWeight(lab: Lab, server: DashboardServer): Promise<void> {
  lab.report.heading('weight of the first page')
  for (const path of ['/login', '/dashboard']) {
    const headers = { accept: 'text/html', ...(path !== '/login' && { cookie: server.cookie }) }
    const html = await (await fetch(server.url + path, { headers })).text()
    const assets = [...html.matchAll(/(?:href|src)="(\/assets\/[^"]+\.(?:css|js))"/g)].flatMap(([, file]) => file ?? [])
    let bytes = Bun.gzipSync(html).byteLength // a reverse proxy does this; the server sends pages uncompressed
    for (const file of new Set(assets)) bytes += await packedBytes(server.url + file)
    lab.report.check(
      `${path} with ${new Set(assets).size} files, packed`,
      bytes / 1024,
      '<=',
      FIRST_PAGE_BYTES / 1024,
      ' KiB',
    )
    lab.report.check(`${path}, HTML`, Buffer.byteLength(html) / 1024, '<=', HTML_BYTES / 1024, ' KiB')
  }
}

async function packedBytes(url: string): Promise<number> {
  const response = await fetch(url, { headers: { 'accept-encoding': 'gzip' }, decompress: false })
  return (await response.arrayBuffer()).byteLength
}

function getIds({ dataDir, accountIds, keyIds, sizes }: BigFolder): Ids {
  const sqlite = new Database(join(dataDir, 'sluice.db'), { readonly: true })
  const row = (tail: string) =>
    sqlite
      .query<{ id: string; request_id: string; started_at: number; conversation_hash: string }, []>(
        `SELECT id, request_id, started_at, conversation_hash FROM requests ${tail}`,
      )
      .get() ?? { id: '', request_id: '', started_at: 0, conversation_hash: '' }
  const failed = row("WHERE status = 'error' ORDER BY started_at DESC LIMIT 1")
  const place = ({ id, started_at: startedAt }: ReturnType<typeof row>) => ({ id, startedAt })
  const ids = {
    account: accountIds[0] ?? '',
    key: keyIds[0] ?? '',
    request: failed.id,
    requestId: failed.request_id,
    conversation: failed.conversation_hash,
    middle: place(row(`ORDER BY started_at LIMIT 1 OFFSET ${Math.floor(sizes.rows / 2)}`)),
    end: place(row(`ORDER BY started_at LIMIT 1 OFFSET ${Math.floor(sizes.rows / 1000)}`)),
  }
  sqlite.close()
  return ids
}
