/** Streams of one account over several processes, each with a connection of its own to one file. */
import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import { migrate } from '../../db/migrate.ts'
import { MIGRATIONS } from '../../db/migrations/index.ts'
import { openDatabase } from '../../db/open.ts'
import { accounts } from '../../db/schema/accounts.ts'
import { createLog } from '../../src/lib/log.ts'
import { StreamSlots } from '../../src/proxy/pool/stream-slots.ts'
import { ManualClock } from '../support/clock.ts'
import { anAccountRow } from '../support/keys.ts'
import { loseAnswer } from '../support/lost-answer.ts'

const cleanUps: (() => void)[] = []
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0).reverse()) cleanUp()
})

const log = createLog({ level: 'error', format: 'text', now: () => 0, write: () => {} })

/** Processes 1 to `count`, and the account `acc`. */
const world = async (count = 3) => {
  const dir = mkdtempSync(join(tmpdir(), 'slots-'))
  cleanUps.push(() => rmSync(dir, { recursive: true, force: true }))
  const clock = new ManualClock()
  const opened = () => {
    const { sqlite, db } = openDatabase(join(dir, 'sluice.db'))
    sqlite.run('PRAGMA synchronous = OFF')
    cleanUps.push(() => sqlite.close())
    return { sqlite, db }
  }
  const { sqlite, db } = opened()
  migrate(sqlite, MIGRATIONS, 0)
  await anAccountRow(db, 'acc')
  const alive = new Set<number>()
  /** `isShared`: whether other processes run streams; false for a single process. */
  const start = (number: number, isShared = () => true) => {
    alive.add(number)
    const isAlive = (other: number) => alive.has(other)
    const own = opened()
    own.sqlite.run('PRAGMA busy_timeout = 0')
    const slots = new StreamSlots({ db: own.db, clock, log, number, isAlive, isShared })
    const account = { id: 'acc', inFlight: 0 }
    return {
      account,
      begin: async (cap: number) => {
        if (account.inFlight >= cap && cap > 0) return false
        const isCovered = slots.covers(account, cap) || (await slots.take(account, cap))
        if (isCovered) account.inFlight++
        return isCovered
      },
      end: () => {
        account.inFlight--
        slots.noteEnd(() => [account])
      },
      handOver: () => slots.handOver([account]),
      hasFailed: () => slots.hasFailed('acc'),
      kill: () => alive.delete(number),
      reconnect: () => {
        alive.add(number)
        slots.noteReconnect(() => [account])
      },
      loseAnswer: () => loseAnswer(own.db),
    }
  }
  const stored = async () => (await db.select().from(accounts).where(eq(accounts.id, 'acc')).get())?.streamSlots ?? null
  return { clock, start, stored, sqlite, processes: Array.from({ length: count }, (_, i) => start(i + 1)) }
}

test.each([1, 4, 8, 17])('of a limit of %d no more streams run over three processes, and no fewer', async (cap) => {
  const { processes } = await world()
  for (let i = 0; i < 3 * cap; i++) await processes[i % 3]!.begin(cap)
  expect(processes.reduce((sum, { account }) => sum + account.inFlight, 0)).toBe(cap)
})

test('a slot that is not used goes to another process after a second', async () => {
  const { clock, processes, stored } = await world()
  const [a, b] = processes
  for (let i = 0; i < 4; i++) expect(await a!.begin(4)).toBe(true)
  expect(await b!.begin(4)).toBe(false)
  a!.end()
  await clock.advance('900ms')
  expect(await b!.begin(4)).toBe(false)
  await clock.advance('100ms')
  expect(await stored()).toEqual({ 1: 3 })
  expect(await b!.begin(4)).toBe(true)
  expect(await b!.begin(4)).toBe(false)
})

test('a stream after a pause of less than a second needs no new slot', async () => {
  const { clock, processes, stored } = await world()
  const [a] = processes
  await a!.begin(4)
  a!.end()
  await clock.advance('500ms')
  await a!.begin(4)
  await clock.advance('5s')
  expect(await stored()).toEqual({ 1: 1 })
  a!.end()
  await clock.advance('1s')
  expect(await stored()).toBeNull()
  expect(clock.pending).toBe(0)
})

