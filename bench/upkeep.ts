/**
 * Retention as the server runs it, on a folder without a server, in its own process: `bun bench/upkeep.ts <database>
 * <days>`.
 */
import { Database } from 'bun:sqlite'
import { writeWith } from '../db/commit.ts'
import { openDatabase } from '../db/open.ts'
import { retain } from '../src/jobs/retention.ts'
import { systemClock } from '../src/lib/clock.ts'
import { DEFAULTS } from '../src/settings/schema.ts'
import { startWriter } from '../src/threads/writer.ts'
import { watchLag } from './lag.ts'

const [, , path = '', days = '0'] = process.argv
const count = (): number => {
  const sqlite = new Database(path, { readonly: true })
  const { n } = sqlite.query<{ n: number }, []>('SELECT count(*) AS n FROM requests').get() ?? { n: 0 }
  sqlite.close()
  return n
}

const before = count()
const { db, sqlite } = openDatabase(path)
const writer = await startWriter(path, (reason) => {
  throw new Error(reason)
})
writeWith(db, writer)
sqlite.close()
const lag = watchLag()
await Bun.sleep(1000)
lag() // discards the lag of the start
const startedAt = performance.now()
const settings = { current: () => ({ ...DEFAULTS, requestLogRetentionDays: Number(days), auditRetentionDays: 7 }) }
await retain({ db, clock: systemClock, settings }, new AbortController().signal)
const seconds = (performance.now() - startedAt) / 1000
const told = lag()
sqlite.close()
await writer.close()
console.log(JSON.stringify({ removed: before - count(), seconds, lag: told }))
process.exit(0)
