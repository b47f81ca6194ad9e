/** Everything that writes at the same time, while each statement takes a random while: memory and rows still agree. */
import { expect, test } from 'bun:test'
import { commit, writeWith } from '../../db/commit.ts'
import { type Connection, onThisThread } from '../../db/connection.ts'
import { apiKeyLimits, apiKeys } from '../../db/schema/keys.ts'
import { seededRandom } from '../../src/lib/random.ts'
import { getAccount, getState, pauseAccount, reactivateAccount } from '../../src/model/accounts/accounts.ts'
import { updateKey } from '../../src/model/keys/api-keys.ts'
import { codexBody, expectNothingLeft, getAnswer, type TestApp, testApp } from '../support/app.ts'
import { faults } from '../support/upstream/faults.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const LIMIT = { limitType: 'requests', limitWindow: 'daily', modelFilter: '' } as const
const ROUNDS = 12

const paused = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Answers in order, each after up to eight turns of the event loop. */
const slowly = (connection: Connection, float: () => number): Connection => {
  let last: Promise<unknown> = Promise.resolve()
  return {
    call: (procedure, args) => {
      const next = last.then(async () => {
        for (let n = Math.floor(float() * 8); n > 0; n--) await paused()
        return connection.call(procedure, args)
      })
      last = next.catch(() => {})
      return next
    },
  }
}

const world = async (seed: number) => {
  const app = await testApp({ accounts: 4, settings: { apiKeyAuthEnabled: true, routingStrategy: 'round_robin' } })
  const keys = [await app.key({ limits: [{ ...LIMIT, maxValue: 1000 }] }), await app.key()]
  const { float } = seededRandom(seed)
  writeWith(
    app.db,
    slowly(
      onThisThread(() => app.sqlite),
      float,
    ),
  )
  return { app, keys, float }
}

/**
 * Looks at memory in every turn of the event loop. What requests used never shrinks, and an account at its limit stays
 * there until its reset, which is far away; only the first one is paused and reactivated.
 */
const watchMemory = ({ bindings, members }: TestApp) => {
  const wrong: string[] = []
  const used = new Map<string, number>()
  const limited = new Set<string>()
  let isRunning = true
  const look = () => {
    for (const { id, settled } of bindings.keys.limits()) {
      if (settled < (used.get(id) ?? 0)) wrong.push(`${id}: ${settled} used after ${used.get(id)}`)
      used.set(id, settled)
    }
    for (const { id } of members.slice(1)) {
      const status = bindings.pool.get(id)?.state.status ?? 'missing'
      if (status === 'rate_limited' || status === 'quota_exceeded') limited.add(id)
      else if (limited.has(id)) wrong.push(`${id}: ${status} after its limit`)
    }
    if (isRunning) setImmediate(look)
  }
  look()
  const stop = () => {
    isRunning = false
    return wrong
  }
  return { stop }
}

const actorNow = ({ clock }: TestApp) => ({ id: 'test', method: null, address: null, at: clock.now() })

test.each([1, 2, 3])(
  'requests, account states, keys and settings change together (seed %d)',
  async (seed) => {
    const { app, keys, float } = await world(seed)
    const { pool, ledger } = app.bindings
    let served = 0
    const serve = async (n: number) => {
      const { key } = keys[n % keys.length]!
      if (float() < 0.3) app.members[n % 4]!.sim.next(faults.usageLimit({ resetsAt: app.clock.now() + 3_600_000 }))
      const { status } = await getAnswer(app, NATIVE, {
        json: codexBody(`turn ${n}`),
        headers: { authorization: `Bearer ${key}`, 'session-id': `s${n}` },
      })
      if (status === 200) served++
    }
    const changes: (() => Promise<unknown>)[] = [
      () => commit(app.db, (tx) => pauseAccount(tx, app.members[0]!.id, actorNow(app))),
      () => commit(app.db, (tx) => reactivateAccount(tx, app.members[0]!.id, actorNow(app))),
      () => app.change({ stickyThreadsEnabled: float() < 0.5 } as never),
      () =>
        commit(app.db, (tx) =>
          updateKey(
            tx,
            keys[0]!.row.id,
            { limits: [{ ...LIMIT, maxValue: 1000 + Math.floor(float() * 100) }] } as never,
            {
              scope: 'all',
              actor: actorNow(app),
              random: seededRandom(seed),
            },
          ),
        ),
      () => ledger.flush(),
    ]
    const watching = watchMemory(app)
    for (let round = 0; round < ROUNDS; round++) {
      const doing = Array.from({ length: 6 }, (_, n) => serve(round * 6 + n))
      doing.push(...changes.filter(() => float() < 0.6).map(async (change) => void (await change().catch(() => {}))))
      await Promise.all(doing)
      await app.clock.advance(100)
    }
    expect(watching.stop()).toEqual([])
    await app.clock.advance('5s')
    await ledger.flush()
    await expectNothingLeft(app)

    const rows = await app.rows()
    expect(rows.filter(({ status }) => status === 'ok')).toHaveLength(served)
    for (const { row } of keys) {
      const own = rows.filter(({ keyId }) => keyId === row.id)
      const stored = (await app.db.select().from(apiKeys).all()).find(({ id }) => id === row.id)
      expect(stored?.requestCount).toBe(own.length)
    }
    for (const { id } of app.members) expect(pool.get(id)?.state).toEqual(getState(await getAccount(app.db, id)))
    const [limit] = await app.db.select().from(apiKeyLimits).all()
    const live = app.bindings.keys.limit(limit!.id)
    expect([live?.settled, live?.maxValue]).toEqual([limit!.currentValue, limit!.maxValue])
  },
  60_000,
)
