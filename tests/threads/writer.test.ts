/** Commits in a thread of its own: what the other threads see of them. */
import { afterEach, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'drizzle-orm'
import { commit, onWriter, writeWith } from '../../db/commit.ts'
import { getRows, waitForLocksAtMost } from '../../db/connection.ts'
import { migrate } from '../../db/migrate.ts'
import { MIGRATIONS } from '../../db/migrations/index.ts'
import { openDatabase } from '../../db/open.ts'
import { facts } from '../../db/schema/system.ts'
import { startWriter } from '../../src/threads/writer.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

/** Not `expect().rejects`, which keeps the event loop from receiving messages of the thread (Bun 1.4.5). */
const getError = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => null,
    (error: unknown) => error,
  )

const setUp = async () => {
  const dir = mkdtempSync(join(tmpdir(), 'writer-'))
  cleanUps.push(() => rmSync(dir, { recursive: true, force: true }))
  const path = join(dir, 'sluice.db')
  const { sqlite, db } = openDatabase(path)
  migrate(sqlite, MIGRATIONS, 0)
  const lost: string[] = []
  const writer = await startWriter(path, (reason) => lost.push(reason))
  writeWith(db, writer)
  sqlite.close()
  const close = async () => {
    sqlite.close()
    await writer.close()
  }
  cleanUps.push(() => sqlite.close())
  const names = async () => (await db.select({ name: facts.name }).from(facts).all()).map(({ name }) => name)
  return { path, db, writer, lost, close, names }
}

test('a commit in the thread is all or nothing, and seen by others only when it is complete', async () => {
  const { db, names, close } = await setUp()
  await commit(db, async (tx) => {
    expect((await tx.insert(facts).values({ name: 'one', value: '1' }).run()).changes).toBe(1)
    expect(await tx.select().from(facts).all()).toEqual([{ name: 'one', value: '1' }])
    expect(await names()).toEqual([])
  })
  expect(await names()).toEqual(['one'])
  const failed = commit(db, async (tx) => {
    await tx.insert(facts).values({ name: 'two', value: '2' }).run()
    throw new Error('no')
  })
  expect(await getError(failed)).toMatchObject({ message: 'no' })
  expect(await names()).toEqual(['one'])
  await close()
})

test('errors of SQLite keep their code, and the thread goes on', async () => {
  const { db, names, close } = await setUp()
  const insert = () => commit(db, (tx) => tx.insert(facts).values({ name: 'one', value: '1' }).run())
  await insert()
  const error = await getError(insert())
  const cause = error instanceof Error && error.cause ? error.cause : error
  expect(cause).toMatchObject({ code: 'SQLITE_CONSTRAINT_PRIMARYKEY' })
  expect(await names()).toEqual(['one'])
  await close()
})

test('the event loop goes on while the thread waits for a lock of another process', async () => {
  const { path, db, close } = await setUp()
  await onWriter(db, waitForLocksAtMost, 300)
  const other = openDatabase(path)
  other.sqlite.run('BEGIN IMMEDIATE')
  let turns = 0
  const timer = setInterval(() => turns++, 10)
  const error = await getError(commit(db, (tx) => tx.run(sql`DELETE FROM facts`)))
  clearInterval(timer)
  expect(error).toMatchObject({ code: 'SQLITE_BUSY' })
  expect(turns).toBeGreaterThan(3)
  other.sqlite.run('ROLLBACK')
  await commit(db, (tx) => tx.run(sql`DELETE FROM facts`))
  other.sqlite.close()
  await close()
})

test('it runs only procedures that it knows', async () => {
  const { db, close } = await setUp()
  expect(String(await getError(onWriter(db, function unknown() {}, null)))).toContain('does not know unknown')
  await close()
})

test('a value that cannot be sent to it is refused, as SQLite refuses one that cannot be stored', async () => {
  const { db, close } = await setUp()
  const query = { sql: 'SELECT ?', bindings: [() => {}] as never }
  expect(await getError(onWriter(db, getRows, query))).toBeInstanceOf(TypeError)
  expect(await onWriter(db, getRows, { sql: 'SELECT ?', bindings: [1] })).toEqual([[1]])
  await close()
})

test('closing it finishes what was begun, and leaves no log', async () => {
  const { path, db, close, lost } = await setUp()
  const last = commit(db, (tx) => tx.insert(facts).values({ name: 'last', value: '1' }).run())
  await last
  await close()
  expect(existsSync(`${path}-wal`)).toBe(false)
  const again = openDatabase(path)
  expect(await again.db.select({ name: facts.name }).from(facts).all()).toEqual([{ name: 'last' }])
  again.sqlite.close()
  expect(lost).toEqual([])
})

test('a file that cannot be opened is an error of the start', async () => {
  const lost: string[] = []
  const missing = join(tmpdir(), 'not-there', 'sluice.db')
  expect(String(await getError(startWriter(missing, (reason) => lost.push(reason))))).toContain('unable to open')
  expect(lost).toHaveLength(1)
})

test('a commit that comes while it closes, or later, fails instead of never ending', async () => {
  const { db, close, names, lost } = await setUp()
  const go = Promise.withResolvers<void>()
  const insert = (name: string) =>
    commit(db, async (tx) => {
      await tx.insert(facts).values({ name, value: '1' }).run()
      await go.promise
      await tx
        .insert(facts)
        .values({ name: `${name} again`, value: '1' })
        .run()
    })
  const running = getError(insert('running'))
  const queued = getError(insert('queued'))
  await Bun.sleep(50)
  await close()
  go.resolve()
  const late = getError(insert('late'))
  for (const error of [await running, await queued, await late])
    expect(String(error)).toContain('The thread that writes to the database has ended')
  expect([await names(), lost]).toEqual([[], []])
})
