/** Adding an account with a device code: the polling interval, and every way it ends. */
import { describe, expect, test } from 'bun:test'
import { problem } from '../support/people.ts'
import { signInWorld } from '../support/sign-ins.ts'

const deviceWorld = async (options: Parameters<typeof signInWorld>[0] = {}) => {
  const world = await signInWorld(options)
  const { app } = world
  const to = (path: string) => app.upstream.requests.filter((request) => request.path === path)
  return {
    ...world,
    device: (json: object = {}) => world.start({ forceMethod: 'device', ...json }),
    questions: () => to('/api/accounts/deviceauth/token'),
    codesAsked: () => to('/api/accounts/deviceauth/usercode'),
  }
}

describe('beginning', () => {
  test('returns a code, and keeps the device secret', async () => {
    const { app, device, codesAsked } = await deviceWorld()
    const flow = await device()
    expect(flow).toMatchObject({
      method: 'device',
      status: 'pending',
      verificationUrl: 'http://upstream.test/codex/device',
      userCode: 'WXYZ-00001',
      deviceAuthId: flow.flowId,
      intervalSeconds: 5,
      expiresInSeconds: 900,
      authorizationUrl: null,
      callbackUrl: null,
      callback: null,
    })
    expect(codesAsked().map(({ body }) => body)).toEqual([{ client_id: 'app_EMoamEEZ73f0CkXaXp7hrann' }])
    expect(app.bindings.signIns.isListening).toBe(false)
    expect(app.sqlite.query('SELECT * FROM oauth_flows').all()[0]).toMatchObject({ state_hash: null })
    expect(JSON.stringify(app.sqlite.query('SELECT * FROM oauth_flows').all())).not.toContain('deviceauth_')
    expect(app.lines.join()).not.toContain('deviceauth_')
  })

  test.each([
    ['none is stated', null, 5],
    ['0 is stated', '0', 5],
    ['a very short one is stated', '1', 5],
    ['a longer one is stated', '8', 8],
    ['an absurd one is stated', '86400', 60],
    ['a text is stated', 'soon', 5],
  ])('the interval has a minimum when %s', async (_, interval, intervalSeconds) => {
    const { app, device } = await deviceWorld()
    app.upstream.signIns.device.interval = interval
    expect((await device()).intervalSeconds).toBe(intervalSeconds)
  })

  test.each([
    [404, 'device_auth_unavailable'],
    [400, 'device_auth_failed'],
    [503, 'device_auth_failed'],
  ])('an answer of %i is reported, and no sign-in begins', async (status, code) => {
    const { app, admin, events } = await deviceWorld()
    app.upstream.signIns.device.refusesWith = status
    const response = await admin.ask('POST /api/oauth/start', { json: { forceMethod: 'device' } })
    expect(await problem(response)).toEqual([502, code])
    expect([app.sqlite.query('SELECT * FROM oauth_flows').all(), await events()]).toEqual([[], []])
  })

  test('an unreachable ChatGPT is reported', async () => {
    const { app, admin } = await deviceWorld()
    app.wire.before = async () => {
      throw new TypeError('fetch failed')
    }
    const response = await admin.ask('POST /api/oauth/start', { json: { forceMethod: 'device' } })
    expect(await problem(response)).toEqual([502, 'upstream_unreachable'])
  })
})

