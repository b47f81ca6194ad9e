/** Reset credits: listed as last reported, redeemed once per request id, one at a time, and effective immediately. */
import { describe, expect, test } from 'bun:test'
import { advanceClockDuring, testApp } from '../support/app.ts'
import { people, problem, REQUEST_FORMATS } from '../support/people.ts'

const DAY_MS = 86_400_000

const open = async (credits = [{ id: 'later' }, { id: 'sooner' }]) => {
  const app = await testApp({ accounts: 1 })
  const [member] = app.members
  if (!member) throw new Error('There is no account.')
  const now = app.clock.now()
  member.sim.setResetCredits(
    credits.map(({ id }, index) => ({ id, expiresAt: now + (2 - index) * DAY_MS, grantedAt: now - DAY_MS })),
  )
  member.sim.setUsage({
    primary: { usedPercent: 100, windowMinutes: 300, resetAt: now + 3_600_000 },
    secondary: { usedPercent: 60, windowMinutes: 10_080, resetAt: now + 3 * DAY_MS },
  })
  const { id } = member
  const block = () =>
    app.bindings.pool.apply(id, {
      kind: 'rate_limited',
      at: now,
      evidence: '429',
      resetAt: now + 3_600_000,
      retryAfterMs: null,
    })
  const sent = () => app.upstream.requests.filter(({ path }) => path.endsWith('/consume')).map(({ body }) => body)
  const list = `/api/accounts/${id}/rate-limit-reset-credits`
  return { app, ...member, ...people(app), block, sent, list, consume: `POST ${list}/consume` }
}

describe('the reset credits of an account', () => {
  test('are unknown before the first fetch, then what the upstream reported', async () => {
    const { app, id, sim, list, as } = await open()
    const viewer = await as('viewer')
    const listed = async () => (await viewer.ask(`GET ${list}`)).json()
    expect(await listed()).toBeNull()
    app.bindings.resetCredits.set(id, [{ id: 'c1', status: 'available', expiresAt: app.clock.now() + 1000 }])
    expect(await listed()).toEqual({
      availableCount: 1,
      nearestExpiresAt: '2026-01-01T00:00:01.000Z',
      credits: [
        {
          id: 'c1',
          resetType: null,
          status: 'available',
          grantedAt: null,
          expiresAt: '2026-01-01T00:00:01.000Z',
          title: null,
          description: null,
          redeemStartedAt: null,
          redeemedAt: null,
        },
      ],
    })
    expect(sim.resetCredits).toHaveLength(2)
  })

  test('of an unknown account are not found', async () => {
    const unknown = await (await (await open()).as('viewer')).ask(
      'GET /api/accounts/acc_unknown/rate-limit-reset-credits',
    )
    expect(await problem(unknown)).toEqual([404, 'account_not_found'])
  })
})

describe('redeeming', () => {
  test('uses the credit that expires first, ends the block and refreshes the usage', async () => {
    const { app, id, consume, as, audit, block, sent } = await open()
    block()
    const operator = await as('operator')
    const response = await operator.ask(consume, { json: {} })
    expect(await response.json()).toEqual({ code: 'reset', windowsReset: 2, redeemedAt: '2026-01-01T00:00:00.000Z' })
    expect(app.bindings.pool.get(id)).toMatchObject({
      state: { status: 'active' },
      usage: { windows: { fiveHour: { usedPercent: 0 }, weekly: { usedPercent: 0 } } },
    })
    expect(sent()).toMatchObject([{ credit_id: 'sooner' }])
    expect(app.bindings.resetCredits.of(id)?.map(({ status }) => status)).toEqual(['available', 'redeemed'])
    expect((await audit()).at(-1)).toMatchObject({
      event: 'reset_credit_redeemed',
      actor: operator.person.row.id,
      target: id,
      details: { creditId: 'sooner', code: 'reset', windowsReset: 2 },
    })
    expect(app.sqlite.query("SELECT result, detail FROM account_events WHERE kind = 'reset'").values()).toEqual([
      ['reset', 'Windows reset: 2.'],
    ])
    expect(app.upstream.oddities).toEqual([])
  })

  test('is redeemed once per request id, however often it is sent', async () => {
    const { consume, as, audit, sent } = await open()
    const operator = await as('operator')
    const redeem = async () => (await operator.ask(consume, { json: { redeemRequestId: 'r1' } })).json()
    const first = await redeem()
    expect(await redeem()).toEqual(first)
    expect(sent()).toEqual([{ credit_id: 'sooner', redeem_request_id: 'r1' }])
    expect((await audit()).filter(({ event }) => event === 'reset_credit_redeemed')).toHaveLength(1)
  })

  test('a repetition after a lost response names the same credit', async () => {
    const { app, sim, consume, as, sent } = await open()
    const operator = await as('operator')
    const redeem = () => operator.ask(consume, { json: { redeemRequestId: 'r1' } })
    sim.next({ on: 'redeem', reset: true })
    expect(await problem(await redeem())).toEqual([502, 'upstream_unreachable'])
    sim.setResetCredits([{ id: 'newer', expiresAt: app.clock.now() + 1000 }, ...sim.resetCredits])
    expect(await (await redeem()).json()).toMatchObject({ code: 'reset' })
    expect(sent()).toMatchObject([{ credit_id: 'sooner' }, { credit_id: 'sooner' }])
  })

  test('the second of two simultaneous redemptions is rejected without waiting', async () => {
    const { app, sim, consume, as, sent } = await open()
    const operator = await as('operator')
    sim.next({ on: 'reset-credits', delayHeadersMs: 1000 })
    const redeem = () => operator.ask(consume, { json: {} })
    const [first, second] = await advanceClockDuring(app, Promise.all([redeem(), redeem()]))
    expect([first.status, await problem(second)]).toEqual([200, [409, 'reset_credit_redeem_in_progress']])
    expect(sent()).toHaveLength(1)
    expect((await redeem()).status).toBe(200)
  })

  test('succeeds even if only the usage refresh afterwards fails', async () => {
    const { app, id, sim, consume, as, block } = await open()
    block()
    sim.always({ on: 'usage', status: 400 })
    const answer = await (await (await as('operator')).ask(consume, { json: {} })).json()
    expect(answer).toMatchObject({ code: 'reset' })
    expect(app.bindings.pool.get(id)?.state.status).toBe('active')
  })

  test('without a credit, or for an account that is not in use, is rejected', async () => {
    const none = await open([])
    const paused = await open()
    paused.app.bindings.pool.apply(paused.id, { kind: 'pause', at: paused.app.clock.now() })
    const refusals = []
    for (const { as, consume } of [none, paused])
      refusals.push(await problem(await (await as('operator')).ask(consume, { json: {} })))
    expect(refusals).toEqual([
      [409, 'no_available_reset_credit'],
      [409, 'account_not_reset_credit_applicable'],
    ])
    expect([...none.sent(), ...paused.sent()]).toEqual([])
  })

  test('requires the permission to change accounts', async () => {
    for (const how of REQUEST_FORMATS) {
      const { consume, as, guest, sent } = await open()
      for (const visitor of [await as('viewer'), await guest('192.0.2.9')])
        expect(await problem(await visitor.send(how, consume))).toEqual([403, 'permission_required'])
      expect(sent()).toEqual([])
    }
    const { consume, as } = await open()
    const blank = await (await as('operator')).ask(consume, { json: { redeemRequestId: ' ' } })
    expect(await problem(blank)).toEqual([422, 'validation_error'])
  })
})

