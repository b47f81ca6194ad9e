/** One transaction, all or nothing, and one change notice afterwards. */
import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { isOutcomeUnknown } from '../../db/busy.ts'
import { announceAll, commit, type Db, notice, onChange, onWriter, TOPICS, type Tx } from '../../db/commit.ts'
import { waitForLocksAtMost, waitForOneLockAtMost } from '../../db/connection.ts'
import { migrate } from '../../db/migrate.ts'
import { MIGRATIONS } from '../../db/migrations/index.ts'
import { openDatabase } from '../../db/open.ts'
import { writeLedger } from '../../src/proxy/ledger/ledger-writer.ts'
import { loseAnswer } from '../support/lost-answer.ts'

type ThingId = string & { readonly brand?: 'thing' }

const things = sqliteTable('things', {
  id: text().primaryKey().$type<ThingId>(),
  createdAt: integer().notNull(),
  isOpen: integer({ mode: 'boolean' }).notNull(),
  tags: text({ mode: 'json' }).$type<string[]>().notNull(),
  state: text({ enum: ['new', 'old'] }).notNull(),
})

const aThing = { id: 'a', createdAt: 1, isOpen: true, tags: ['x'], state: 'new' } as const

const folder = mkdtempSync(join(tmpdir(), 'commit-'))
afterAll(() => rmSync(folder, { recursive: true }))

const open = (onListenerError?: (error: unknown) => void) => {
  const { sqlite, db } = openDatabase(join(mkdtempSync(join(folder, 'db-')), 'a.db'), { onListenerError })
  sqlite.run('CREATE TABLE things (id TEXT PRIMARY KEY, created_at INTEGER, is_open INTEGER, tags TEXT, state TEXT)')
  return { sqlite, db }
}

const add = (tx: Tx, thingId = 'a') =>
  tx
    .insert(things)
    .values({ ...aThing, id: thingId, tags: ['x'] })
    .run()

const count = async (db: Db) => (await db.select().from(things).all()).length

describe('commit', () => {
  test('stores what the callback wrote and returns its value', async () => {
    const { sqlite, db } = open()
    const written = await commit(db, async (tx) => {
      const { changes } = await add(tx)
      const updated = await tx.update(things).set({ state: 'old' }).where(eq(things.id, 'a')).returning().get()
      return { changes, seenInside: await count(tx), state: updated?.state }
    })
    expect(written).toEqual({ changes: 1, seenInside: 1, state: 'old' })
    expect(await db.select().from(things).get()).toEqual({ ...aThing, tags: ['x'], state: 'old' })
    expect(sqlite.query('SELECT created_at, is_open, tags FROM things').get()).toEqual({
      created_at: 1,
      is_open: 1,
      tags: '["x"]',
    })
  })

  test('a throw rolls everything back and announces nothing', async () => {
    const { db } = open()
    const heard: unknown[] = []
    onChange(db, async (topics) => heard.push(topics))
    const failing = () =>
      commit(db, async (tx) => {
        await add(tx)
        notice(tx, 'keys')
        throw new Error('no')
      })
    await expect(failing()).rejects.toThrow('no')
    expect(await count(db)).toBe(0)
    expect(heard).toEqual([])
    await commit(db, (tx) => add(tx))
    expect(heard).toEqual([])
    expect(await count(db)).toBe(1)
  })

  test('a commit inside a commit throws and rolls back the outer one', async () => {
    const { db } = open()
    const nested = () =>
      commit(db, async (tx) => {
        await add(tx)
        // @ts-expect-error a tx is passed on, never committed
        await commit(tx, async () => {})
      })
    await expect(nested()).rejects.toThrow('inside another commit')
    const hidden = () => commit(db, async (tx) => [await add(tx), await commit(db, (inner) => add(inner, 'b'))])
    await expect(hidden()).rejects.toThrow('inside another commit')
    expect(await count(db)).toBe(0)
  })

  test('the write lock is taken before the callback reads', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'commit-'))
    const [ours, theirs] = [openDatabase(join(dir, 'a.db')), openDatabase(join(dir, 'a.db'))]
    theirs.sqlite.run('PRAGMA busy_timeout = 0')
    const intrude = () => theirs.sqlite.run('CREATE TABLE t (x)')
    await commit(ours.db, async () => expect(intrude).toThrow('locked'))
    expect(intrude).not.toThrow()
    ours.sqlite.close()
    theirs.sqlite.close()
    rmSync(dir, { recursive: true })
  })

  test('a Db cannot write', async () => {
    const { db } = open()
    // @ts-expect-error writes need a Tx
    expect(() => db.insert(things)).not.toThrow()
    // @ts-expect-error writes need a Tx
    expect(() => db.update(things)).not.toThrow()
    // @ts-expect-error writes need a Tx
    expect(() => db.delete(things)).not.toThrow()
    // @ts-expect-error writes need a Tx
    expect(() => db.run('SELECT 1')).not.toThrow()
    // @ts-expect-error writes need a Tx
    expect(() => db.with().insert(things)).not.toThrow()
    // @ts-expect-error writes need a Tx
    expect(() => db.transaction(() => {})).toThrow('Use commit')
    // @ts-expect-error a Db is not a Tx
    await expect(add(db)).rejects.toThrow('readonly')
  })

  test('a tx allows writes with common table expressions', async () => {
    const { db } = open()
    await commit(db, async (tx) => {
      await add(tx)
      const old = tx.$with('old').as(tx.select({ id: things.id }).from(things))
      await tx
        .with(old)
        .delete(things)
        .where(eq(things.id, tx.with(old).select({ id: old.id }).from(old)))
        .run()
    })
    expect(await count(db)).toBe(0)
  })
})

