/** Commits are awaited: one runs at a time, nothing else sees it before COMMIT, and it resolves with fresh views. */
import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { atOneMoment, commit, type Db, notice, onChange, onCommitted, onWriter, type Tx } from '../../db/commit.ts'
import { openDatabase } from '../../db/open.ts'
import { mapInOrder } from '../../src/lib/in-order.ts'

const counters = sqliteTable('counters', { id: text().primaryKey(), n: integer().notNull() })

const cleanUps: (() => void)[] = []
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp()
})

const open = () => {
  const dir = mkdtempSync(join(tmpdir(), 'awaited-'))
  const opened = openDatabase(join(dir, 'a.db'))
  cleanUps.push(() => {
    opened.sqlite.close()
    rmSync(dir, { recursive: true })
  })
  opened.sqlite.run("CREATE TABLE counters (id TEXT PRIMARY KEY, n INTEGER); INSERT INTO counters VALUES ('a', 0)")
  return opened
}

const value = async (db: Db): Promise<number> => (await db.select().from(counters).get())?.n ?? -1
const add = async (tx: Tx): Promise<number> => {
  const next = (await value(tx)) + 1
  await tx.update(counters).set({ n: next }).where(eq(counters.id, 'a')).run()
  return next
}
/** Lets everything that is ready run. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve))

test('commits that read before they write do not lose each other, however long one takes', async () => {
  const { db } = open()
  const seen = await Promise.all(
    Array.from({ length: 50 }, (_, i) =>
      commit(db, async (tx) => {
        const before = await value(tx)
        if (i % 10 === 0) await settle()
        await tx
          .update(counters)
          .set({ n: before + 1 })
          .run()
        return before
      }),
    ),
  )
  expect(seen).toEqual(Array.from({ length: 50 }, (_, i) => i))
  expect(await value(db)).toBe(50)
})

test('a read beside an open commit sees what was committed before it', async () => {
  const { db } = open()
  const gate = Promise.withResolvers<void>()
  const written = commit(db, async (tx) => {
    await add(tx)
    await gate.promise
  })
  await settle()
  expect(await value(db)).toBe(0)
  gate.resolve()
  await written
  expect(await value(db)).toBe(1)
})

test('the writing connection is handed out between commits only', async () => {
  const { db } = open()
  const gate = Promise.withResolvers<void>()
  const order: string[] = []
  const first = commit(db, async (tx) => {
    await gate.promise
    await add(tx)
    order.push('commit')
  })
  const second = onWriter(db, (sqlite) => order.push(`writer, in a transaction: ${sqlite.inTransaction}`), null)
  await settle()
  expect(order).toEqual([])
  gate.resolve()
  await Promise.all([first, second])
  expect(order).toEqual(['commit', 'writer, in a transaction: false'])
})

test('a rejected commit neither blocks the next one nor leaves anything behind', async () => {
  const { db, sqlite } = open()
  const failed = commit(db, async (tx) => {
    await add(tx)
    throw new Error('no')
  })
  const next = commit(db, add)
  await expect(failed).rejects.toThrow('no')
  expect(await next).toBe(1)
  expect(sqlite.inTransaction).toBe(false)
})

test('a query that is not awaited cannot write after its commit', async () => {
  const { db } = open()
  let late: Promise<unknown> = Promise.resolve()
  await commit(db, async (tx) => {
    late = settle().then(() => add(tx))
    late.catch(() => {})
  })
  await expect(late).rejects.toThrow('This commit is over')
  expect(await value(db)).toBe(0)
})

test('a commit resolves when the listeners are done, and they may commit', async () => {
  const { db } = open()
  const heard: string[] = []
  onChange(db, async (topics) => {
    await settle()
    heard.push([...topics].join())
    if (topics.has('keys')) await commit(db, async (tx) => notice(tx, 'settings'))
  })
  await commit(db, async (tx) => notice(tx, 'keys'))
  expect(heard).toEqual(['keys', 'settings'])
})

test('onCommitted runs after COMMIT, before listeners are called, and not after a rollback', async () => {
  const { db, sqlite } = open()
  const order: string[] = []
  onChange(db, () => order.push('listener'))
  const run = (fails: boolean) =>
    commit(db, async (tx) => {
      notice(tx, 'keys')
      onCommitted(tx, () => order.push(`committed, in a transaction: ${sqlite.inTransaction}`))
      if (fails) throw new Error('no')
    })
  await expect(run(true)).rejects.toThrow('no')
  await run(false)
  expect(order).toEqual(['committed, in a transaction: false', 'listener'])
})

test('queries at one moment see one snapshot while commits go on', async () => {
  const { db } = open()
  const read = await atOneMoment(db, async (moment) => {
    const before = await value(moment)
    await commit(db, add)
    return [before, await value(moment)]
  })
  expect(read).toEqual([0, 0])
  expect(await value(db)).toBe(1)
})

test('mapInOrder starts a call when the one before has ended', async () => {
  const order: number[] = []
  const results = await mapInOrder([3, 1, 2], async (n) => {
    for (let i = 0; i < n; i++) await settle()
    order.push(n)
    return n * 2
  })
  expect([order, results]).toEqual([
    [3, 1, 2],
    [6, 2, 4],
  ])
})
