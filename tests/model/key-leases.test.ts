/** Key limits that several processes share: each has a connection of its own to one file. */
import { afterEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { commit, onChange, onWriter } from '../../db/commit.ts'
import { migrate } from '../../db/migrate.ts'
import { MIGRATIONS } from '../../db/migrations/index.ts'
import { openDatabase } from '../../db/open.ts'
import type { LimitType } from '../../db/schema/keys.ts'
import { createLog } from '../../src/lib/log.ts'
import { seededRandom } from '../../src/lib/random.ts'
import { updateKey } from '../../src/model/keys/api-keys.ts'
import { KeyPatch } from '../../src/model/keys/key-input.ts'
import { forgetLeases, KeyLeases } from '../../src/model/keys/key-leases.ts'
import { getLimits, leasedOf, WINDOW_MS } from '../../src/model/keys/key-limits.ts'
import { KeyRing } from '../../src/model/keys/key-ring.ts'
import {
  deltaStatement,
  type LimitDelta,
  leasePath,
  type Reservation,
  type Use,
} from '../../src/model/keys/reservations.ts'
import { ManualClock } from '../support/clock.ts'
import { aKey, anActor } from '../support/keys.ts'
import { loseAnswer } from '../support/lost-answer.ts'

const cleanUps: (() => void)[] = []
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0).reverse()) cleanUp()
})

const log = createLog({ level: 'error', format: 'text', now: () => 0, write: () => {} })
const WINDOW = 'daily'
const ONE: Use = { inputTokens: 10, outputTokens: 5, costMicros: 7 }

interface Process {
  admit(use?: Use): Promise<Reservation>
  /** The turn has ended, and the ledger has yet to write it. */
  end(turn: Reservation, use?: Use | null): void
  flush(): Promise<unknown>
  free(): number
  reload(): Promise<unknown>
  /** It was killed. */
  die(): void
  /** From now on its connection can only read. */
  loseDisk(): void
  /** Its next commit is stored, but it is not told. */
  loseAnswer(): void
  leases: KeyLeases
}

/** `count` processes on one file, and a key with one limit. */
const world = async (limit: { limitType: LimitType; maxValue: number }, count = 3) => {
  const alive = new Set<number>()
  let started = 0
  const dir = mkdtempSync(join(tmpdir(), 'leases-'))
  cleanUps.push(() => rmSync(dir, { recursive: true, force: true }))
  const clock = new ManualClock()
  const opened = () => {
    const { sqlite, db } = openDatabase(join(dir, 'sluice.db'))
    sqlite.run('PRAGMA synchronous = OFF')
    cleanUps.push(() => sqlite.close())
    return { sqlite, db }
  }
  const { sqlite: first, db } = opened()
  migrate(first, MIGRATIONS, clock.now())
  const { row, key } = await aKey(db, { limits: [{ limitWindow: WINDOW, ...limit }] }, { at: clock.now() })
  const processes: Process[] = []
  const start = async (): Promise<Process> => {
    const number = ++started
    alive.add(number)
    const { sqlite, db } = opened()
    const ring = await KeyRing.open(db)
    let pending: LimitDelta[] = []
    const flush = () =>
      onWriter(
        db,
        () => {
          for (const { keyId: _, ...delta } of pending)
            sqlite.query(deltaStatement).run({ ...delta, process: leasePath(number) })
          pending = []
        },
        null,
      )
    const limitNow = () => ring.find(key)!.limits[0]!
    const leases = new KeyLeases({
      ...{ db, clock, log, processes: count, flush },
      others: {
        number,
        isAlive: (other) => alive.has(other),
        hasEarlier: () => [...alive].some((other) => other < number),
      },
      limit: (id) => ring.limit(id),
      limits: () => ring.limits(),
    })
    const own: Process = {
      admit: async (use = ONE) => leases.reserve(ring.find(key)!, { model: 'strong', ...use }),
      end: (turn, use = ONE) => void pending.push(...turn.settle(use)),
      flush,
      free: () => limitNow().free,
      reload: async () => {
        await flush()
        await ring.reload()
        await leases.giveBack('excess')
      },
      die: () => {
        alive.delete(number)
        processes.splice(processes.indexOf(own), 1)
      },
      loseDisk: () => void sqlite.run('PRAGMA query_only = ON'),
      loseAnswer: () => loseAnswer(db),
      leases,
    }
    onChange(db, async (topics) => {
      if (topics.has('leases')) for (const other of processes) await other.leases.giveBack()
    })
    processes.push(own)
    return own
  }
  for (let i = 0; i < count; i++) await start()
  return {
    clock,
    db,
    processes,
    start,
    stored: async () => {
      const { currentValue, maxValue, resetAt, ...limit } = (await getLimits(db, row.id))[0]!
      return { used: currentValue, leased: leasedOf(limit), max: maxValue, resetAt }
    },
    edit: (patch: Record<string, unknown>) =>
      commit(db, (tx) =>
        updateKey(tx, row.id, KeyPatch.parse(patch), {
          scope: 'all',
          actor: anActor(clock.now()),
          random: seededRandom(3),
        }),
      ),
  }
}

