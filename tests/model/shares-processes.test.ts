/** Shares over several processes, which learn of each other’s requests from the log every five seconds. */
import { describe, expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { seededRandom } from '../../src/lib/random.ts'
import { storeShare } from '../../src/model/shares/share-rows.ts'
import { Shares } from '../../src/model/shares/shares.ts'
import { used } from '../proxy/candidates.ts'
import { testApp } from '../support/app.ts'
import { people } from '../support/people.ts'

const SECOND = 1000
const HOUR = 3_600_000
/** `SHARES_INTERVAL_MS`: when a process reads the log. */
const REFRESH_MS = 5 * SECOND
/** Credits of a Plus account per five hours. */
const PLUS = 225

interface Logged {
  id: string
  userId: string
  at: number
  endedAt: number
  units: number
}

/** Processes with one log and one pool, and another one that learns of each request as soon as it has ended. */
const open = async (given: readonly number[], processes: number) => {
  const app = await testApp({ accounts: [{ plan: 'plus' }] })
  const { add } = people(app)
  const users: string[] = []
  for (const fiveHourPercent of given) {
    const { row } = await add({ role: 'member' })
    users.push(row.id)
    await commit(app.db, (tx) => storeShare(tx, row.id, { fiveHourPercent, weeklyPercent: null }))
  }
  const log: Logged[] = []
  const { db, clock } = app
  const start = () =>
    Shares.open({
      ...{ db, clock, log: app.bindings.log, pool: app.bindings.pool },
      reads: {
        summedUse: async () => [],
        recentUse: async (since) => log.filter(({ endedAt }) => endedAt >= since),
      },
      rates: { current: { short: 1, long: 1, isMeasured: false }, refresh: async () => {} },
      flush: async () => {},
      isShared: () => true,
    })
  const all: Shares[] = []
  for (let n = 0; n < processes; n++) all.push(await start())
  const informed = await start()
  const running: (Logged & { process: number })[] = []
  let number = 0

  /** Whether process `n` admits a new conversation, which ends after `lastsMs`. */
  const admit = (n: number, user: number, { units, lastsMs }: { units: number; lastsMs: number }): boolean => {
    const [id, userId, at] = [`request-${number++}`, users[user]!, clock.now()]
    try {
      all[n]!.begin(userId, { id, units: 5, isNew: true })
    } catch {
      return false
    }
    running.push({ id, userId, at, endedAt: at + lastsMs, units, process: n })
    return true
  }
  const settle = (): void => {
    for (const one of running.filter(({ endedAt }) => endedAt <= clock.now())) {
      running.splice(running.indexOf(one), 1)
      all[one.process]!.end(one.userId, one)
      log.push({ ...one, endedAt: clock.now() })
    }
    const percent = (log.reduce((sum, { units }) => sum + units, 0) / PLUS) * 100
    app.bindings.pool.observe(app.members[0]!.id, { ...used(Math.min(100, percent), 1), at: clock.now() })
  }
  /** Lets `ms` pass in steps of a second. Process `n` reads the log every five seconds, `n` seconds after the hour. */
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += SECOND) {
      await clock.advance(SECOND)
      settle()
      const second = Math.floor(clock.now() / SECOND)
      for (const [n, shares] of all.entries()) if ((second + n) % 5 === 0) await shares.refresh()
      await informed.refresh()
    }
  }
  const usedBy = (user: number): number =>
    [...log, ...running]
      .filter(({ userId, at }) => userId === users[user] && at > clock.now() - 5 * HOUR)
      .reduce((sum, { units }) => sum + units, 0)
  const total = () => [...log, ...running].reduce((sum, { units }) => sum + units, 0)
  settle()
  await pass(SECOND)
  return { app, users, all, informed, admit, pass, usedBy, total }
}

describe.each([1, 3, 8])('%d processes', (processes) => {
  test('property: a user within their share is never rejected while the pool has capacity', async () => {
    for (let seed = 1; seed <= 8; seed++) {
      const random = seededRandom(seed)
      const given = [10 + random.float() * 20, 10 + random.float() * 30, random.float() * 10]
      const world = await open(given, processes)
      let within = 0
      for (let step = 0; step < 60; step++) {
        for (let burst = Math.ceil(random.float() * 6); burst > 0; burst--) {
          const user = Math.floor(random.float() * given.length)
          const units = 5 + random.float() * 6
          if (PLUS - world.total() < units) break
          const isWithin = world.usedBy(user) < (PLUS * given[user]!) / 100
          const lastsMs = Math.floor(random.float() * 40) * SECOND
          const isAdmitted = world.admit(Math.floor(random.float() * processes), user, { units, lastsMs })
          if (isWithin) expect([seed, step, isAdmitted]).toEqual([seed, step, true])
          if (isWithin) within++
        }
        await world.pass(Math.ceil(random.float() * 9) * SECOND)
      }
      expect(within).toBeGreaterThan(5)
    }
  }, 120_000)

  test('property: borrowing stops everywhere at most five seconds after it would stop with all ended requests known', async () => {
    let stopped = 0
    for (let seed = 1; seed <= 8; seed++) {
      const random = seededRandom(100 + seed)
      const world = await open([0, 70], processes)
      const [borrower] = world.users
      let refusedSince: number | null = null
      for (let step = 0; step < 80 && PLUS - world.total() > 20; step++) {
        const now = world.app.clock.now()
        if (world.informed.foresee(borrower!).error === null) refusedSince = null
        else refusedSince ??= now
        const [n, lastsMs] = [Math.floor(random.float() * processes), Math.ceil(random.float() * 12) * SECOND]
        if (random.float() < 0.3) world.admit(n, 1, { units: 6, lastsMs })
        const isAdmitted = world.admit(n, 0, { units: 5, lastsMs })
        if (refusedSince !== null && now - refusedSince > REFRESH_MS) {
          expect([seed, step, isAdmitted]).toEqual([seed, step, false])
          stopped++
        }
        await world.pass(SECOND)
      }
    }
    expect(stopped).toBeGreaterThan(20)
  }, 120_000)
})

test('a burst on three processes can exceed what may be borrowed by what starts within five seconds', async () => {
  const world = await open([0, 98], 3)
  expect(world.admit(0, 1, { units: 6, lastsMs: SECOND })).toBe(true) // the lender returns, on one process
  await world.pass(2 * SECOND)
  const bursts = Array.from({ length: 12 }, (_, n) => world.admit(n % 3, 0, { units: 5, lastsMs: 20 * SECOND }))
  expect(bursts.filter((_, n) => n % 3 === 0)).toContain(false)
  await world.pass(REFRESH_MS)
  expect([0, 1, 2].map((n) => world.admit(n, 0, { units: 5, lastsMs: SECOND }))).toEqual([false, false, false])
  expect([0, 1, 2].map((n) => world.admit(n, 1, { units: 5, lastsMs: SECOND }))).toEqual([true, true, true])
})