describe('waiting', () => {
  test('polls once per interval, never sooner, and adds the account', async () => {
    const { app, device, status, questions, emails, events, admin } = await deviceWorld()
    const flow = await device()
    await app.clock.advance(4999)
    expect(questions()).toHaveLength(0)
    await app.clock.advance('15s')
    expect(questions()).toHaveLength(3)
    expect((await status(flow.flowId)).status).toBe('pending')
    app.upstream.signIns.enterCode(flow.userCode ?? '', app.upstream.addAccount({ email: 'ada@example.test' }))
    await app.clock.advance('5s')
    expect(await status(flow.flowId)).toMatchObject({ status: 'success', account: { displayName: 'ada@example.test' } })
    expect(emails()).toEqual(['ada@example.test'])
    await app.clock.advance('60s')
    expect(questions()).toHaveLength(4)
    expect(app.clock.pending).toBe(0)
    expect((await events()).at(-1)).toMatchObject({ event: 'account_signed_in', actor: admin.person.row.id })
    expect(app.upstream.oddities).toEqual([])
  })

  test('slows down by five seconds each time ChatGPT asks for it', async () => {
    const { app, device, questions } = await deviceWorld()
    await device()
    app.upstream.signIns.device.slowDowns = 2
    await app.clock.advance('60s')
    const start = Date.UTC(2026, 0, 1)
    expect(questions().map(({ at }) => (at - start) / 1000)).toEqual([5, 15, 30, 45, 60])
    expect(app.upstream.oddities).toEqual([])
  })

  test('polls at the stated interval, even if another sign-in begins', async () => {
    const { app, device, start, questions } = await deviceWorld()
    app.upstream.signIns.device.interval = '8'
    await device()
    await app.clock.advance('5s')
    await start()
    await app.clock.advance(2999)
    expect(questions()).toHaveLength(0)
    await app.clock.advance(1)
    expect(questions()).toHaveLength(1)
  })

  test('continues when ChatGPT is unreachable for a while', async () => {
    const { app, device, status } = await deviceWorld()
    const flow = await device()
    app.wire.before = async () => {
      throw new TypeError('fetch failed')
    }
    await app.clock.advance('30s')
    app.wire.before = null
    app.upstream.signIns.enterCode(flow.userCode ?? '', app.upstream.addAccount({}))
    await app.clock.advance('5s')
    expect((await status(flow.flowId)).status).toBe('success')
  })

  test('continues after a restart', async () => {
    const { app, device, status } = await deviceWorld()
    const flow = await device()
    await app.bindings.signIns.stop()
    await app.restart()
    await app.bindings.signIns.follow()
    app.upstream.signIns.enterCode(flow.userCode ?? '', app.upstream.addAccount({}))
    await app.clock.advance('5s')
    expect((await status(flow.flowId)).status).toBe('success')
  })

  test('continues when the database cannot store the account for a moment', async () => {
    const { app, device, status, emails } = await deviceWorld()
    const flow = await device()
    app.upstream.signIns.enterCode(flow.userCode ?? '', app.upstream.addAccount({ email: 'ada@example.test' }))
    app.sqlite.run("CREATE TRIGGER full BEFORE INSERT ON accounts BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    await app.clock.advance('10s')
    expect([(await status(flow.flowId)).status, emails()]).toEqual(['pending', []])
    app.sqlite.run('DROP TRIGGER full')
    await app.clock.advance('1s')
    expect([(await status(flow.flowId)).status, emails()]).toEqual(['success', ['ada@example.test']])
    expect(app.clock.pending).toBe(0)
  })

  test('complete returns the state and polls no faster', async () => {
    const { app, admin, device, questions } = await deviceWorld()
    const { flowId, deviceAuthId, userCode } = await device()
    for (const json of [{ flowId }, { deviceAuthId, userCode }, {}]) {
      const response = await admin.ask('POST /api/oauth/complete', { json })
      expect(await response.json()).toMatchObject({ flowId, status: 'pending' })
    }
    await app.clock.advance('5s')
    expect(questions()).toHaveLength(1)
    const wrong = await admin.ask('POST /api/oauth/complete', { json: { flowId, userCode: 'other' } })
    expect(await problem(wrong)).toEqual([404, 'oauth_flow_not_found'])
  })
})

describe('ending', () => {
  test('a newer one replaces an older one, which is no longer polled', async () => {
    const { app, device, status, questions, emails } = await deviceWorld()
    const [one, two] = [await device(), await device()]
    expect(await status(one.flowId)).toMatchObject({
      status: 'error',
      errorMessage: 'You started a newer sign-in.',
    })
    app.upstream.signIns.enterCode(one.userCode ?? '', app.upstream.addAccount({ email: 'old@example.test' }))
    app.upstream.signIns.enterCode(two.userCode ?? '', app.upstream.addAccount({ email: 'new@example.test' }))
    await app.clock.advance('20s')
    expect(emails()).toEqual(['new@example.test'])
    expect(questions()).toHaveLength(1)
  })

  test('two begun at the same time leave one pending', async () => {
    const { app, device } = await deviceWorld()
    await Promise.all([device(), device()])
    expect(app.sqlite.query('SELECT status FROM oauth_flows ORDER BY status').all()).toEqual([
      { status: 'error' },
      { status: 'pending' },
    ])
  })

  test('a browser sign-in does not replace it', async () => {
    const { device, start, status } = await deviceWorld()
    const browser = await start()
    const code = await device()
    expect([(await status(browser.flowId)).status, (await status(code.flowId)).status]).toEqual(['pending', 'pending'])
  })

  test('a response that arrives after it was replaced adds nothing', async () => {
    const { app, device, status, emails } = await deviceWorld()
    const one = await device()
    app.upstream.signIns.enterCode(one.userCode ?? '', app.upstream.addAccount({ email: 'old@example.test' }))
    let isExchanging = false
    app.wire.before = async (url) => {
      if (!url.endsWith('/oauth/token') || isExchanging) return
      isExchanging = true
      app.sqlite.run(`UPDATE oauth_flows SET status = 'error', error_message = 'x' WHERE id = '${one.flowId}'`)
    }
    await app.clock.advance('5s')
    expect(isExchanging).toBe(true)
    expect(emails()).toEqual([])
    expect((await status(one.flowId)).status).toBe('error')
  })

  test('rejected on the other device says so', async () => {
    const { app, device, status, questions } = await deviceWorld()
    const flow = await device()
    app.upstream.signIns.denyCode(flow.userCode ?? '')
    await app.clock.advance('30s')
    expect(await status(flow.flowId)).toMatchObject({
      status: 'error',
      errorMessage: 'The sign-in was rejected on the other device.',
    })
    expect(questions()).toHaveLength(1)
  })

  test('ends if the database can never store the account', async () => {
    const { app, device, status, questions } = await deviceWorld()
    const flow = await device()
    app.upstream.signIns.enterCode(flow.userCode ?? '', app.upstream.addAccount({}))
    app.sqlite.run("CREATE TRIGGER full BEFORE INSERT ON accounts BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    await app.clock.advance('30s')
    expect(await status(flow.flowId)).toMatchObject({
      status: 'error',
      errorMessage: expect.stringContaining('start again'),
    })
    expect([questions().length, app.clock.pending]).toEqual([1, 0])
  })

  test('polls again for one whose end could not be stored, once that is possible', async () => {
    const { app, device, start, status, questions } = await deviceWorld()
    const flow = await device()
    app.upstream.signIns.denyCode(flow.userCode ?? '')
    app.sqlite.run("CREATE TRIGGER full BEFORE UPDATE ON oauth_flows BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    await app.clock.advance('30s')
    expect([(await status(flow.flowId)).status, questions().length]).toEqual(['pending', 1])
    app.sqlite.run('DROP TRIGGER full')
    await start()
    await app.clock.advance('5s')
    expect((await status(flow.flowId)).status).toBe('error')
  })

  test('one whose account and end could not be stored waits until it expires', async () => {
    const { app, device, status } = await deviceWorld()
    const flow = await device()
    app.upstream.signIns.enterCode(flow.userCode ?? '', app.upstream.addAccount({}))
    app.sqlite.run("CREATE TRIGGER full BEFORE UPDATE ON oauth_flows BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    await app.clock.advance('30s')
    expect((await status(flow.flowId)).status).toBe('pending')
    app.sqlite.run('DROP TRIGGER full')
    await app.clock.advance('15m')
    expect((await status(flow.flowId)).status).toBe('error')
  })

  test('expires with its code, and polling stops', async () => {
    const { app, device, status, questions } = await deviceWorld()
    app.upstream.signIns.device.ttlSeconds = 60
    const flow = await device()
    expect(flow.expiresInSeconds).toBe(60)
    await app.clock.advance('5m')
    expect(await status(flow.flowId)).toMatchObject({
      status: 'error',
      errorMessage: expect.stringContaining('expired'),
    })
    expect(questions().length).toBeLessThanOrEqual(12)
    expect(app.clock.pending).toBe(0)
  })

  test('as another user than the existing account’s, changes nothing', async () => {
    const { app, device, status } = await deviceWorld({ accounts: [{ email: 'ada@example.test' }] })
    const [ada] = app.members
    const before = app.sqlite.query('SELECT * FROM accounts').all()
    const flow = await device({ accountId: ada!.id })
    app.upstream.signIns.enterCode(flow.userCode ?? '', app.upstream.addAccount({ email: 'eve@example.test' }))
    await app.clock.advance('5s')
    expect(await status(flow.flowId)).toMatchObject({
      status: 'error',
      errorMessage: expect.stringContaining('You signed in as eve@example.test'),
    })
    expect(app.sqlite.query('SELECT * FROM accounts').all()).toEqual(before)
  })

  test('answers 404 if none was begun', async () => {
    const { admin } = await deviceWorld()
    expect(await problem(await admin.ask('GET /api/oauth/status'))).toEqual([404, 'oauth_flow_not_found'])
    expect(await problem(await admin.ask('GET /accounts/new/device?flow=flow_x'))).toEqual([
      404,
      'oauth_flow_not_found',
    ])
  })
})