/** Lets the requests that wait go on until `all` have ended. */
const passTime = async <T>(clock: ManualClock, all: Promise<T>): Promise<T> => {
  let isDone = false
  const ended = all.finally(() => {
    isDone = true
  })
  for (let i = 0; i < 500 && !isDone; i++) await clock.advance('20ms')
  return ended
}

const admitted = (results: PromiseSettledResult<Reservation>[]): Reservation[] =>
  results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))

test.each(['leases', 'returns'])('a process that %s and gets no answer never passes the limit', async (what) => {
  const { clock, processes, stored } = await world({ limitType: 'requests', maxValue: 100 })
  const [first, second] = processes
  if (what === 'returns') (await first!.admit()).settle(null)
  first!.loseAnswer()
  if (what === 'returns') await first!.leases.close()
  else
    await passTime(
      clock,
      first!.admit().catch(() => null),
    )
  const turns = Array.from({ length: 150 }, (_, n) => processes[n % 3]!.admit())
  const admissions = await passTime(clock, Promise.allSettled(turns))
  expect(second!.free()).toBe(0)
  expect(admitted(admissions).length).toBeLessThanOrEqual(100)
  expect(admitted(admissions).length).toBeGreaterThanOrEqual(100 - 64)
  const { used, leased } = await stored()
  expect(used + leased).toBeLessThanOrEqual(100)
})