describe('while another process holds the lock', () => {
  const locked = () => {
    const dir = mkdtempSync(join(folder, 'db-'))
    const [ours, theirs] = [openDatabase(join(dir, 'a.db')), openDatabase(join(dir, 'a.db'))]
    const getWait = () => ours.sqlite.query<{ timeout: number }, []>('PRAGMA busy_timeout').get()?.timeout
    migrate(ours.sqlite, MIGRATIONS, 0)
    theirs.sqlite.run('BEGIN IMMEDIATE')
    return { db: ours.db, getWait, release: () => theirs.sqlite.run('ROLLBACK') }
  }
  const empty = (db: Db) => commit(db, async () => {}).catch((error) => error.code)
  const NOTHING = { process: 0, entries: [], usage: new Map(), meters: [], rejected: [] }

  test.each([
    ['a commit', empty],
    ['a batch of the ledger', (db: Db) => onWriter(db, writeLedger, NOTHING).catch((error) => error.code)],
  ])('%s waits for it, and the next ones briefly until one succeeds', async (_, write) => {
    const { db, getWait, release } = locked()
    await onWriter(db, waitForOneLockAtMost, 40)
    expect(await Promise.all([write(db), write(db)])).toEqual(['SQLITE_BUSY', 'SQLITE_BUSY'])
    expect(getWait()).toBe(20)
    release()
    expect(await write(db)).toBeUndefined()
    expect(getWait()).toBe(40)
  })

  test('at a stop each write waits for it', async () => {
    const { db, getWait } = locked()
    await onWriter(db, waitForOneLockAtMost, 1)
    expect(await empty(db)).toBe('SQLITE_BUSY')
    await onWriter(db, waitForLocksAtMost, 30)
    expect([await empty(db), await empty(db), getWait()]).toEqual(['SQLITE_BUSY', 'SQLITE_BUSY', 30])
  })
})

describe('change notices', () => {
  test('are delivered once per commit, after it, with every topic', async () => {
    const { sqlite, db } = open()
    const heard: string[][] = []
    onChange(db, async (topics) => {
      expect(sqlite.inTransaction).toBe(false)
      expect(await count(db)).toBe(1)
      heard.push([...topics])
    })
    await commit(db, async (tx) => {
      notice(tx, 'keys')
      await add(tx)
      notice(tx, 'accounts')
      notice(tx, 'keys')
      expect(heard).toEqual([])
    })
    expect(heard).toEqual([['keys', 'accounts']])
  })

  test('a listener can commit', async () => {
    const { db } = open()
    const heard: string[] = []
    onChange(db, async (topics) => {
      heard.push([...topics].join())
      if (topics.has('keys')) await commit(db, async (tx) => notice(tx, 'settings'))
    })
    await commit(db, async (tx) => notice(tx, 'keys'))
    expect(heard).toEqual(['keys', 'settings'])
  })

  test('a listener that throws neither fails the commit nor stops the others', async () => {
    const errors: unknown[] = []
    const { db } = open((error) => errors.push(error))
    let heard = 0
    onChange(db, async () => {
      throw new Error('bad listener')
    })
    const stop = onChange(db, async () => heard++)
    expect(await commit(db, async (tx) => [notice(tx, 'keys'), 7][1])).toBe(7)
    stop()
    await commit(db, async (tx) => notice(tx, 'keys'))
    expect(heard).toBe(1)
    expect(errors.map(String)).toEqual(['Error: bad listener', 'Error: bad listener'])
  })

  test('a tx that outlived its commit cannot announce', async () => {
    const { db } = open()
    const kept = await commit(db, async (tx) => ({ tx }))
    expect(() => notice(kept.tx, 'keys')).toThrow('over')
  })

  test('announceAll names every topic', async () => {
    const { db } = open()
    const heard: string[] = []
    onChange(db, async (topics) => heard.push(...topics))
    await announceAll(db)
    expect(heard).toEqual([...TOPICS])
  })
})

test('a commit without an answer is announced with the next one, because it may have been stored', async () => {
  const { db } = open()
  const heard: number[] = []
  onChange(db, (topics) => void heard.push(topics.size))
  loseAnswer(db)
  const outcome = await commit(db, async (tx) => {
    await add(tx)
    notice(tx, 'keys')
  }).catch((error: unknown) => isOutcomeUnknown(error))
  expect([outcome, await count(db), heard]).toEqual([true, 1, []])
  await commit(db, async () => {})
  await commit(db, async () => {})
  expect(heard).toEqual([TOPICS.length])
})