test('slots of a process that was killed are free again, also for its successor with another number', async () => {
  const { processes, start, stored } = await world()
  const [a, b, c] = processes
  for (let i = 0; i < 2; i++) a!.begin(4)
  for (let i = 0; i < 2; i++) b!.begin(4)
  expect(await c!.begin(4)).toBe(false)
  a!.kill()
  expect(await c!.begin(4)).toBe(true)
  expect((await stored())?.[1]).toBeUndefined()
  b!.kill()
  const next = start(4)
  expect(await next.begin(4)).toBe(true)
  expect(await stored()).toMatchObject({ 4: 1 })
})

/** Process 1 runs streams, and process 2 took all slots while process 1 counted as ended. */
const dropped = async (inFlight: number) => {
  const all = await world(2)
  const [a, b] = all.processes
  for (let i = 0; i < 2; i++) await a!.begin(4)
  while (a!.account.inFlight > inFlight) a!.end()
  a!.kill()
  for (let i = 0; i < 4; i++) expect(await b!.begin(4)).toBe(true)
  expect(await all.stored()).toEqual({ 2: 4 })
  return { ...all, a: a!, b: b! }
}

test('a process whose slots were dropped stores them when it takes one, even if none is free', async () => {
  const { a, stored } = await dropped(2)
  expect(await a.begin(4)).toBe(false)
  expect(await stored()).toEqual({ 1: 2, 2: 4 })
})

test('after a reconnect, a process stores how many streams it runs, and begins none beyond the limit', async () => {
  const { a, b, clock, stored } = await dropped(1)
  a.reconnect()
  expect(await a.begin(4)).toBe(false)
  expect(await stored()).toEqual({ 1: 1, 2: 4 })
  b.end()
  await clock.advance('3s')
  expect([await a.begin(4), await b.begin(4)]).toEqual([false, false])
  b.end()
  await clock.advance('3s')
  expect([await b.begin(4), await a.begin(4)]).toEqual([true, false])
  for (const { account, end } of [a, b]) while (account.inFlight > 0) end()
  await clock.advance('3s')
  expect([await stored(), clock.pending]).toEqual([null, 0])
})

test('after a reconnect, running streams count again although none begins or ends', async () => {
  const { a, b, clock, stored } = await dropped(2)
  a.reconnect()
  await clock.advance('3s')
  expect([await stored(), clock.pending]).toEqual([{ 1: 2, 2: 4 }, 0])
  b.end()
  await clock.advance('1s')
  expect(await b.begin(4)).toBe(false)
})

test('after a reconnect, streams are stored again if a process that had not noticed it dropped them', async () => {
  const { a, clock, stored, sqlite } = await dropped(2)
  a.reconnect()
  expect(await a.begin(4)).toBe(false)
  sqlite.run(`UPDATE accounts SET stream_slots = '{"2":4}'`)
  await clock.advance('3s')
  expect(await stored()).toEqual({ 1: 2, 2: 4 })
})

test('after a reconnect, slots that no other process has taken can be used', async () => {
  const { clock, processes, stored } = await world(2)
  const [a, b] = processes
  for (let i = 0; i < 2; i++) await a!.begin(4)
  expect(await b!.begin(4)).toBe(true)
  a!.end()
  a!.reconnect()
  expect([await a!.begin(4), await a!.begin(4), await a!.begin(4)]).toEqual([true, true, false])
  await clock.advance('3s')
  expect(await stored()).toEqual({ 1: 3, 2: 1 })
})

test('after a reconnect, the slots of a process can be used even if the database cannot be written', async () => {
  const { clock, processes, sqlite, stored } = await world(2)
  const [a] = processes
  for (let i = 0; i < 2; i++) await a!.begin(4)
  sqlite.run('BEGIN IMMEDIATE')
  a!.end()
  a!.end()
  a!.reconnect()
  expect([await a!.begin(4), await a!.begin(4), await a!.begin(4)]).toEqual([true, true, false])
  sqlite.run('ROLLBACK')
  await clock.advance('3s')
  expect(await stored()).toEqual({ 1: 2 })
})