describe('POST /v1/reset-credit', () => {
  const ask = async (app: Awaited<ReturnType<typeof open>>['app'], json: unknown, assigned: string[] | null = null) => {
    const headers = { authorization: `Bearer ${(await app.key({ assignedAccountIds: assigned })).key}` }
    return app.ask('POST /v1/reset-credit', { json, headers })
  }

  test('redeems exactly the credit it names', async () => {
    const { app, id, sent, audit } = await open()
    const response = await ask(app, { account_id: id, redeem_id: 'later' })
    expect(await response.json()).toEqual({ code: 'reset', windows_reset: 2, redeemed_at: '2026-01-01T00:00:00.000Z' })
    expect(sent()).toMatchObject([{ credit_id: 'later' }])
    expect((await audit()).at(-1)).toMatchObject({
      event: 'reset_credit_redeemed',
      actorName: 'test',
      method: 'api_key',
    })
  })

  test('an account outside the pool of the key and an unknown account get the same error', async () => {
    const { app, id, sent } = await open()
    const other = (await app.addAccount()).id
    for (const json of [
      { account_id: id, redeem_id: 'later' },
      { account_id: 'acc_unknown', redeem_id: 'later' },
    ])
      expect(await problem(await ask(app, json, [other]))).toEqual([403, 'account_outside_pool'])
    expect(sent()).toEqual([])
  })

  test('a credit that no longer exists is a conflict', async () => {
    const { app, id } = await open()
    expect(await problem(await ask(app, { account_id: id, redeem_id: 'gone' }))).toEqual([
      409,
      'target_reset_credit_changed',
    ])
    expect((await app.ask('POST /v1/reset-credit', { json: {} })).status).toBe(401)
  })

  test.each([
    [{ account_id: 'acc_1' }, 'redeem_id'],
    [{ account_id: 'acc_1', redeem_id: ' ' }, 'redeem_id'],
    [{ account_id: 1, redeem_id: 'later' }, 'account_id'],
    [{ account_id: 'acc_1', redeem_id: 'later', force: true }, 'force'],
    [[], null],
  ])('%j is an invalid request, in the error format of model routes', async (json, param) => {
    const { app } = await open()
    const response = await ask(app, json)
    const { error } = (await response.json()) as { error: Record<string, unknown> } // as: the test checks the envelope
    expect([response.status, error.code, error.param]).toEqual([400, 'invalid_request_error', param])
  })

  test('a compressed body is read like that of a model request', async () => {
    const { app, id } = await open()
    const response = await app.ask('POST /v1/reset-credit', {
      body: Bun.gzipSync(JSON.stringify({ account_id: id, redeem_id: 'later' })),
      headers: { authorization: `Bearer ${(await app.key()).key}`, 'content-encoding': 'gzip' },
    })
    expect(await response.json()).toMatchObject({ code: 'reset' })
  })
})