describe('a single process', () => {
  test.each(['leased', 'deleted'])('knows what a commit has %s before the next one begins', async (what) => {
    const { db, processes, edit } = await world({ limitType: 'requests', maxValue: 100 }, 1)
    const [only] = processes
    if (what === 'deleted') await edit({ limits: [] })
    const seen: number[] = []
    const admitting = only!.admit()
    await commit(db, async () => void seen.push(only!.free()))
    await admitting
    expect(seen).toEqual([100])
  })

  test('leases the whole limit once, and the row keeps the books', async () => {
    const { processes, stored } = await world({ limitType: 'requests', maxValue: 100 }, 1)
    const [only] = processes
    const turns = [await only!.admit(), await only!.admit()]
    expect([only!.free(), await stored()]).toMatchObject([98, { used: 0, leased: 100 }])
    for (const turn of turns) only!.end(turn)
    await only!.flush()
    expect(await stored()).toMatchObject({ used: 2, leased: 98 })
    await only!.leases.close()
    expect(await stored()).toMatchObject({ used: 2, leased: 0 })
  })

  test('rejects at once what exceeds the limit, without waiting for others', async () => {
    const { processes } = await world({ limitType: 'requests', maxValue: 2 }, 1)
    const [only] = processes
    only!.end(await only!.admit())
    await only!.admit()
    const error = await only!.admit().catch((err: unknown) => err)
    expect(error).toMatchObject({ code: 'rate_limit_exceeded', extra: { retryAfterSeconds: 5 } })
  })

  test('gives back what a request did not use, and a restart gets what a killed process had leased', async () => {
    const { db, processes, start, stored } = await world({ limitType: 'total_tokens', maxValue: 100 }, 1)
    const [only] = processes
    only!.end(await only!.admit(), { inputTokens: 1, outputTokens: 1, costMicros: 0 })
    expect(only!.free()).toBe(98)
    only!.end(await only!.admit(), null)
    expect(only!.free()).toBe(98)
    await only!.flush()
    expect(await stored()).toMatchObject({ used: 2, leased: 98 })
    only!.die()
    await commit(db, (tx) => forgetLeases(tx))
    const next = await start()
    await next.admit()
    expect(await stored()).toMatchObject({ used: 2, leased: 98 })
  })

  test('drops what a successor that crashed had leased, while an earlier process still ends a stream', async () => {
    const { clock, processes, start, stored } = await world({ limitType: 'requests', maxValue: 100 }, 1)
    const [first] = processes
    await first!.admit() // a long stream
    await first!.leases.close()
    const second = await start()
    for (let i = 0; i < 2; i++) second.end(await second.admit())
    await second.flush()
    second.die()
    const third = await start()
    for (let i = 0; i < 97; i++) await third.admit()
    expect(admitted(await passTime(clock, Promise.allSettled([third.admit()])))).toHaveLength(0)
    expect(await stored()).toMatchObject({ used: 2, leased: 98 })
  })

  test('drops what its predecessor had leased when that died before it could return it', async () => {
    const { processes, start, stored } = await world({ limitType: 'requests', maxValue: 100 }, 1)
    const [first] = processes
    first!.end(await first!.admit())
    await first!.flush()
    const second = await start()
    first!.die()
    for (let i = 0; i < 99; i++) await second.admit()
    await expect(second.admit()).rejects.toMatchObject({ code: 'rate_limit_exceeded' })
    expect(await stored()).toMatchObject({ used: 1, leased: 99 })
  })

  test('leaves room for an earlier process that still has connections', async () => {
    const { clock, processes, start, stored } = await world({ limitType: 'requests', maxValue: 10 }, 1)
    const [first] = processes
    await first!.admit()
    await first!.leases.close()
    const second = await start()
    await second.admit()
    await first!.admit()
    const more = Promise.allSettled(Array.from({ length: 9 }, () => second.admit()))
    expect(admitted(await passTime(clock, more))).toHaveLength(7)
    expect(await stored()).toMatchObject({ used: 0, leased: 10 })
  })

  test.each([1, 4, 8])('admits no request with what it is returning, %d steps into the commit', async (steps) => {
    const { processes, stored } = await world({ limitType: 'requests', maxValue: 9 }, 1)
    const [only] = processes
    await only!.admit()
    const closing = only!.leases.close()
    for (let i = 0; i < steps; i++) await Promise.resolve()
    await only!.admit()
    await closing
    expect((await stored()).leased).toBeGreaterThanOrEqual(2)
  })

  test('can use what it could not return', async () => {
    const { processes } = await world({ limitType: 'requests', maxValue: 2 }, 1)
    const [only] = processes
    await only!.admit()
    only!.loseDisk()
    await only!.leases.close()
    expect(only!.free()).toBe(1)
    await only!.admit()
  })

  test('keeps the limit in memory while the database cannot be written', async () => {
    const { processes, stored } = await world({ limitType: 'requests', maxValue: 2 }, 1)
    const [only] = processes
    only!.loseDisk()
    await only!.admit()
    await only!.admit()
    await expect(only!.admit()).rejects.toMatchObject({ code: 'rate_limit_exceeded' })
    expect(await stored()).toMatchObject({ used: 0, leased: 0 })
  })
})

