/** The reader's worker on a real file: what it sees and rejects, and how it recovers after a deadline. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { commit } from '../../db/commit.ts'
import { type OpenedDatabase, openDatabase } from '../../db/open.ts'
import { requests } from '../../db/schema/requests.ts'
import type { AppError } from '../../src/errors.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createLog } from '../../src/lib/log.ts'
import { LogQuery } from '../../src/model/log/request-log-query.ts'
import { ReportQuery } from '../../src/model/reports/reports.ts'
import { getDatabaseProblem } from '../../src/ops/database-problem.ts'
import { createReader, type Reader } from '../../src/threads/reader.ts'
import { DEADLINE_MS } from '../../src/threads/reader-lane.ts'
import type { FromWorker } from '../../src/threads/reader-worker.ts'
import { ManualClock } from '../support/clock.ts'
import { testDb } from '../support/db.ts'
import { createInlineReader } from '../support/inline-reader.ts'

const START = Date.UTC(2026, 0, 1)

let folder: string
let path: string
let writer: OpenedDatabase
let reader: Reader | null
let lines: string[]

const log = () => createLog({ level: 'debug', format: 'text', now: () => START, write: (line) => lines.push(line) })

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-reader-'))
  path = join(folder, 'sluice.db')
  const { sqlite } = testDb()
  sqlite.run('VACUUM INTO ?', [path])
  writer = openDatabase(path)
  reader = null
  lines = []
})

afterEach(async () => {
  await reader?.stop()
  writer.sqlite.close()
  rmSync(folder, { recursive: true })
})

const addRow = (id: string) =>
  commit(writer.db, async (tx) => {
    await tx
      .insert(requests)
      .values({
        id,
        requestId: id,
        startedAt: START,
        route: '/v1/responses',
        kind: 'normal',
        transport: 'http',
        status: 'ok',
        httpStatus: 200,
        attempts: 1,
        totalMs: 1,
      })
      .run()
  })

const NEWEST = LogQuery.parse({ limit: 5 })
const OPEN = { scope: 'all' as const, sensitive: true }

const getCode = (call: Promise<unknown>) =>
  call.then(
    () => 'answered',
    (error: AppError) => error.code,
  )

test('the worker answers every read and sees each commit', async () => {
  reader = createReader({ path, clock: systemClock, log: log() })
  expect((await reader.requestLogs(NEWEST, OPEN)).requests).toEqual([])
  await addRow('one')
  const query = LogQuery.parse({ search: 'one' })
  const [page, entry, none, options] = await Promise.all([
    reader.requestLogs(query, { scope: 'all', sensitive: false }),
    reader.requestLog('one', { scope: 'all', sensitive: false }),
    reader.requestLog('two', { scope: 'all', sensitive: false }),
    reader.requestLogOptions(query, { scope: 'all' }),
  ])
  expect(page).toMatchObject({ total: 1, requests: [{ id: 'one', requestedAt: '2026-01-01T00:00:00.000Z' }] })
  expect(entry).toMatchObject({ id: 'one', attempts: [] })
  expect(none).toBeNull()
  expect(options.statuses).toEqual(['ok'])
})

test('the inline reader returns the same', async () => {
  await addRow('one')
  reader = createReader({ path, clock: systemClock, log: log() })
  const inline = createInlineReader(writer.db)
  const query = LogQuery.parse({})
  expect(await reader.requestLogs(query, { scope: 'all', sensitive: true })).toEqual(
    await inline.requestLogs(query, { scope: 'all', sensitive: true }),
  )
})

test('a failing query is an error of its call alone', async () => {
  reader = createReader({ path, clock: systemClock, log: log() })
  writer.sqlite.run('ALTER TABLE requests RENAME TO away')
  expect(await getCode(reader.requestLogs(NEWEST, OPEN))).toBe('SQLITE_ERROR')
  writer.sqlite.run('ALTER TABLE away RENAME TO requests')
  expect(await getCode(reader.requestLogs(NEWEST, OPEN))).toBe('answered')
})

test('a damaged database is reported as such', async () => {
  await addRow('one')
  writer.sqlite.run('PRAGMA wal_checkpoint(TRUNCATE)')
  const [page] = writer.sqlite.query<{ at: number; bytes: number }, []>(WHERE_REQUESTS_ARE).all()
  const file = openSync(path, 'r+')
  writeSync(file, new Uint8Array(page?.bytes ?? 0).fill(0xff), 0, page?.bytes, page?.at)
  closeSync(file)
  reader = createReader({ path, clock: systemClock, log: log() })
  const err: unknown = await reader.requestLogs(NEWEST, OPEN).catch((thrown: unknown) => thrown)
  expect(getDatabaseProblem(err, path)?.says).toBe(`${path} is damaged: database disk image is malformed.`)
})

const WHERE_REQUESTS_ARE = `
SELECT (rootpage - 1) * page_size AS at, page_size AS bytes FROM sqlite_schema, pragma_page_size WHERE name = 'requests'`

test('an invalid query fails in the worker as it does inline', async () => {
  reader = createReader({ path, clock: systemClock, log: log() })
  const asked = ReportQuery.parse({ start_date: '2026-02-01', end_date: '2026-01-01' })
  const hiddenFields = { scope: 'all' as const, hidesAccounts: false, hidesKeys: false }
  const inline = createInlineReader(writer.db)
  for (const answers of [reader, inline]) {
    const refused = await answers.report(asked, hiddenFields, START).catch((err: AppError) => err)
    expect(refused).toMatchObject({
      code: 'validation_error',
      status: 422,
      extra: {
        param: 'end_date',
        details: { fields: { end_date: ['choose a day that is not before the first one'] } },
      },
    })
  }
})

test('after the deadline the call is rejected, and queued and later ones are answered', async () => {
  const clock = new ManualClock()
  const deaf = deafWorker()
  const isReady = new Promise((resolve) => deaf.addEventListener('message', resolve))
  const workers = [deaf]
  reader = createReader({ path, clock, log: log(), newWorker: () => workers.shift() ?? realWorker() })
  const slow = getCode(reader.requestLogs(NEWEST, OPEN))
  await isReady
  await clock.advance(1000)
  const behind = getCode(reader.requestLogs(NEWEST, OPEN))
  await clock.advance(DEADLINE_MS - 1000)
  expect([await slow, await behind]).toEqual(['busy', 'answered'])
  expect(lines).toHaveLength(1)
  expect((await reader.requestLogs(NEWEST, OPEN)).requests).toEqual([])
  expect(clock.pending).toBe(0)
})

test('the worker reports once that it can read, before it answers', async () => {
  const worker = realWorker()
  const said: FromWorker[] = []
  worker.addEventListener('message', ({ data }: MessageEvent<FromWorker>) => said.push(data))
  reader = createReader({ path, clock: systemClock, log: log(), newWorker: () => worker })
  await reader.requestLogs(NEWEST, OPEN)
  await reader.requestLogs(NEWEST, OPEN)
  expect(said).toMatchObject([{ kind: 'ready' }, { id: 1 }, { id: 2 }])
})

/** Starts, and answers nothing; without a listener it would end by itself. */
const deafWorker = () => new Worker(URL.createObjectURL(new Blob([DEAF], { type: 'text/javascript' })))
const DEAF = 'self.onmessage = () => {}; self.postMessage({ kind: "ready" })'
const realWorker = () => new Worker(new URL('../../src/threads/reader-worker.ts', import.meta.url).href)

test('a worker that cannot open the file says so immediately, and a later one may succeed', async () => {
  const clock = new ManualClock()
  const later = join(folder, 'later.db')
  reader = createReader({ path: later, clock, log: log() })
  const calls = [reader.requestLogs(NEWEST, OPEN), reader.requestLogs(NEWEST, OPEN)]
  expect(await Promise.all(calls.map(getCode))).toEqual(['SQLITE_CANTOPEN', 'SQLITE_CANTOPEN'])
  expect(clock.pending).toBe(0)
  writer.sqlite.run('VACUUM INTO ?', [later])
  openDatabase(later).sqlite.close()
  expect(await getCode(reader.requestLogs(NEWEST, OPEN))).toBe('answered')
})

test('stopping rejects running reads', async () => {
  const clock = new ManualClock()
  reader = createReader({ path, clock, log: log() })
  const call = getCode(reader.requestLogs(NEWEST, OPEN))
  await reader.stop()
  expect(await call).toBe('busy')
  expect(clock.pending).toBe(0)
})
