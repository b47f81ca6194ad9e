/** The replay in its own thread, with a database file. */
import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrate } from '../../db/migrate.ts'
import { MIGRATIONS } from '../../db/migrations/index.ts'
import { openDatabase } from '../../db/open.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createLog } from '../../src/lib/log.ts'
import { Replayer, replayThreads } from '../../src/threads/replayer.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-replay-'))
const path = join(folder, 'store.db')
let replayer: Replayer

afterEach(() => {
  replayer.stop()
  rmSync(folder, { recursive: true, force: true })
})

test('reads from the file, and fails with busy when the file cannot be opened', async () => {
  const { sqlite } = openDatabase(path)
  migrate(sqlite, MIGRATIONS, 0)
  sqlite.close()
  const log = createLog({ level: 'error', format: 'text', now: () => 0, write: () => {} })
  const open = (file: string) => new Replayer({ start: replayThreads(file), clock: systemClock, log })
  const { signal } = new AbortController()
  const question = { days: 28, seed: 1, now: 28 * 86_400_000 }
  replayer = open(path)
  expect(await replayer.ask('strategies', question, signal)).toMatchObject({ requests: 0, sufficient: false })
  expect(await replayer.ask('plan', { now: question.now }, signal)).toMatchObject({ sufficient: false, proposals: [] })
  const lost = open(join(folder, 'none.db'))
  expect(lost.ask('strategies', question, signal)).rejects.toMatchObject({ code: 'busy' })
  await lost.ask('strategies', { ...question, seed: 2 }, signal).catch(() => {})
})
