/** One synchronous transaction, all or nothing, and one change notice afterwards. */
import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { announceAll, commit, type Db, notice, onChange, TOPICS, type Tx } from '../../db/commit.ts'
import { openDatabase } from '../../db/open.ts'

type ThingId = string & { readonly brand?: 'thing' }

const things = sqliteTable('things', {
  id: text().primaryKey().$type<ThingId>(),
  createdAt: integer().notNull(),
  isOpen: integer({ mode: 'boolean' }).notNull(),
  tags: text({ mode: 'json' }).$type<string[]>().notNull(),
  state: text({ enum: ['new', 'old'] }).notNull(),
})

const aThing = { id: 'a', createdAt: 1, isOpen: true, tags: ['x'], state: 'new' } as const

const open = (onListenerError?: (error: unknown) => void) => {
  const { sqlite, db } = openDatabase(':memory:', { onListenerError })
  sqlite.run('CREATE TABLE things (id TEXT PRIMARY KEY, created_at INTEGER, is_open INTEGER, tags TEXT, state TEXT)')
  return { sqlite, db }
}

const add = (tx: Tx, thingId = 'a') =>
  tx
    .insert(things)
    .values({ ...aThing, id: thingId, tags: ['x'] })
    .run()

const count = (db: Db) => db.select().from(things).all().length

describe('commit', () => {
  test('stores what the callback wrote and returns its value', () => {
    const { sqlite, db } = open()
    const written = commit(db, (tx) => {
      const { changes } = add(tx)
      const updated = tx.update(things).set({ state: 'old' }).where(eq(things.id, 'a')).returning().get()
      return { changes, seenInside: count(tx), state: updated?.state }
    })
    expect(written).toEqual({ changes: 1, seenInside: 1, state: 'old' })
    expect(db.select().from(things).get()).toEqual({ ...aThing, tags: ['x'], state: 'old' })
    expect(sqlite.query('SELECT created_at, is_open, tags FROM things').get()).toEqual({
      created_at: 1,
      is_open: 1,
      tags: '["x"]',
    })
  })

  test('a throw rolls everything back and announces nothing', () => {
    const { db } = open()
    const heard: unknown[] = []
    onChange(db, (topics) => heard.push(topics))
    const failing = () =>
      commit(db, (tx) => {
        add(tx)
        notice(tx, 'keys')
        throw new Error('no')
      })
    expect(failing).toThrow('no')
    expect(count(db)).toBe(0)
    expect(heard).toEqual([])
    commit(db, (tx) => add(tx))
    expect(heard).toEqual([])
    expect(count(db)).toBe(1)
  })

  test('an async callback is rejected by the types and rolled back at run time', () => {
    const { db } = open()
    const refused = () =>
      // @ts-expect-error an async callback would commit before its awaits
      commit(db, async (tx) => {
        add(tx)
      })
    expect(refused).toThrow('synchronous')
    // @ts-expect-error a query that was not executed is a promise too
    expect(() => commit(db, (tx) => tx.delete(things))).toThrow('synchronous')
    expect(count(db)).toBe(0)
  })

  test('a commit inside a commit throws and rolls back the outer one', () => {
    const { db } = open()
    const nested = () =>
      commit(db, (tx) => {
        add(tx)
        // @ts-expect-error a tx is passed on, never committed
        commit(tx, () => {})
      })
    expect(nested).toThrow('inside another commit')
    const hidden = () => commit(db, (tx) => [add(tx), commit(db, (inner) => add(inner, 'b'))])
    expect(hidden).toThrow('inside another commit')
    expect(count(db)).toBe(0)
  })

  test('the write lock is taken before the callback reads', () => {
    const dir = mkdtempSync(join(tmpdir(), 'commit-'))
    const [ours, theirs] = [openDatabase(join(dir, 'a.db')), openDatabase(join(dir, 'a.db'))]
    theirs.sqlite.run('PRAGMA busy_timeout = 0')
    const intrude = () => theirs.sqlite.run('CREATE TABLE t (x)')
    commit(ours.db, () => expect(intrude).toThrow('locked'))
    expect(intrude).not.toThrow()
    ours.sqlite.close()
    theirs.sqlite.close()
    rmSync(dir, { recursive: true })
  })

  test('a Db cannot write', () => {
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
    expect(() => db.transaction(() => {})).not.toThrow()
    // @ts-expect-error a Db is not a Tx
    expect(() => add(db)).not.toThrow()
  })

  test('a tx allows writes with common table expressions', () => {
    const { db } = open()
    commit(db, (tx) => {
      add(tx)
      const old = tx.$with('old').as(tx.select({ id: things.id }).from(things))
      tx.with(old)
        .delete(things)
        .where(eq(things.id, tx.with(old).select({ id: old.id }).from(old)))
        .run()
    })
    expect(count(db)).toBe(0)
  })
})

describe('change notices', () => {
  test('are delivered once per commit, after it, with every topic', () => {
    const { sqlite, db } = open()
    const heard: string[][] = []
    onChange(db, (topics) => {
      expect(sqlite.inTransaction).toBe(false)
      expect(count(db)).toBe(1)
      heard.push([...topics])
    })
    commit(db, (tx) => {
      notice(tx, 'keys')
      add(tx)
      notice(tx, 'accounts')
      notice(tx, 'keys')
      expect(heard).toEqual([])
    })
    expect(heard).toEqual([['keys', 'accounts']])
  })

  test('a listener can commit', () => {
    const { db } = open()
    const heard: string[] = []
    onChange(db, (topics) => {
      heard.push([...topics].join())
      if (topics.has('keys')) commit(db, (tx) => notice(tx, 'settings'))
    })
    commit(db, (tx) => notice(tx, 'keys'))
    expect(heard).toEqual(['keys', 'settings'])
  })

  test('a listener that throws neither fails the commit nor stops the others', () => {
    const errors: unknown[] = []
    const { db } = open((error) => errors.push(error))
    let heard = 0
    onChange(db, () => {
      throw new Error('bad listener')
    })
    const stop = onChange(db, () => heard++)
    expect(commit(db, (tx) => [notice(tx, 'keys'), 7][1])).toBe(7)
    stop()
    commit(db, (tx) => notice(tx, 'keys'))
    expect(heard).toBe(1)
    expect(errors.map(String)).toEqual(['Error: bad listener', 'Error: bad listener'])
  })

  test('a tx that outlived its commit cannot announce', () => {
    const { db } = open()
    const kept = commit(db, (tx) => ({ tx }))
    expect(() => notice(kept.tx, 'keys')).toThrow('over')
  })

  test('announceAll names every topic', () => {
    const { db } = open()
    const heard: string[] = []
    onChange(db, (topics) => heard.push(...topics))
    announceAll(db)
    expect(heard).toEqual([...TOPICS])
  })
})