describe('several processes', () => {
  test.each<[LimitType, number, number]>([
    ['requests', 700, 700],
    ['total_tokens', 15 * 40, 40],
    ['cost_usd', 7 * 61, 61],
    ['output_tokens', 5 * 33, 33],
  ])('a limit by %s admits exactly its maximum, in whichever process', async (limitType, maxValue, turns) => {
    const { clock, processes, stored } = await world({ limitType, maxValue })
    const all = Promise.allSettled(
      Array.from({ length: 3 * turns }, (_, i) => {
        const own = processes[i % processes.length]!
        return own.admit().then((turn) => {
          own.end(turn)
          return turn
        })
      }),
    )
    expect(admitted(await passTime(clock, all))).toHaveLength(turns)
    for (const own of processes) await own.flush()
    expect(await stored()).toMatchObject({ used: maxValue, leased: 0 })
  })

  test('a process gets what another has leased and does not use', async () => {
    const { clock, processes, stored } = await world({ limitType: 'requests', maxValue: 10 })
    const [a, b] = processes
    await a!.admit()
    expect(a!.free()).toBeGreaterThan(0)
    const rest = Promise.allSettled(Array.from({ length: 12 }, () => b!.admit()))
    expect(admitted(await passTime(clock, rest))).toHaveLength(9)
    expect(a!.free()).toBe(0)
    expect(await stored()).toMatchObject({ used: 0, leased: 10 })
  })

  test('what a process that is gone had leased counts as used until the window ends', async () => {
    const { clock, processes, stored } = await world({ limitType: 'requests', maxValue: 60 })
    const [dead, ...others] = processes
    for (let i = 0; i < 4; i++) await dead!.admit()
    const held = (await stored()).leased
    processes.splice(0, 1)
    dead!.leases.giveBack = async () => {} // it cannot answer
    const all = Promise.allSettled(Array.from({ length: 200 }, (_, i) => others[i % 2]!.admit()))
    expect(admitted(await passTime(clock, all))).toHaveLength(60 - held)
    await clock.advance(WINDOW_MS[WINDOW])
    const next = Promise.allSettled(Array.from({ length: 200 }, (_, i) => others[i % 2]!.admit()))
    expect(admitted(await passTime(clock, next))).toHaveLength(60)
  })

  test('a raised limit is used by all, a lowered one by none', async () => {
    const { clock, processes, edit, stored } = await world({ limitType: 'requests', maxValue: 6 })
    const admitAll = async (n: number) =>
      admitted(
        await passTime(clock, Promise.allSettled(Array.from({ length: n }, (_, i) => processes[i % 3]!.admit()))),
      )
    const first = await admitAll(9)
    expect(first).toHaveLength(6)
    await edit({ limits: [{ limitType: 'requests', limitWindow: WINDOW, maxValue: 10 }] })
    for (const own of processes) await own.reload()
    expect(await admitAll(9)).toHaveLength(4)
    await edit({ limits: [{ limitType: 'requests', limitWindow: WINDOW, maxValue: 3 }] })
    for (const own of processes) await own.reload()
    expect(await admitAll(3)).toHaveLength(0)
    expect((await stored()).leased).toBe(10)
  })

  test('lowering a limit takes back slices that are not used', async () => {
    const { clock, processes, edit, stored } = await world({ limitType: 'requests', maxValue: 1000 })
    for (const own of processes) await own.admit()
    expect((await stored()).leased).toBe(3 * 64)
    await edit({ limits: [{ limitType: 'requests', limitWindow: WINDOW, maxValue: 20 }] })
    for (const own of processes) await own.reload()
    expect((await stored()).leased).toBe(20)
    const all = Promise.allSettled(Array.from({ length: 60 }, (_, i) => processes[i % 3]!.admit()))
    expect(admitted(await passTime(clock, all))).toHaveLength(17)
  })

  test('a reset of the use makes room again', async () => {
    const { clock, processes, edit } = await world({ limitType: 'requests', maxValue: 6 })
    const admitAll = async () => {
      const all = processes.flatMap((own) => [own, own, own])
      const turns = Promise.allSettled(all.map((own) => own.admit().then((turn) => own.end(turn))))
      return (await passTime(clock, turns)).filter(({ status }) => status === 'fulfilled')
    }
    expect(await admitAll()).toHaveLength(6)
    for (const own of processes) await own.flush()
    await edit({ resetUsage: true })
    for (const own of processes) await own.reload()
    expect(await admitAll()).toHaveLength(6)
  })

  test('a request that ends in the next window is not charged there', async () => {
    const { clock, processes, stored } = await world({ limitType: 'requests', maxValue: 10 })
    const [a, b] = processes
    const long = await a!.admit()
    await clock.advance(WINDOW_MS[WINDOW])
    await b!.admit()
    const { leased, resetAt } = await stored()
    a!.end(long)
    await a!.flush()
    expect(await stored()).toMatchObject({ used: 0, leased, resetAt })
  })
})
