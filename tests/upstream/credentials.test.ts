/** Access tokens: refreshed one at a time, stored before use, without affecting the account. */

import { describe, expect, test } from 'bun:test'
import { announceAll } from '../../db/commit.ts'
import { AppError } from '../../src/errors.ts'
import type { Credentials } from '../../src/upstream/credentials.ts'
import { RefreshError } from '../../src/upstream/oauth.ts'
import { loseAnswer, loseDatabase } from '../support/lost-answer.ts'
import { until } from '../support/until.ts'
import { poolOfOne, rejection } from './pool-of-one.ts'

const DAY_MS = 86_400_000

describe('a valid token', () => {
  test('is returned without waiting', async () => {
    const { credentials, id, sim } = await poolOfOne()
    expect(credentials.fresh(id)).toMatchObject({
      id,
      accessToken: sim.accessToken,
      chatgptAccountId: sim.chatgptAccountId,
    })
  })

  test('of an unknown account is an error', async () => {
    const { credentials } = await poolOfOne()
    expect(() => credentials.fresh('acc_unknown')).toThrow(new AppError('account_not_found'))
  })

  test('is refreshed after eight days, not before', async () => {
    const { credentials, id, clock, sim, refreshes } = await poolOfOne()
    const first = sim.accessToken
    await clock.advance(8 * DAY_MS - 1)
    expect(credentials.fresh(id)).toMatchObject({ accessToken: first })
    expect(credentials.due()).toEqual([])
    await clock.advance(1)
    expect(credentials.due()).toEqual([id])
    expect((await credentials.fresh(id)).accessToken).toBe(sim.accessToken)
    expect(sim.accessToken).not.toBe(first)
    expect(refreshes()).toBe(1)
    expect(credentials.due()).toEqual([])
  })

  test('is refreshed when it has expired, however new', async () => {
    const { credentials, id, clock, sim } = await poolOfOne({ accessTokenTtlMs: 3_600_000 })
    const first = sim.accessToken
    await clock.advance('1h')
    expect((await credentials.fresh(id)).accessToken).not.toBe(first)
  })
})

