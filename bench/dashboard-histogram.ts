/** How long the query of the histogram above the log takes on a large folder, on a core or by the clock, whichever is less. */
import { join } from 'node:path'
import { readerDatabase } from '../db/open.ts'
import { logHistogram } from '../src/model/log/request-histogram.ts'
import { LogPageQuery, toLogQuery } from '../src/model/log/request-log-page.ts'
import type { BigFolder } from './dashboard-seed.ts'
import type { Lab } from './lab.ts'
import { percentile } from './stats.ts'

const TARGET_MS = 80
const SIGHT = { scope: 'all' as const, sensitive: true }

export async function measureHistogram(lab: Lab, { dataDir, accountIds, keyIds }: BigFolder): Promise<void> {
  const questions: Record<string, unknown>[] = [
    {},
    ...['1h', '24h', '7d', '30d'].map((range) => ({ range })),
    { accountId: accountIds[0] },
    { apiKeyId: keyIds[0] },
    { model: 'gpt-5.3' },
    { status: 'failed' },
    { status: 'ok' },
    { slow: 'true' },
    { client: 'codex_exec' },
    { search: 'overloaded' },
    { search: 'nowhere to be found' },
    { range: '30d', search: 'nowhere to be found' },
  ]
  const { db, sqlite } = readerDatabase(join(dataDir, 'sluice.db'))
  const now = Date.now()
  try {
    const measured = questions.map((asked) => {
      const query = toLogQuery(LogPageQuery.parse(asked), now)
      const times = Array.from({ length: lab.options.visits }, () => {
        const [start, used] = [performance.now(), process.cpuUsage()]
        logHistogram(db, query, SIGHT, now)
        const { user, system } = process.cpuUsage(used)
        return Math.min(performance.now() - start, (user + system) / 1000)
      }).sort((a, b) => a - b)
      return { name: JSON.stringify(asked), p50: percentile(times, 0.5), p95: percentile(times, 0.95) }
    })
    measured.sort((a, b) => b.p95 - a.p95)
    lab.report.heading(`query of the histogram, ${lab.options.visits} times each, ms`)
    lab.report.table(
      ['filters', 'p50', 'p95'],
      measured.map(({ name, p50, p95 }) => [name, p50.toFixed(1), p95.toFixed(1)]),
    )
    lab.report.check('slowest histogram, p95', measured[0]?.p95 ?? 0, '<=', TARGET_MS, ' ms')
  } finally {
    sqlite.close()
  }
}
