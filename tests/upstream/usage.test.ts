/**
 * Fetching usage: retries after temporary failures, one refreshed token, and what a rejection means for the account.
 */
import { describe, expect, test } from 'bun:test'
import { AppError } from '../../src/errors.ts'
import { UpstreamRejection } from '../../src/upstream/account-call.ts'
import { fetchUsage, judgeUsageFailure } from '../../src/upstream/usage.ts'
import { poolOfOne, rejection } from './pool-of-one.ts'

const usageRequests = ({ upstream }: Awaited<ReturnType<typeof poolOfOne>>) =>
  upstream.requests.filter(({ path }) => path.startsWith('/backend-api/wham/usage'))

test('windows are assigned by their length, with the time of the report', async () => {
  const one = await poolOfOne({ plan: 'pro' })
  const now = one.clock.now()
  one.sim.setUsage({ primary: { usedPercent: 40, windowMinutes: 10_080, resetAt: now + 60_000 } })
  const snapshot = await fetchUsage(one.deps, one.id)
  expect(snapshot).toMatchObject({ at: now, planType: 'pro', windows: { fiveHour: null, weekly: { usedPercent: 40 } } })
  expect(one.upstream.oddities).toEqual([])
})

test('an expired token is refreshed once and the request repeated', async () => {
  const one = await poolOfOne()
  one.sim.expireAccessToken()
  expect(await fetchUsage(one.deps, one.id)).toMatchObject({ planType: 'plus' })
  expect(one.refreshes()).toBe(1)
  expect(usageRequests(one)).toHaveLength(2)
})

describe('a temporary failure', () => {
  test.each([408, 429, 500, 502])('%d is retried after a pause that doubles', async (status) => {
    const one = await poolOfOne()
    one.sim.next({ on: 'usage', status }, { on: 'usage', status })
    const answer = fetchUsage(one.deps, one.id)
    await one.clock.advance(499)
    expect(usageRequests(one)).toHaveLength(1)
    await one.clock.advance(1)
    expect(usageRequests(one)).toHaveLength(2)
    await one.clock.advance(1000)
    expect(await answer).toMatchObject({ planType: 'plus' })
    expect(usageRequests(one)).toHaveLength(3)
    expect(one.clock.pending).toBe(0)
  })

  test('is an error after the third attempt', async () => {
    const one = await poolOfOne()
    one.sim.always({ on: 'usage', status: 503, body: { error: { code: 'overloaded', message: 'Later.' } } })
    const err = rejection(fetchUsage(one.deps, one.id))
    await one.clock.advance('2s')
    expect(await err).toMatchObject({ status: 503, code: 'overloaded', reason: 'Later.' })
    expect(usageRequests(one)).toHaveLength(3)
  })

  test('is a broken connection too', async () => {
    const one = await poolOfOne()
    one.sim.next({ on: 'usage', reset: true })
    const answer = fetchUsage(one.deps, one.id)
    await one.clock.advance('1s')
    expect(await answer).toMatchObject({ planType: 'plus' })
  })
})

test('is a timeout after ten seconds', async () => {
  const one = await poolOfOne()
  one.sim.always({ on: 'usage', delayHeadersMs: 3_600_000 })
  const err = rejection(fetchUsage(one.deps, one.id))
  await one.clock.advance('10s')
  expect(await err).toMatchObject({ code: 'upstream_timeout' })
})

test('aborting rejects with the reason', async () => {
  const one = await poolOfOne()
  one.sim.always({ on: 'usage', delayHeadersMs: 3_600_000 })
  const stop = new AbortController()
  const err = rejection(fetchUsage(one.deps, one.id, stop.signal))
  await one.clock.advance(1)
  stop.abort('enough')
  expect(await err).toBe('enough')
})

test.each(['not json', '{"unrelated":true}', '[]'])('an empty report is an error: %s', async (body) => {
  const one = await poolOfOne()
  one.sim.next({ on: 'usage', status: 200, body })
  expect(await rejection(fetchUsage(one.deps, one.id))).toMatchObject({ code: 'upstream_error' })
})

describe('a rejection means for the account', () => {
  const verdict = (status: number, code: string | null = null, reason: string | null = null) =>
    judgeUsageFailure(new UpstreamRejection(status, code, reason))

  test.each([
    [401, 'token_invalidated'],
    [403, 'account_suspended'],
    [402, 'deactivated_workspace'],
    [404, 'account_deleted'],
  ])('%d %s: what the code means', (status, code) => {
    expect(verdict(status, code)).toMatchObject({ kind: 'auth_failed', code })
  })

  test.each([401, 402, 403])('%d with the sentence "has been deactivated": deactivated', (status) => {
    const said = verdict(status, null, 'Your OpenAI account has been deactivated, please check your email.')
    const evidence = expect.stringContaining(String(status))
    expect(said).toMatchObject({ kind: 'auth_failed', code: 'account_deactivated', evidence })
  })

  test.each([400, 404, 500])('%d with the same message: nothing permanent', (status) => {
    expect(verdict(status, null, 'The deployment has been deactivated.').kind).not.toBe('auth_failed')
  })

  test.each([
    [402, null],
    [402, 'payment_required'],
    [404, null],
    [404, 'not_found'],
    [404, 'route_not_found'],
  ])('%d %p nothing permanent: the address may be wrong', (status, code) => {
    expect(verdict(status, code, 'Not Found')).toEqual({ kind: 'hold' })
  })

  test.each([500, 503])('%d with a permanent code nothing permanent: the upstream itself failed', (status) => {
    expect(verdict(status, 'account_deleted')).toEqual({ kind: 'passing' })
  })

  test.each([401, 403])('%d without a reason: retry later', (status) => {
    expect(verdict(status)).toEqual({ kind: 'hold' })
  })

  test('nothing, when it is about the upstream', () => {
    expect(verdict(500)).toEqual({ kind: 'passing' })
    expect(judgeUsageFailure(new AppError('upstream_timeout'))).toEqual({ kind: 'passing' })
    expect(judgeUsageFailure(new Error('bug'))).toEqual({ kind: 'passing' })
  })
})