describe('a rejected token', () => {
  test('is refreshed once for all requests that got the rejection', async () => {
    const { credentials, id, sim, refreshes, upstream } = await poolOfOne()
    const rejected = sim.accessToken
    const renewed = await Promise.all(Array.from({ length: 20 }, () => credentials.refresh(id, rejected)))
    expect(new Set(renewed.map(({ accessToken }) => accessToken))).toEqual(new Set([sim.accessToken]))
    expect(refreshes()).toBe(1)
    expect((await credentials.refresh(id, rejected)).accessToken).toBe(sim.accessToken)
    expect(refreshes()).toBe(1)
    expect(upstream.oddities).toEqual([])
  })

  test('is refreshed once when the identity service returns the same one', async () => {
    const { credentials, id, sim, refreshes } = await poolOfOne()
    const { accessToken, idToken } = sim
    const body = { access_token: accessToken, id_token: idToken, refresh_token: 'rt_next' }
    sim.next({ on: 'token', status: 200, body })
    expect((await credentials.refresh(id, accessToken)).accessToken).toBe(accessToken)
    expect(refreshes()).toBe(1)
  })

  test('keeps its refresh token safe: each rotation is spent once', async () => {
    const { credentials, id, sim, stored } = await poolOfOne()
    for (let round = 0; round < 5; round++) {
      const { accessToken } = await credentials.refresh(id, sim.accessToken)
      expect(accessToken).toBe(sim.accessToken)
      expect(await stored()).toEqual({ accessToken, refreshToken: sim.refreshToken, idToken: sim.idToken })
    }
  })

  test('is stored before any request gets the new one', async () => {
    const { credentials, id, sim, stored } = await poolOfOne()
    const seen = credentials
      .refresh(id, sim.accessToken)
      .then(async ({ accessToken }) => [accessToken, (await stored()).accessToken])
    const [given, kept] = await seen
    expect(kept).toBe(given!)
  })

  test('is not refreshed when it could not be stored', async () => {
    const { credentials, id, sim, sqlite, clock, refreshes, failures } = await poolOfOne()
    const rejected = sim.accessToken
    sqlite.run("CREATE TRIGGER full BEFORE UPDATE ON accounts BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    const err = await rejection(credentials.refresh(id, rejected))
    const message = 'The database cannot store a new token right now.'
    expect(err).toMatchObject({ code: 'upstream_auth_failed', cause: { code: null, message } })
    expect([refreshes(), failures]).toEqual([0, []])
    sqlite.run('DROP TRIGGER full')
    await clock.advance('5s')
    expect((await credentials.refresh(id, rejected)).accessToken).toBe(sim.accessToken)
    expect(refreshes()).toBe(1)
  })

  test('that cannot be stored is not used, not lost, and not refreshed again', async () => {
    const { credentials, id, sim, sqlite, stored, clock, refreshes, failures } = await poolOfOne()
    const rejected = sim.accessToken
    sim.next({ on: 'token', delayHeadersMs: 1000 })
    const waiting = rejection(credentials.refresh(id, rejected))
    await clock.advance(0)
    sqlite.run("CREATE TRIGGER full BEFORE UPDATE ON accounts BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    await clock.advance('8s')
    expect(await waiting).toMatchObject({ code: 'upstream_auth_failed', cause: { code: null } })
    await clock.advance('1m')
    await rejection(credentials.refresh(id, rejected))
    sqlite.run('DROP TRIGGER full')
    await clock.advance('30s')
    expect((await credentials.refresh(id, rejected)).accessToken).toBe(sim.accessToken)
    expect(await stored()).toEqual({
      accessToken: sim.accessToken,
      refreshToken: sim.refreshToken,
      idToken: sim.idToken,
    })
    expect(refreshes()).toBe(1)
    expect(failures).toEqual([])
    expect(clock.pending).toBe(0)
  })

  test('yields to an import also while it cannot be stored', async () => {
    const { credentials, id, sim, sqlite, clock, db, sealer, refreshes } = await poolOfOne()
    const rejected = sim.accessToken
    sim.next({ on: 'token', delayHeadersMs: 1000 })
    const waiting = rejection(credentials.refresh(id, rejected))
    await clock.advance(0)
    sqlite.run("CREATE TRIGGER full BEFORE UPDATE ON accounts BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    await clock.advance('8s')
    await waiting
    sqlite.run('DROP TRIGGER full')
    const column = (name: string) => `${name}_token_sealed = ?`
    sqlite.run(`UPDATE accounts SET ${column('access')}, ${column('refresh')}`, [
      sealer.seal('imported-access', `accounts.access_token.${id}`),
      sealer.seal('imported-refresh', `accounts.refresh_token.${id}`),
    ])
    await announceAll(db)
    await clock.advance('30s')
    expect((await credentials.refresh(id, rejected)).accessToken).toBe('imported-access')
    expect(refreshes()).toBe(1)
  })

  test('is replaced by tokens imported in the meantime', async () => {
    const { credentials, id, sim, sqlite, stored, sealer } = await poolOfOne()
    const refreshing = credentials.refresh(id, sim.accessToken)
    sqlite.run('UPDATE accounts SET access_token_sealed = ?, refresh_token_sealed = ?', [
      sealer.seal('imported-access', `accounts.access_token.${id}`),
      sealer.seal('imported-refresh', `accounts.refresh_token.${id}`),
    ])
    expect((await refreshing).accessToken).toBe('imported-access')
    expect((await stored()).refreshToken).toBe('imported-refresh')
    const renewals = sqlite.query("SELECT count(*) AS n FROM account_events WHERE result = 'renewed'").get()
    expect(renewals).toEqual({ n: 0 })
  })
})

describe('a refresh beside another process', () => {
  test('waits for its lock, and uses the token it stored instead of spending its own', async () => {
    const { credentials, another, lockElsewhere, id, sim, refreshes, clock, upstream } = await poolOfOne()
    const beside = await another()
    const rejected = sim.accessToken
    lockElsewhere(true)
    const waiting = credentials.refresh(id, rejected)
    await clock.advance('1s')
    expect(refreshes()).toBe(0)
    lockElsewhere(false)
    await beside.refresh(id, rejected)
    await clock.advance('1s')
    expect((await waiting).accessToken).toBe(sim.accessToken)
    expect(refreshes()).toBe(1)
    expect(upstream.oddities).toEqual([])
  })

  test('that ended before this process noticed spends nothing', async () => {
    const { credentials, another, id, sim, refreshes, failures } = await poolOfOne()
    const beside = await another()
    const rejected = sim.accessToken
    const { accessToken } = await credentials.refresh(id, rejected)
    // Nothing has told the other process: it still holds the spent token.
    expect((await beside.refresh(id, rejected)).accessToken).toBe(accessToken)
    expect([refreshes(), failures]).toEqual([1, []])
  })

  test('goes on when that process died without a new token', async () => {
    const { credentials, lockElsewhere, id, sim, refreshes, clock } = await poolOfOne()
    lockElsewhere(true)
    const waiting = credentials.refresh(id, sim.accessToken)
    await clock.advance('500ms')
    lockElsewhere(false)
    await clock.advance('100ms')
    expect((await waiting).accessToken).toBe(sim.accessToken)
    expect(refreshes()).toBe(1)
  })

  test('holds the lock until the new token is stored, and releases it after a failure', async () => {
    const { credentials, locks, id, sim, sqlite, clock } = await poolOfOne()
    sim.next({ on: 'token', status: 503, body: {} })
    await credentials.refresh(id, sim.accessToken).catch(() => {})
    expect(locks).toEqual([])
    await clock.advance('5s')
    const waiting = credentials.refresh(id, sim.accessToken)
    sqlite.run(
      "CREATE TRIGGER full BEFORE UPDATE OF access_token_sealed ON accounts BEGIN SELECT RAISE(ABORT, 'full'); END",
    )
    await clock.advance('1s')
    expect(locks).toEqual([id])
    sqlite.run('DROP TRIGGER full')
    await clock.advance('10s')
    await waiting
    expect(locks).toEqual([])
  })
})

describe('a refresh beside another node, which can lose its lock while it waits for the upstream', () => {
  test('does not spend a token that the other has begun to exchange, until it can be expected back', async () => {
    const { another, id, sim, clock, refreshes } = await poolOfOne()
    const rejected = sim.accessToken
    sim.next({ on: 'token', delayHeadersMs: 1000 })
    const first = (await another({ node: 1 })).refresh(id, rejected)
    await until(() => refreshes() === 1)
    const second = await another({ node: 2 })
    expect(await rejection(second.refresh(id, rejected))).toMatchObject({ code: 'upstream_auth_failed' })
    expect(refreshes()).toBe(1)
    await clock.advance('1s')
    await first
    await second.reload()
    expect((await second.refresh(id, rejected)).accessToken).toBe(sim.accessToken)
    expect(refreshes()).toBe(1)
    await second.refresh(id, sim.accessToken)
    expect(refreshes()).toBe(2)
  })

  test('spends it after ten minutes, because the other does not come back', async () => {
    const { another, id, sim, clock, refreshes } = await poolOfOne()
    sim.next({ on: 'token', delayHeadersMs: 3_600_000 })
    void (await another({ node: 1 })).refresh(id, sim.accessToken).catch(() => {})
    await until(() => refreshes() === 1)
    await clock.advance('10m')
    const second = await another({ node: 2 })
    await second.refresh(id, sim.accessToken)
    expect(refreshes()).toBe(2)
  })

  test('is soon possible again for the other if this one did not begin, because the database was lost', async () => {
    const { another, id, sim, clock, db, refreshes } = await poolOfOne()
    const first = await another({ node: 1 })
    const isMarkKept = loseAnswer(db, { sql: /delete from "facts"/, isStored: false })
    loseAnswer(db)
    expect(await rejection(first.refresh(id, sim.accessToken))).toMatchObject({ code: 'upstream_auth_failed' })
    expect([isMarkKept(), refreshes()]).toEqual([true, 0])
    await clock.advance('11s')
    const second = await another({ node: 2 })
    await second.refresh(id, sim.accessToken)
    expect(refreshes()).toBe(1)
  })
})

describe('the mark of a refresh, while the database is lost', () => {
  /** Three refreshes that fail, one after another. */
  const refreshThrice = async (credentials: Credentials, { id, sim, clock }: Awaited<ReturnType<typeof poolOfOne>>) => {
    for (let round = 0; round < 3; round++) {
      await rejection(credentials.refresh(id, sim.accessToken))
      await clock.advance('5s')
    }
  }

  test('is not removed if it was never stored', async () => {
    const world = await poolOfOne()
    const credentials = await world.another({ node: 1 })
    loseDatabase(world.db)
    await refreshThrice(credentials, world)
    expect([world.refreshes(), world.clock.pending]).toEqual([0, 0])
  })

  test('waits for one removal, however many refreshes fail, until the database is back', async () => {
    const world = await poolOfOne()
    const { another, id, sim, clock, db, refreshes } = world
    const credentials = await another({ node: 1 })
    sim.next({ on: 'token', delayHeadersMs: 1000, status: 500 })
    const first = rejection(credentials.refresh(id, sim.accessToken))
    await until(() => refreshes() === 1)
    const restore = loseDatabase(db)
    await clock.advance('6s')
    await first
    await refreshThrice(credentials, world)
    expect([refreshes(), clock.pending]).toEqual([1, 1])
    restore()
    await clock.advance('10s')
    expect(clock.pending).toBe(0)
    await (await another({ node: 2 })).refresh(id, sim.accessToken)
    expect(refreshes()).toBe(2)
  })

  test('is not removed after the shutdown has begun', async () => {
    const world = await poolOfOne()
    const { another, id, sim, clock, db, refreshes } = world
    const credentials = await another({ node: 1 })
    sim.next({ on: 'token', delayHeadersMs: 1000, status: 500 })
    const first = rejection(credentials.refresh(id, sim.accessToken))
    await until(() => refreshes() === 1)
    loseDatabase(db)
    await clock.advance('6s')
    await first
    expect(clock.pending).toBe(1)
    await credentials.settled(4000)
    expect(clock.pending).toBe(0)
  })
})

describe('a permanently failed refresh', () => {
  test.each(['refresh_token_expired', 'refresh_token_invalidated', 'app_session_terminated', 'account_deactivated'])(
    '%s is reported once, by its code',
    async (code) => {
      const { credentials, id, sim, failures } = await poolOfOne()
      sim.revoke(code)
      const err = await rejection(credentials.refresh(id, sim.accessToken))
      expect(err).toMatchObject({ code: 'upstream_auth_failed', cause: { name: 'RefreshError', code } })
      expect(failures).toEqual([{ id, code }])
    },
  )

  test('a deleted account is recognized with 403, too', async () => {
    const { credentials, id, sim, failures } = await poolOfOne()
    sim.next({ on: 'token', status: 403, body: { error: { code: 'account_deactivated', message: 'Gone.' } } })
    await rejection(credentials.refresh(id, sim.accessToken))
    expect(failures).toEqual([{ id, code: 'account_deactivated' }])
  })

  test('does not use a due token any more', async () => {
    const { credentials, id, sim, clock } = await poolOfOne()
    await clock.advance(8 * DAY_MS)
    sim.revoke('refresh_token_expired')
    expect(await rejection(Promise.resolve(credentials.fresh(id)))).toMatchObject({ code: 'upstream_auth_failed' })
  })

  test('a token damaged in the database needs sign-in without an upstream call', async () => {
    const { credentials, id, db, sqlite, failures, refreshes } = await poolOfOne()
    sqlite.run("UPDATE accounts SET refresh_token_sealed = replace(refresh_token_sealed, '.', '-')")
    await announceAll(db)
    expect(credentials.due()).toEqual([id])
    for (let n = 0; n < 2; n++)
      expect(await rejection(Promise.resolve(credentials.fresh(id)))).toMatchObject({ code: 'upstream_auth_failed' })
    expect(failures).toEqual([{ id, code: 'tokens_unreadable' }])
    expect(refreshes()).toBe(0)
  })

  test('a spent refresh token is one', async () => {
    const { credentials, id, sim, failures } = await poolOfOne()
    const rejected = sim.accessToken
    sim.signInAgain() // elsewhere, with the tokens we hold
    await rejection(credentials.refresh(id, rejected))
    expect(failures).toEqual([{ id, code: 'refresh_token_reused' }])
  })
})

describe('tokens imported during a refresh of the previous ones', () => {
  /** A refresh that is rejected after `delayHeadersMs`, and tokens that another process imports in the meantime. */
  const renewing = async (delayHeadersMs: number) => {
    const pool = await poolOfOne()
    const { credentials, id, sim, sealer, sqlite, db } = pool
    const rejected = sim.accessToken
    const body = { error: { code: 'refresh_token_reused', message: 'Spent.' } }
    sim.next({ on: 'token', delayHeadersMs, status: 400, body })
    const waiting = credentials.refresh(id, rejected)
    await until(() => pool.refreshes() === 1)
    const importTokens = async ({ isSeen }: { isSeen: boolean }) => {
      sqlite.run('UPDATE accounts SET access_token_sealed = ?, refresh_token_sealed = ?', [
        sealer.seal('imported-access', `accounts.access_token.${id}`),
        sealer.seal(sim.refreshToken, `accounts.refresh_token.${id}`),
      ])
      if (isSeen) await announceAll(db)
    }
    return { ...pool, rejected, waiting, importTokens }
  }

  test.each([true, false])('are not charged for rejections of the previous ones (seen: %p)', async (isSeen) => {
    const { credentials, id, clock, sqlite, rejected, waiting, failures, importTokens } = await renewing(3000)
    await importTokens({ isSeen })
    await clock.advance('3s')
    expect((await waiting).accessToken).toBe('imported-access')
    expect((await credentials.refresh(id, rejected)).accessToken).toBe('imported-access')
    expect(failures).toEqual([])
    expect(sqlite.query("SELECT count(*) AS n FROM account_events WHERE kind = 'token'").get()).toEqual({ n: 0 })
  })

  test('are used immediately, also by requests that waited too long for the previous ones', async () => {
    const { credentials, id, clock, rejected, waiting, refreshes, importTokens } = await renewing(20_000)
    await importTokens({ isSeen: true })
    const served = await Promise.race([credentials.refresh(id, rejected), Bun.sleep(1)])
    expect(served?.accessToken).toBe('imported-access')
    await clock.advance('8s')
    expect((await waiting).accessToken).toBe('imported-access')
    expect(refreshes()).toBe(1)
  })

  test('are refreshed after that and not in parallel, without the pause after a failure', async () => {
    const { credentials, id, sim, clock, waiting, refreshes, failures, importTokens } = await renewing(3000)
    await importTokens({ isSeen: true })
    const renewed = credentials.refresh(id, 'imported-access')
    await clock.advance('2s')
    expect(refreshes()).toBe(1)
    await clock.advance('1s')
    await waiting
    expect((await renewed).accessToken).toBe(sim.accessToken)
    expect([refreshes(), failures]).toEqual([2, []])
  })
})

describe('a temporarily failed refresh', () => {
  test.each([302, 403, 404, 408, 429, 500, 503])(
    '%d charges no account, and is not repeated within five seconds',
    async (status) => {
      const { credentials, id, sim, failures, refreshes, clock } = await poolOfOne()
      sim.next({ on: 'token', status, body: 'no' })
      const rejected = sim.accessToken
      const err = await rejection(credentials.refresh(id, rejected))
      expect(err).toMatchObject({ code: 'upstream_auth_failed', cause: { code: null } })
      await rejection(credentials.refresh(id, rejected))
      expect(refreshes()).toBe(1)
      await clock.advance('5s')
      expect((await credentials.refresh(id, rejected)).accessToken).toBe(sim.accessToken)
      expect(failures).toEqual([])
    },
  )

  test('still uses a due token while the upstream may accept it', async () => {
    const { credentials, id, sim, clock } = await poolOfOne()
    const first = sim.accessToken
    await clock.advance(8 * DAY_MS)
    sim.next({ on: 'token', reset: true })
    expect((await credentials.fresh(id)).accessToken).toBe(first)
    expect(credentials.due()).toEqual([])
  })

  test('is retried within seconds, also when the clock is set back in between', async () => {
    const { credentials, id, clock, sim, refreshes } = await poolOfOne()
    const rejected = sim.accessToken
    sim.next({ on: 'token', status: 503, body: {} })
    await rejection(credentials.refresh(id, rejected))
    clock.set(-DAY_MS)
    await clock.advance('5s')
    expect((await credentials.refresh(id, rejected)).accessToken).toBe(sim.accessToken)
    expect(refreshes()).toBe(2)
  })

  test('delays requests at most 8 s; a later answer is still stored', async () => {
    const { credentials, id, sim, clock, refreshes, stored, failures } = await poolOfOne()
    const rejected = sim.accessToken
    sim.next({ on: 'token', delayHeadersMs: 20_000 })
    const waiting = rejection(credentials.refresh(id, rejected))
    await clock.advance('8s')
    expect(await waiting).toMatchObject({ code: 'upstream_auth_failed', cause: { code: null } })
    await rejection(credentials.refresh(id, rejected)) // immediately
    await clock.advance('12s')
    expect((await credentials.refresh(id, rejected)).accessToken).toBe(sim.accessToken)
    expect((await stored()).refreshToken).toBe(sim.refreshToken)
    expect(refreshes()).toBe(1)
    expect(failures).toEqual([])
    expect(clock.pending).toBe(0)
  })

  test('still uses a due token while the response is late', async () => {
    const { credentials, id, sim, clock } = await poolOfOne()
    const first = sim.accessToken
    await clock.advance(8 * DAY_MS)
    sim.next({ on: 'token', delayHeadersMs: 20_000 })
    const waiting = credentials.fresh(id)
    await clock.advance('8s')
    expect((await waiting).accessToken).toBe(first)
    expect((await credentials.fresh(id)).accessToken).toBe(first)
  })

  test('times out when nothing comes at all', async () => {
    const { credentials, id, sim, clock, timeOut, failures } = await poolOfOne()
    sim.next({ on: 'token', delayHeadersMs: 60_000 })
    const err = rejection(credentials.refresh(id, sim.accessToken))
    await clock.advance(0)
    timeOut()
    expect(((await err) as AppError).cause).toBeInstanceOf(RefreshError)
    expect(failures).toEqual([])
  })
})

describe('before the database is closed', () => {
  test('waits for a running exchange', async () => {
    const { credentials, id, sim, clock, stored } = await poolOfOne()
    sim.next({ on: 'token', delayHeadersMs: 3000 })
    const refreshing = credentials.refresh(id, sim.accessToken)
    const settled = credentials.settled(4000).then(async () => (await stored()).accessToken)
    await clock.advance('3s')
    expect(await settled).toBe((await refreshing).accessToken)
    expect(clock.pending).toBe(0)
  })

  test('but not forever, and returns immediately without one', async () => {
    const { credentials, id, sim, clock } = await poolOfOne()
    await credentials.settled(4000)
    sim.next({ on: 'token', delayHeadersMs: 30_000 })
    credentials.refresh(id, sim.accessToken).catch(() => {})
    const settled = credentials.settled(4000)
    await clock.advance('4s')
    await settled
  })
})
