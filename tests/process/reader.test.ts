/** The reader's worker on a real file: what it sees, what it refuses, and how it comes back after a deadline. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { commit } from '../../db/commit.ts'
import { type OpenedDatabase, openDatabase } from '../../db/open.ts'
import { requests } from '../../db/schema/requests.ts'
import type { AppError } from '../../src/errors.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createLog } from '../../src/lib/log.ts'
import { LogQuery } from '../../src/model/request-log-query.ts'
import { createInlineReader, createReader, DEADLINE_MS, type Reader } from '../../src/reader.ts'
import { ManualClock } from '../support/clock.ts'
import { testDb } from '../support/db.ts'

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

afterEach(() => {
  reader?.stop()
  writer.sqlite.close()
  rmSync(folder, { recursive: true })
})

const addRow = (id: string) =>
  commit(writer.db, (tx) => {
    tx.insert(requests)
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

const codeOf = (call: Promise<unknown>) =>
  call.then(
    () => 'answered',
    (error: AppError) => error.code,
  )

test('the worker answers every read and sees each commit', async () => {
  reader = createReader({ path, clock: systemClock, log: log() })
  expect(await reader.recentRequests(5)).toEqual([])
  addRow('one')
  const query = LogQuery.parse({ search: 'one' })
  const [recent, page, entry, none, options, findings] = await Promise.all([
    reader.recentRequests(5),
    reader.requestLogs(query, { sensitive: false }),
    reader.requestLog('one', { sensitive: false }),
    reader.requestLog('two', { sensitive: false }),
    reader.requestLogOptions(query),
    reader.integrity(),
  ])
  expect(recent.map(({ id }) => id)).toEqual(['one'])
  expect(page).toMatchObject({ total: 1, requests: [{ id: 'one', requestedAt: '2026-01-01T00:00:00.000Z' }] })
  expect(entry).toMatchObject({ id: 'one', attempts: [] })
  expect(none).toBeNull()
  expect(options.statuses).toEqual(['ok'])
  expect(findings).toEqual([])
})

test('the inline reader answers the same', async () => {
  addRow('one')
  reader = createReader({ path, clock: systemClock, log: log() })
  const inline = createInlineReader(writer.db)
  const query = LogQuery.parse({})
  expect(await reader.requestLogs(query, { sensitive: true })).toEqual(
    await inline.requestLogs(query, { sensitive: true }),
  )
  expect(await reader.recentRequests(1)).toEqual(await inline.recentRequests(1))
})

test('a failing query is an error of its call alone', async () => {
  reader = createReader({ path, clock: systemClock, log: log() })
  writer.sqlite.run('ALTER TABLE requests RENAME TO away')
  expect(await codeOf(reader.recentRequests(5))).toBe('internal_error')
  writer.sqlite.run('ALTER TABLE away RENAME TO requests')
  expect(await codeOf(reader.recentRequests(5))).toBe('answered')
})

test('after the deadline the call is refused, those behind it are asked anew, and the next one is answered', async () => {
  const clock = new ManualClock()
  const workers = [deafWorker, realWorker]
  reader = createReader({ path, clock, log: log(), newWorker: () => (workers.shift() ?? deafWorker)() })
  const slow = codeOf(reader.recentRequests(5))
  await clock.advance(1000)
  const behind = codeOf(reader.recentRequests(5))
  await clock.advance(DEADLINE_MS - 1000)
  expect([await slow, await behind]).toEqual(['busy', 'answered'])
  expect(lines).toHaveLength(1)
  expect(await reader.recentRequests(5)).toEqual([])
  expect(clock.pending).toBe(0)
})

const deafWorker = () => new Worker(URL.createObjectURL(new Blob([''], { type: 'text/javascript' })))
const realWorker = () => new Worker(new URL('../../src/reader-worker.ts', import.meta.url).href)

test('a worker that cannot open the file refuses at once, and a later one may', async () => {
  const clock = new ManualClock()
  const later = join(folder, 'later.db')
  reader = createReader({ path: later, clock, log: log() })
  expect(await codeOf(reader.recentRequests(5))).toBe('busy')
  expect(clock.pending).toBe(0)
  writer.sqlite.run('VACUUM INTO ?', [later])
  openDatabase(later).sqlite.close()
  expect(await codeOf(reader.recentRequests(5))).toBe('answered')
})

test('stopping refuses what is under way', async () => {
  const clock = new ManualClock()
  reader = createReader({ path, clock, log: log() })
  const call = codeOf(reader.recentRequests(5))
  reader.stop()
  expect(await call).toBe('busy')
  expect(clock.pending).toBe(0)
})
