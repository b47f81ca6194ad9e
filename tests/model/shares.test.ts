/** Shares of the pool: who is rejected, who borrows, and what is counted. */
import { describe, expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { AppError } from '../../src/errors.ts'
import { seededRandom } from '../../src/lib/random.ts'
import { RollingUse } from '../../src/model/shares/rolling-use.ts'
import { storeShare } from '../../src/model/shares/share-rows.ts'
import { IDLE_MS, type Shares } from '../../src/model/shares/shares.ts'
import { used } from '../proxy/candidates.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { people } from '../support/people.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
/** Credits of a Plus account per five hours. */
const PLUS = 225

const give = async (app: TestApp, id: string, fiveHourPercent: number | null, weeklyPercent: number | null = null) => {
  await commit(app.db, async (tx) => {
    await storeShare(tx, id, { fiveHourPercent, weeklyPercent })
  })
  await app.bindings.shares.reload()
}

/** An app with one account, whose meter shows `usedPercent`, and users with shares of its five-hour window. */
const pool = async (shares: number[], usedPercent = 0) => {
  const app = await testApp({ accounts: [{ plan: 'plus' }] })
  const { add } = people(app)
  const users: string[] = []
  for (const share of shares) {
    const { row } = await add({ role: 'member' })
    users.push(row.id)
    await give(app, row.id, share)
  }
  const meter = (percent: number) =>
    app.bindings.pool.observe(app.members[0]!.id, { ...used(percent, percent / 30), at: app.clock.now() })
  meter(usedPercent)
  await app.clock.advance('1s')
  return { app, users, meter, shares: app.bindings.shares }
}

const ids = { next: 0 }

const work = ({ app, shares }: { app: TestApp; shares: Shares }, userId: string, units: number, isNew = true) => {
  const id = `request-${ids.next++}`
  const isBorrowed = shares.begin(userId, { id, units: 5, isNew })
  shares.end(userId, { id, at: app.clock.now(), units })
  return isBorrowed
}

const rejection = (run: () => unknown): AppError | null => {
  try {
    run()
    return null
  } catch (err) {
    return AppError.from(err)
  }
}

describe('shares', () => {
  test('within a share nothing is rejected or borrowed', async () => {
    const world = await pool([50, 50])
    expect(work(world, world.users[0]!, 100)).toBe(false)
    expect(work(world, world.users[0]!, 12)).toBe(false)
  })

  test('an idle user’s share is borrowed, and marked', async () => {
    const world = await pool([50, 50])
    const [ada] = world.users
    work(world, ada!, PLUS / 2)
    world.meter(50)
    await world.app.clock.advance('1s')
    expect(work(world, ada!, 20)).toBe(true)
    expect(world.shares.describe().map(({ windows }) => windows[0])).toEqual([
      { window: 'five_hour', share: 50, used: 58.89, borrowed: 8.89, lent: 0 },
      { window: 'five_hour', share: 50, used: 0, borrowed: 0, lent: 8.89 },
    ])
  })

  test('when the lender returns, new conversations of the borrower are rejected, and running ones continue', async () => {
    const world = await pool([50, 50])
    const [ada, bob] = world.users
    work(world, ada!, 130)
    world.meter(58)
    await world.app.clock.advance('1s')
    work(world, bob!, 5)
    const error = rejection(() => work(world, ada!, 5))
    expect(error).toMatchObject({ code: 'share_used_up', status: 429, extra: { retryAfterSeconds: IDLE_MS / 1000 } })
    expect(error?.message).toContain('50% of its five-hour capacity')
    expect(work(world, ada!, 5, false)).toBe(true)
    expect(work(world, bob!, 80)).toBe(false)
    await world.app.clock.advance('16m')
    expect(work(world, ada!, 5)).toBe(true)
  })

  test('capacity outside all shares can be borrowed while every user is active', async () => {
    const world = await pool([30, 30])
    const [ada, bob] = world.users
    work(world, bob!, 5)
    work(world, ada!, PLUS * 0.3)
    world.meter(32)
    await world.app.clock.advance('1s')
    expect(work(world, ada!, 40)).toBe(true)
    world.meter(75)
    await world.app.clock.advance('1s')
    expect(rejection(() => work(world, ada!, 5))?.code).toBe('share_used_up')
  })

  test('a share of 0% only borrows', async () => {
    const world = await pool([0, 40])
    const [guest, ada] = world.users
    expect(work(world, guest!, 5)).toBe(true)
    work(world, ada!, 5)
    world.meter(70)
    await world.app.clock.advance('1s')
    const error = rejection(() => work(world, guest!, 5))
    expect(error?.extra.retryAfterSeconds).toBe(IDLE_MS / 1000)
    expect(error?.extra.envelope).toBeUndefined()
  })

  test('without a known window or a share, no request is rejected', async () => {
    const world = await pool([10, 90], 95)
    work(world, world.users[1]!, 5)
    expect(work(world, 'usr_other', 1000)).toBe(false)
    const unknown = await testApp({ accounts: 1 })
    const { row } = await people(unknown).add({ role: 'member' })
    await give(unknown, row.id, 0)
    expect(unknown.bindings.shares.begin(row.id, { id: 'a', units: 5, isNew: true })).toBe(false)
  })

  test('a user’s own share wins over that of the role', async () => {
    const app = await testApp({ accounts: 1 })
    const { add } = people(app)
    const [ada, bob] = [await add({ role: 'member' }), await add({ role: 'member' })]
    await give(app, 'role_member', 20)
    await give(app, ada.row.id, 60)
    const given = app.bindings.shares.describe().map(({ holder }) => [holder.userId, holder.share.fiveHourPercent])
    expect(given).toEqual([
      [ada.row.id, 60],
      [bob.row.id, 20],
    ])
  })

  test('property: a user within their share is never rejected while the pool has capacity', async () => {
    for (let seed = 1; seed <= 15; seed++) {
      const random = seededRandom(seed)
      const given = [10 + random.float() * 20, 10 + random.float() * 30, random.float() * 10, random.float() * 30]
      const world = await pool(given)
      const spent = given.map((): { at: number; units: number }[] => [])
      let total: { at: number; units: number }[] = []
      for (let step = 0; step < 120; step++) {
        const n = Math.floor(random.float() * given.length)
        const now = world.app.clock.now()
        const recent = (list: { at: number; units: number }[]) =>
          list.filter(({ at }) => at > now - 5 * HOUR).reduce((sum, { units }) => sum + units, 0)
        total = total.filter(({ at }) => at > now - 5 * HOUR)
        const left = PLUS - recent(total)
        const units = Math.min(left, 5 + random.float() * 12)
        if (left > 5) {
          const isWithin = recent(spent[n]!) < (PLUS * given[n]!) / 100
          const error = rejection(() => {
            work(world, world.users[n]!, units)
            spent[n]!.push({ at: now, units })
            total.push({ at: now, units })
          })
          if (isWithin) expect([seed, step, error]).toEqual([seed, step, null])
        }
        world.meter(Math.min(100, (recent(total) / PLUS) * 100))
        await world.app.clock.advance(`${Math.ceil(random.float() * 20)}m`)
      }
    }
  })

  test('property: a borrower gets nothing of what an active lender may still use', async () => {
    for (let seed = 1; seed <= 15; seed++) {
      const random = seededRandom(seed)
      const world = await pool([40, 60])
      const [borrower, lender] = world.users
      let [mine, theirs] = [0, 0]
      for (let step = 0; step < 60 && mine + theirs < PLUS; step++) {
        const units = 5 + random.float() * 5
        if (random.float() < 0.3) {
          work(world, lender!, units)
          theirs += units
        } else {
          const isBorrowing = mine >= PLUS * 0.4 && theirs > 0 && theirs < PLUS * 0.6
          const mayBorrow = !isBorrowing || PLUS - mine - theirs > PLUS * 0.6 - theirs
          const isRejected = rejection(() => work(world, borrower!, units)) !== null
          expect([seed, step, isRejected]).toEqual([seed, step, !mayBorrow])
          if (!isRejected) mine += units
        }
        world.meter(Math.min(100, ((mine + theirs) / PLUS) * 100))
        await world.app.clock.advance('2s')
      }
    }
  })
})

describe('what counts', () => {
  test('use leaves the window with the beginning of its step', () => {
    const use = new RollingUse({ windowMs: 5 * HOUR, stepMs: 5 * MINUTE })
    use.add(HOUR + 4 * MINUTE, 10)
    use.add(2 * HOUR, 7)
    expect(use.total(6 * HOUR - 1)).toBe(17)
    expect(use.fallsBelow(10, 3 * HOUR)).toBe(6 * HOUR)
    expect(use.fallsBelow(5, 3 * HOUR)).toBe(7 * HOUR)
    expect(use.fallsBelow(0, 3 * HOUR)).toBeNull()
    expect(use.total(6 * HOUR)).toBe(7)
  })
})