test('without a limit no slots are taken, and a lowered limit ends no stream', async () => {
  const { processes, stored } = await world()
  const [a, b] = processes
  for (let i = 0; i < 20; i++) expect(await a!.begin(0)).toBe(true)
  expect(await stored()).toBeNull()
  for (let i = 0; i < 20; i++) a!.end()
  for (let i = 0; i < 4; i++) expect(await b!.begin(8)).toBe(true)
  expect(await b!.begin(2)).toBe(false)
  expect(await a!.begin(2)).toBe(false)
  expect(b!.account.inFlight).toBe(4)
})

test('a single process takes no slots, and shares the limit with its successor until its streams have ended', async () => {
  const { clock, start, stored } = await world(0)
  const isAlone = () => false
  const earlier = start(1, isAlone)
  for (let i = 0; i < 2; i++) expect(await earlier.begin(3)).toBe(true)
  expect(await stored()).toBeNull()
  let isEarlierAlive = true
  const later = start(2, () => isEarlierAlive)
  await earlier.handOver()
  expect(await stored()).toEqual({ 1: 2 })
  expect([await later.begin(3), await later.begin(3)]).toEqual([true, false])
  expect(await earlier.begin(3)).toBe(false) // another attempt of a request that it still serves
  earlier.end()
  await clock.advance('1s')
  expect([await later.begin(3), await later.begin(3)]).toEqual([true, false])
  earlier.kill()
  isEarlierAlive = false
  expect(await later.begin(3)).toBe(true)
})

test('while the database is locked no slot is taken, and the lock is tried once a second', async () => {
  const { clock, processes, sqlite, stored } = await world(1)
  const [a] = processes
  sqlite.run('BEGIN IMMEDIATE')
  expect([await a!.begin(4), a!.hasFailed()]).toEqual([false, true])
  sqlite.run('ROLLBACK')
  expect(await a!.begin(4)).toBe(false) // not tried again yet
  await clock.advance('1s')
  expect([await a!.begin(4), a!.hasFailed(), await stored()]).toEqual([true, false, { 1: 1 }])
})

test('slots are kept while the database is locked, and returned afterwards', async () => {
  const { clock, processes, sqlite, stored } = await world(2)
  const [a, b] = processes
  for (let i = 0; i < 3; i++) expect(await a!.begin(4)).toBe(true)
  sqlite.run('BEGIN IMMEDIATE')
  for (let i = 0; i < 3; i++) a!.end()
  await clock.advance('30s')
  const begun = []
  for (let i = 0; i < 4; i++) begun.push(await a!.begin(4))
  expect([begun, await b!.begin(4)]).toEqual([[true, true, true, false], false])
  sqlite.run('ROLLBACK')
  await clock.advance('1s')
  expect([await b!.begin(4), await b!.begin(4)]).toEqual([true, false])
  for (let i = 0; i < 3; i++) a!.end()
  b!.end()
  await clock.advance('3s')
  expect([await stored(), clock.pending]).toEqual([null, 0])
})

test.each(['take', 'return'])(
  'after a %s without an answer, no slot is given twice, and none stays lost',
  async (what) => {
    const { processes, clock, stored } = await world()
    const [first] = processes
    if (what === 'return') {
      await first!.begin(2)
      await first!.begin(2)
      first!.loseAnswer()
      first!.end()
      first!.end()
      await clock.advance('1s')
    } else {
      first!.loseAnswer()
      expect(await first!.begin(2)).toBe(false)
    }
    for (let i = 0; i < 6; i++) await processes[i % 3]!.begin(2)
    expect(processes.reduce((sum, { account }) => sum + account.inFlight, 0)).toBeLessThanOrEqual(2)
    await clock.advance('2s')
    for (const { account, end } of processes) while (account.inFlight > 0) end()
    await clock.advance('2s')
    if (await first!.begin(2)) first!.end()
    await clock.advance('3s')
    expect(await stored()).toBeNull()
  },
)
