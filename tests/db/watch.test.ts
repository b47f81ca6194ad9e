/** Commits of other processes are noticed with their topics; our own are not. */
import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { commit, notice, shareChanges, type Topic } from '../../db/commit.ts'
import { openDatabase } from '../../db/open.ts'
import { watchDatabase } from '../../db/watch.ts'
import { ManualClock } from '../support/clock.ts'

const cleanUps: (() => void)[] = []
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp()
})

const aWatch = async (onMoved: (topics: ReadonlySet<Topic>) => Promise<unknown>) => {
  const dir = mkdtempSync(join(tmpdir(), 'watch-'))
  const { sqlite: server, db } = openDatabase(join(dir, 'a.db'))
  const { sqlite: command, db: commandDb } = openDatabase(join(dir, 'a.db'))
  cleanUps.push(() => {
    server.close()
    command.close()
    rmSync(dir, { recursive: true })
  })
  server.run('CREATE TABLE t (x)')
  server.run('CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)')
  await shareChanges(db)
  await shareChanges(commandDb)
  const clock = new ManualClock()
  const errors: unknown[] = []
  const onError = (error: unknown) => errors.push(error)
  const stop = await watchDatabase({ db, clock, everyMs: 1000, onMoved, onError })
  return { server, command, db, commandDb, clock, errors, stop }
}

test('reports commits of another connection once, and its own never', async () => {
  let moved = 0
  const { server, command, clock, stop } = await aWatch(async () => moved++)
  server.run('INSERT INTO t VALUES (1)')
  await clock.advance('2s')
  expect(moved).toBe(0)
  command.run('INSERT INTO t VALUES (2)')
  command.run('INSERT INTO t VALUES (3)')
  expect(moved).toBe(0)
  await clock.advance('3s')
  expect(moved).toBe(1)
  command.run('INSERT INTO t VALUES (4)')
  stop()
  await clock.advance('2s')
  expect(moved).toBe(1)
  expect(clock.pending).toBe(0)
})

test('a reload that fails is reported and tried again', async () => {
  let tries = 0
  const { command, clock, errors } = await aWatch(async () => {
    tries++
    if (tries === 1) throw new Error('busy')
  })
  command.run('INSERT INTO t VALUES (1)')
  await clock.advance('3s')
  expect(errors).toEqual([new Error('busy')])
  expect(tries).toBe(2)
})

test('a change of another process arrives with its topics, and only once', async () => {
  const seen: string[][] = []
  const { db, command, commandDb, clock } = await aWatch(async (topics) => seen.push([...topics]))
  await commit(db, async (tx) => notice(tx, 'keys'))
  await commit(commandDb, async (tx) => [notice(tx, 'settings'), notice(tx, 'people')])
  await commit(commandDb, async (tx) => notice(tx, 'settings'))
  await clock.advance('1s')
  expect(seen).toEqual([['settings', 'people']])
  command.run('INSERT INTO t VALUES (1)')
  await clock.advance('1s')
  expect(seen.at(-1)).toEqual([])
})

test('both processes changed the same topic: each learns of the other', async () => {
  const seen: string[][] = []
  const { db, commandDb, clock } = await aWatch(async (topics) => seen.push([...topics]))
  await commit(commandDb, async (tx) => notice(tx, 'keys'))
  await commit(db, async (tx) => notice(tx, 'keys'))
  await clock.advance('1s')
  expect(seen).toEqual([['keys']])
})

test('topics are reported again after a listener failed, and a commit that was rolled back has none', async () => {
  const seen: string[][] = []
  let hasFailed = false
  const { commandDb, clock } = await aWatch(async (topics) => {
    if (!hasFailed) {
      hasFailed = true
      throw new Error('busy')
    }
    seen.push([...topics])
  })
  await commit(commandDb, async (tx) => notice(tx, 'egress'))
  const fail = () =>
    commit(commandDb, async (tx) => {
      notice(tx, 'people')
      throw new Error('no')
    })
  await expect(fail()).rejects.toThrow('no')
  await clock.advance('2s')
  expect(seen).toEqual([['egress']])
})
