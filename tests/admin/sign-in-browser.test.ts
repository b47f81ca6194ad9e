/** Adding an account by signing in with the browser: the challenge, the callback by port or pasted, and rejections. */
import { describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { writeWith } from '../../db/commit.ts'
import { begin, onThisThread } from '../../db/connection.ts'
import { accountEvents, oauthFlows } from '../../db/schema/history.ts'
import { advanceClockDuring, type TestApp } from '../support/app.ts'
import { freePort } from '../support/free-port.ts'
import { problem } from '../support/people.ts'
import { signInWorld } from '../support/sign-ins.ts'

const MINUTE_MS = 60_000

/** The events on the page of an account. */
const history = async (app: TestApp) =>
  (await app.db.select().from(accountEvents).all()).map(({ accountId, kind, result, detail }) => ({
    accountId,
    kind,
    result,
    detail,
  }))

test('an identity that cannot be displayed is rejected by its field, and no account is added', async () => {
  const { app, start, approve, paste, emails } = await signInWorld()
  for (const [email, why] of [
    ['ada\u0000@example.test', 'email has control characters'],
    [`${'a'.repeat(30_000)}@example.test`, 'email is too long (at most 320 characters)'],
  ] as const) {
    const flow = await start()
    const done = await paste(approve(flow, app.upstream.addAccount({ email })), flow.flowId)
    expect(done.status).toBe('error')
    expect(done.errorMessage).toContain(why)
  }
  expect(emails()).toEqual([])
})

describe('beginning', () => {
  test('returns the sign-in URL, and keeps verifier and state secret', async () => {
    const { app, start, port } = await signInWorld()
    const flow = await start()
    expect(flow).toEqual({
      flowId: expect.stringMatching(/^flow_/),
      method: 'browser',
      status: 'pending',
      errorMessage: null,
      isCancelled: false,
      target: null,
      egressPoolId: null,
      account: null,
      isPaused: false,
      authorizationUrl: expect.stringMatching(/^http:\/\/upstream\.test\/oauth\/authorize\?response_type=code&/),
      callbackUrl: `http://localhost:${port}/auth/callback`,
      callback: 'listening',
      verificationUrl: null,
      userCode: null,
      deviceAuthId: null,
      intervalSeconds: null,
      expiresInSeconds: 900,
      expiresAt: '2026-01-01T00:15:00.000Z',
      generatedAt: '2026-01-01T00:00:00.000Z',
    })
    const query = new URL(flow.authorizationUrl ?? '').searchParams
    expect(Object.fromEntries(query)).toMatchObject({
      client_id: 'app_EMoamEEZ73f0CkXaXp7hrann',
      redirect_uri: flow.callbackUrl ?? '',
      scope: 'openid profile email offline_access',
      code_challenge_method: 'S256',
      id_token_add_organizations: 'true',
      codex_cli_simplified_flow: 'true',
      originator: 'codex_chatgpt_desktop',
    })
    const [row] = await app.db.select().from(oauthFlows).all()
    const state = query.get('state') ?? ''
    expect(row?.stateHash).toBe(createHash('sha256').update(state).digest('hex'))
    expect(JSON.stringify(row)).not.toContain(state)
    expect(row?.secretSealed).toStartWith('v1.')
    expect(app.lines.join()).not.toContain(state)
  })

  test('a repeated request returns the same URL while the sign-in is pending', async () => {
    const { start, status } = await signInWorld()
    const flow = await start()
    expect((await status(flow.flowId)).authorizationUrl).toBe(flow.authorizationUrl)
    expect((await status()).flowId).toBe(flow.flowId)
  })

  test('two sign-ins have different challenges and states, and both can be completed', async () => {
    const { app, start, approve, paste, emails } = await signInWorld()
    const [one, two] = [await start(), await start()]
    const of = (name: string) => [one, two].map((flow) => new URL(flow.authorizationUrl ?? '').searchParams.get(name))
    expect(new Set([...of('state'), ...of('code_challenge')]).size).toBe(4)
    const people = ['b@example.test', 'a@example.test'].map((email) => app.upstream.addAccount({ email }))
    await paste(approve(two, people[0]!))
    await paste(approve(one, people[1]!))
    expect(emails()).toEqual(['b@example.test', 'a@example.test'])
  })

  test.each([
    ['an unknown account', { accountId: 'acc_nobody' }, [404, 'account_not_found']],
    ['an unknown field', { method: 'device' }, [422, 'validation_error']],
    ['a method that is not a string', { forceMethod: 5 }, [422, 'validation_error']],
  ])('with %s is rejected', async (_, json, expected) => {
    const { admin, app } = await signInWorld()
    expect(await problem(await admin.ask('POST /api/oauth/start', { json }))).toEqual(expected as [number, string])
    expect(await app.db.select().from(oauthFlows).all()).toEqual([])
  })

  test.each(['viewer', 'member'])('a %s can neither begin, view nor finish a sign-in', async (role) => {
    const { as, start } = await signInWorld()
    const { flowId } = await start()
    const who = await as(role)
    for (const [route, json] of [
      ['POST /api/oauth/start', {}],
      [`GET /api/oauth/status?flowId=${flowId}`, undefined],
      ['POST /api/oauth/complete', { flowId }],
      ['POST /api/oauth/cancel', { flowId }],
      ['POST /api/oauth/manual-callback', { callbackUrl: 'x', flowId }],
      ['GET /accounts/new', undefined],
      ['GET /accounts/new/browser', undefined],
    ] as const)
      expect([route, ...(await problem(await who.ask(route, { json })))]).toEqual([route, 403, 'permission_required'])
  })
})

describe('the callback', () => {
  test('on the port adds the account, and redirects to the dashboard', async () => {
    const { app, start, status, approve, follow, admin, events, emails } = await signInWorld()
    const flow = await start()
    const ada = app.upstream.addAccount({ email: 'ada@example.test', plan: 'pro' })
    const back = await follow(approve(flow, ada))
    expect([back.status, back.headers.get('location')]).toEqual([
      302,
      `http://localhost:2455/accounts/new/browser?flow=${flow.flowId}`,
    ])
    expect(back.headers.get('referrer-policy')).toBe('no-referrer')
    const row = app.bindings.pool.all()[0]?.row
    expect(await status(flow.flowId)).toMatchObject({
      status: 'success',
      errorMessage: null,
      authorizationUrl: null,
      account: { accountId: row?.id, displayName: 'ada@example.test', planType: 'pro' },
    })
    expect(emails()).toEqual(['ada@example.test'])
    expect(await events()).toEqual([
      {
        event: 'account_sign_in_started',
        actor: admin.person.row.id,
        target: null,
        details: { flowId: flow.flowId, method: 'browser' },
      },
      {
        event: 'account_signed_in',
        actor: admin.person.row.id,
        target: row?.id ?? '?',
        details: { email: 'ada@example.test', renewed: false, tokensKept: false },
      },
    ])
    expect(await history(app)).toEqual([
      { accountId: row?.id ?? '?', kind: 'import', result: 'added', detail: 'By signing in.' },
    ])
    expect(app.upstream.oddities).toEqual([])
  })

  test('the received tokens serve a request', async () => {
    const { app, start, approve, paste } = await signInWorld()
    const ada = app.upstream.addAccount({ email: 'ada@example.test' })
    await paste(approve(await start(), ada))
    const { id } = app.bindings.pool.all()[0]!
    expect((await app.bindings.proxyDeps.credentials.fresh(id)).accessToken).toBe(ada.accessToken)
  })

  test.each([
    ['the whole URL', (url: string) => url],
    ['with surrounding whitespace', (url: string) => `  ${url}\n`],
    ['from the path on', (url: string) => url.replace(/^http:\/\/localhost:\d+/, '')],
    ['only the query', (url: string) => url.slice(url.indexOf('?') + 1)],
    ['with a fragment', (url: string) => `${url}#_=_`],
  ])('by hand works with %s', async (_, shape) => {
    const { app, start, approve, paste, emails } = await signInWorld()
    const flow = await start()
    const ada = app.upstream.addAccount({ email: 'ada@example.test' })
    expect((await paste(shape(approve(flow, ada)), flow.flowId)).status).toBe('success')
    expect(emails()).toEqual(['ada@example.test'])
  })

  test('the same URL, pasted and through the port at the same time, exchanges the code once', async () => {
    const { app, start, approve, paste, follow, tokenCalls, emails, events } = await signInWorld()
    const flow = await start()
    const url = approve(flow, app.upstream.addAccount({ email: 'ada@example.test' }))
    const answers = await Promise.all([paste(url), paste(url), follow(url), paste(url, flow.flowId)])
    expect(answers.map((answer) => (answer instanceof Response ? answer.status : answer.status))).toEqual([
      'success',
      'success',
      302,
      'success',
    ])
    expect((await paste(url)).status).toBe('success')
    expect(tokenCalls()).toHaveLength(1)
    expect(emails()).toEqual(['ada@example.test'])
    expect((await events()).filter(({ event }) => event === 'account_signed_in')).toHaveLength(1)
    expect(app.upstream.oddities).toEqual([])
  })

  test('the first of two callbacks with different codes counts', async () => {
    const { app, start, approve, paste, tokenCalls, emails } = await signInWorld()
    const flow = await start()
    const [ada, eve] = ['ada@example.test', 'eve@example.test'].map((email) => app.upstream.addAccount({ email }))
    const answers = await Promise.all([paste(approve(flow, ada!)), paste(approve(flow, eve!))])
    expect(answers.map(({ account }) => account?.displayName)).toEqual(['ada@example.test', 'ada@example.test'])
    expect(tokenCalls()).toHaveLength(1)
    expect(emails()).toEqual(['ada@example.test'])
  })

  test('cancelled at ChatGPT ends the sign-in with our own message', async () => {
    const { app, start, paste, status, tokenCalls, events } = await signInWorld()
    const flow = await start()
    const cancelled = app.upstream.signIns.cancel(flow.authorizationUrl ?? '')
    expect(await paste(cancelled)).toMatchObject({
      status: 'error',
      errorMessage: 'The sign-in was cancelled at ChatGPT.',
    })
    const scripted = cancelled.replace('access_denied', encodeURIComponent('<script>alert(1)</script>'))
    expect((await paste(scripted)).errorMessage).toBe((await status(flow.flowId)).errorMessage)
    expect(tokenCalls()).toEqual([])
    expect((await events()).at(-1)).toMatchObject({ event: 'account_sign_in_failed', details: { flowId: flow.flowId } })
  })

  test.each(['constructor', '__proto__', 'server_error'])('with the error %p ends with that error', async (error) => {
    const { start, paste } = await signInWorld()
    const state = new URL((await start()).authorizationUrl ?? '').searchParams.get('state')
    expect((await paste(`?error=${error}&state=${state}`)).errorMessage).toBe(`ChatGPT rejected the sign-in: ${error}.`)
  })

  test('after a failure, a valid code changes nothing', async () => {
    const { app, start, approve, paste, emails, tokenCalls } = await signInWorld()
    const flow = await start()
    const ada = app.upstream.addAccount({})
    const good = approve(flow, ada)
    await paste(app.upstream.signIns.cancel(flow.authorizationUrl ?? ''))
    expect((await paste(good)).status).toBe('error')
    expect([emails(), tokenCalls()]).toEqual([[], []])
  })

  test('with a code that ChatGPT rejects says so, once', async () => {
    const { start, paste, tokenCalls, app } = await signInWorld()
    const flow = await start()
    const state = new URL(flow.authorizationUrl ?? '').searchParams.get('state')
    const forged = `${flow.callbackUrl}?code=made-up&state=${state}`
    expect(await paste(forged)).toMatchObject({
      status: 'error',
      errorMessage: 'OpenAI rejected the sign-in with HTTP 400 (invalid_grant).',
    })
    await paste(forged)
    expect(tokenCalls()).toHaveLength(1)
    expect(app.lines.join()).not.toContain(state ?? '?')
  })

  test('while ChatGPT is unreachable says so, and stores nothing', async () => {
    const { app, start, approve, paste, emails } = await signInWorld()
    const flow = await start()
    const url = approve(flow, app.upstream.addAccount({}))
    app.wire.before = async () => {
      throw new TypeError('fetch failed')
    }
    expect(await paste(url)).toMatchObject({
      status: 'error',
      errorMessage: 'OpenAI could not be reached.',
    })
    expect(emails()).toEqual([])
  })

  test.each([
    ['nothing usable', 'hello'],
    ['an unknown state', 'http://localhost:1455/auth/callback?code=x&state=unknown'],
    ['no code', 'http://localhost:1455/auth/callback?state=unknown'],
    ['no state', 'http://localhost:1455/auth/callback?code=x'],
  ])('with %s is rejected', async (_, callbackUrl) => {
    const { admin, start, status } = await signInWorld()
    const flow = await start()
    const response = await admin.ask('POST /api/oauth/manual-callback', { json: { callbackUrl } })
    expect(await problem(response)).toEqual([400, 'invalid_callback'])
    expect((await status(flow.flowId)).status).toBe('pending')
  })

  test('with the URL of another sign-in is rejected, and neither is affected', async () => {
    const { app, admin, start, approve, status } = await signInWorld()
    const [one, two] = [await start(), await start()]
    const json = { callbackUrl: approve(one, app.upstream.addAccount({})), flowId: two.flowId }
    expect(await problem(await admin.ask('POST /api/oauth/manual-callback', { json }))).toEqual([
      400,
      'invalid_callback',
    ])
    expect([(await status(one.flowId)).status, (await status(two.flowId)).status]).toEqual(['pending', 'pending'])
  })

  test.each([
    ['without a URL', {}],
    ['with an empty one', { callbackUrl: '' }],
    ['with an oversized one', { callbackUrl: 'x'.repeat(8193) }],
    ['with an unknown field', { callbackUrl: 'x', code: 'y' }],
  ])('%s is rejected', async (_, json) => {
    const { admin } = await signInWorld()
    expect(await problem(await admin.ask('POST /api/oauth/manual-callback', { json }))).toEqual([
      422,
      'validation_error',
    ])
  })

  test('from a user who was disabled since is rejected', async () => {
    const { app, as, approve, follow, emails, status } = await signInWorld()
    const olaf = await as('operator')
    const flow = (await (await olaf.ask('POST /api/oauth/start', { json: {} })).json()) as Awaited<
      ReturnType<typeof status>
    >
    app.sqlite.run(`UPDATE users SET status = 'disabled' WHERE id = '${olaf.person.row.id}'`)
    const url = approve(flow, app.upstream.addAccount({}))
    await follow(url)
    expect(app.sqlite.query('SELECT status, error_message FROM oauth_flows').all()).toEqual([
      { status: 'error', error_message: 'You no longer have permission to add accounts.' },
    ])
    expect(emails()).toEqual([])
  })
})

describe('the callback port', () => {
  const isOpen = (port: number) =>
    fetch(`http://127.0.0.1:${port}/auth/callback`).then(
      ({ status }) => status,
      () => null,
    )

  test('listens while a sign-in is pending, and answers nothing else', async () => {
    const { app, start, approve, paste, port } = await signInWorld()
    expect(await isOpen(port)).toBeNull()
    const flow = await start()
    const elsewhere = await fetch(`http://127.0.0.1:${port}/api/accounts`)
    expect([elsewhere.status, elsewhere.headers.get('content-security-policy')]).toEqual([404, "default-src 'none'"])
    expect((await fetch(`http://127.0.0.1:${port}/auth/callback?code=a&state=b`, { method: 'POST' })).status).toBe(404)
    expect((await fetch(`http://127.0.0.1:${port}/auth/callback?code=a&state=b`)).status).toBe(400)
    await paste(approve(flow, app.upstream.addAccount({})))
    await app.clock.advance('3s')
    expect(await isOpen(port)).toBeNull()
    expect(app.clock.pending).toBe(0)
  })

  test('in use by another program is reported, and pasting the URL still works', async () => {
    const port = freePort()
    const other = Bun.serve({ hostname: '127.0.0.1', port, fetch: () => new Response('other') })
    const { app, start, approve, paste } = await signInWorld({
      environment: { CODEX_LB_OAUTH_CALLBACK_PORT: String(port) },
    })
    const flow = await start()
    expect(flow.callback).toBe('port_busy')
    expect(app.bindings.signIns.isListening).toBe(false)
    await other.stop(true)
    expect((await paste(approve(flow, app.upstream.addAccount({})))).status).toBe('success')
  })

  test('is useless to a user on another machine, who is asked to paste the URL', async () => {
    const { admin } = await signInWorld()
    const answer = await admin.ask('POST /api/oauth/start', { json: {}, peer: '192.0.2.7' })
    expect(await answer.json()).toMatchObject({ callback: 'remote' })
  })

  test('listens again after a restart, and the sign-in continues', async () => {
    const { app, start, approve, follow, emails, port } = await signInWorld()
    const flow = await start()
    await app.bindings.signIns.stop()
    expect(await isOpen(port)).toBeNull()
    await app.restart()
    await app.bindings.signIns.follow()
    const back = await follow(approve(flow, app.upstream.addAccount({ email: 'ada@example.test' })))
    expect([back.status, await back.text()]).toEqual([200, expect.stringContaining('Signed in')])
    expect(emails()).toEqual(['ada@example.test'])
  })
})

describe('time', () => {
  test('closes after a quarter of an hour, when the sign-in expires', async () => {
    const { app, start, status, approve, admin } = await signInWorld()
    const flow = await start()
    const url = approve(flow, app.upstream.addAccount({}))
    await app.clock.advance(15 * MINUTE_MS - 1)
    expect((await status(flow.flowId)).status).toBe('pending')
    await app.clock.advance(1)
    expect(await status(flow.flowId)).toMatchObject({
      status: 'error',
      errorMessage: 'The sign-in expired. Start a new one.',
      expiresInSeconds: 0,
    })
    await app.clock.advance('3s')
    expect(app.bindings.signIns.isListening).toBe(false)
    const late = await admin.ask('POST /api/oauth/manual-callback', { json: { callbackUrl: url } })
    expect(await late.json()).toMatchObject({ status: 'error' })
    expect(app.bindings.pool.all()).toEqual([])
  })

  const locked = (app: TestApp) => {
    const own = onThisThread(() => app.sqlite)
    const busy = Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY' })
    const call: typeof own.call = async (procedure, args) => {
      if (procedure === (begin as unknown)) throw busy
      return own.call(procedure, args)
    }
    writeWith(app.db, { call })
    return () => writeWith(app.db, own)
  }
  const full = (app: TestApp) => {
    app.sqlite.run("CREATE TRIGGER full BEFORE UPDATE ON oauth_flows BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    return () => void app.sqlite.run('DROP TRIGGER full')
  }
  const rowsOf = async (app: TestApp) =>
    (await app.db.select({ status: oauthFlows.status }).from(oauthFlows).all()).map(({ status }) => status)

  test.each([
    ['is locked', locked, {}],
    ['is full', full, {}],
    ['is locked, with a code', locked, { forceMethod: 'device' }],
  ] as const)(
    'while the database %s, an expired sign-in is not waited for, and its end is stored afterwards',
    async (_, breakDatabase, how) => {
      const { app, start } = await signInWorld()
      await start(how)
      const repair = breakDatabase(app)
      await app.clock.advance(15 * MINUTE_MS + 3000)
      const polls = app.upstream.requests.length
      await app.clock.advance('30s')
      expect([app.bindings.signIns.isListening, app.upstream.requests.length]).toEqual([false, polls])
      expect(await rowsOf(app)).toEqual(['pending'])
      repair()
      await app.clock.advance('1s')
      expect(await rowsOf(app)).toEqual(['error'])
      expect(app.clock.pending).toBe(0)
    },
  )

  test('a process takes over the sign-ins even if it cannot store that one has expired', async () => {
    const { app, start } = await signInWorld()
    const { signIns } = app.bindings
    await start()
    await app.clock.advance(14 * MINUTE_MS)
    await start()
    await signIns.stop()
    app.clock.set(2 * MINUTE_MS)
    const repair = locked(app)
    await signIns.resume()
    expect(signIns.isListening).toBe(true)
    repair()
    await app.clock.advance('1s')
    expect(await rowsOf(app)).toEqual(['error', 'pending'])
  })

  test('a sign-in expires immediately if the clock is set forward, and an ended one stays unchanged', async () => {
    const { app, start, status, approve, paste, tokenCalls } = await signInWorld()
    const [done, flow] = [await start(), await start()]
    const url = approve(flow, app.upstream.addAccount({}))
    await paste(approve(done, app.upstream.addAccount({})))
    app.clock.set(15 * MINUTE_MS)
    const ended = { status: 'error', errorMessage: 'The sign-in expired. Start a new one.' }
    expect(await status(flow.flowId)).toMatchObject({ ...ended, flowId: flow.flowId, authorizationUrl: null })
    expect(await paste(url)).toMatchObject(ended)
    expect((await status(done.flowId)).status).toBe('success')
    expect(tokenCalls()).toHaveLength(1)
  })

  test('a code being exchanged at the expiry still counts, whatever sign-in begins next', async () => {
    const { app, start, approve, paste, emails } = await signInWorld()
    const flow = await start()
    await app.clock.advance(14 * MINUTE_MS)
    const url = approve(flow, app.upstream.addAccount({ email: 'ada@example.test' }))
    let other: ReturnType<typeof start> | null = null
    app.wire.before = async () => {
      app.clock.set(MINUTE_MS)
      other ??= start()
    }
    expect((await paste(url)).status).toBe('success')
    expect(other).not.toBeNull()
    expect(emails()).toEqual(['ada@example.test'])
  })

  test('a callback whose result could not be stored can be repeated', async () => {
    const { app, start, approve, admin, paste } = await signInWorld()
    const url = approve(await start(), app.upstream.addAccount({}))
    app.wire.before = async () => {
      throw new TypeError('fetch failed')
    }
    app.sqlite.run("CREATE TRIGGER full BEFORE UPDATE ON oauth_flows BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    const failed = await admin.ask('POST /api/oauth/manual-callback', { json: { callbackUrl: url } })
    expect(failed.status).toBeGreaterThanOrEqual(500)
    app.wire.before = null
    app.sqlite.run('DROP TRIGGER full')
    expect((await paste(url)).status).toBe('success')
  })

  test('nothing listens or waits after a stop, even during an exchange', async () => {
    const { app, start, approve, paste, emails } = await signInWorld()
    const [flow] = [await start(), await start()]
    const url = approve(flow, app.upstream.addAccount({ email: 'ada@example.test' }))
    let stopped: Promise<void> | null = null
    app.wire.before = async () => {
      stopped = app.bindings.signIns.stop()
    }
    await paste(url)
    await stopped
    expect(emails()).toEqual(['ada@example.test'])
    expect([app.bindings.signIns.isListening, app.clock.pending]).toEqual([false, 0])
  })

  test('the last sixteen ended sign-ins are kept', async () => {
    const { app, start, status, paste, admin } = await signInWorld()
    const ids: string[] = []
    for (let n = 0; n < 18; n++) {
      const flow = await start()
      await paste(app.upstream.signIns.cancel(flow.authorizationUrl ?? ''))
      ids.push(flow.flowId)
      await app.clock.advance('1s')
    }
    await start()
    expect(await app.db.select().from(oauthFlows).all()).toHaveLength(17)
    expect((await status(ids[2])).status).toBe('error')
    expect(await problem(await admin.ask(`GET /api/oauth/status?flowId=${ids[1]}`))).toEqual([
      404,
      'oauth_flow_not_found',
    ])
  })
})

describe('signing in to an existing account again', () => {
  const inNeed = async () => {
    const world = await signInWorld({ accounts: [{ email: 'ada@example.test' }, { email: 'eve@example.test' }] })
    const [ada, eve] = world.app.members
    ada!.sim.revoke('token_invalidated')
    world.app.sqlite.run(
      `UPDATE accounts SET status = 'reauth_required', cause = 'x', since = 1 WHERE id = '${ada!.id}'`,
    )
    await world.app.bindings.pool.reload()
    return { ...world, ada: ada!, eve: eve! }
  }
  const rows = ({ app }: Awaited<ReturnType<typeof inNeed>>) =>
    app.sqlite.query('SELECT * FROM accounts ORDER BY id').all()

  test('replaces its tokens, and it serves again', async () => {
    const world = await inNeed()
    const { app, start, approve, paste, ada, events, admin } = world
    const flow = await start({ accountId: ada.id })
    expect(flow.target).toEqual({ accountId: ada.id, displayName: 'ada@example.test', planType: 'plus' })
    expect((await paste(approve(flow, ada.sim))).status).toBe('success')
    expect(app.bindings.pool.get(ada.id)?.state.status).toBe('active')
    expect((await app.bindings.proxyDeps.credentials.fresh(ada.id)).accessToken).toBe(ada.sim.accessToken)
    expect(app.bindings.pool.all()).toHaveLength(2)
    expect((await events()).slice(-2)).toEqual([
      expect.objectContaining({ event: 'account_sign_in_started', target: ada.id }),
      {
        event: 'account_reauthenticated',
        actor: admin.person.row.id,
        target: ada.id,
        details: { email: 'ada@example.test' },
      },
    ])
    expect((await history(app)).slice(-2)).toEqual([
      { accountId: ada.id, kind: 'state', result: 'active', detail: 'New tokens were stored. Before: needs sign-in.' },
      { accountId: ada.id, kind: 'import', result: 'signed in again', detail: 'By anna.' },
    ])
  })

  test('as another ChatGPT user is rejected, and nothing is written', async () => {
    const world = await inNeed()
    const { start, approve, paste, ada, eve, app, events } = world
    const flow = await start({ accountId: ada.id })
    const before = rows(world)
    const stranger = app.upstream.addAccount({ email: 'mallory@example.test' })
    expect(await paste(approve(flow, stranger))).toMatchObject({
      status: 'error',
      account: null,
      errorMessage: 'You signed in as mallory@example.test, not as ada@example.test. Nothing was changed.',
    })
    const again = await start({ accountId: ada.id })
    expect((await paste(approve(again, eve.sim))).status).toBe('error')
    expect(rows(world)).toEqual(before)
    expect((await events()).at(-1)).toMatchObject({ event: 'account_sign_in_failed', target: ada.id })
    expect((await history(app)).at(-1)).toMatchObject({ accountId: ada.id, result: 'sign-in failed' })
  })

  test('in another workspace is rejected', async () => {
    const world = await inNeed()
    const { start, approve, paste, ada } = world
    world.app.sqlite.run(`UPDATE accounts SET chatgpt_account_id = 'another-workspace' WHERE id = '${ada.id}'`)
    const before = rows(world)
    const answer = await paste(approve(await start({ accountId: ada.id }), ada.sim))
    expect(answer.errorMessage).toStartWith('ada@example.test signed in with a different workspace or user')
    expect(rows(world)).toEqual(before)
  })

  test('with a new email address updates the same account and adds none', async () => {
    const world = await inNeed()
    const { app, start, approve, paste, ada } = world
    app.sqlite.run(`UPDATE accounts SET email = 'old@example.test' WHERE id = '${ada.id}'`)
    expect((await paste(approve(await start({ accountId: ada.id }), ada.sim))).status).toBe('success')
    expect(app.bindings.pool.get(ada.id)?.row.email).toBe('ada@example.test')
    expect(app.bindings.pool.all()).toHaveLength(2)
  })

  test('a paused account stays paused', async () => {
    const { app, admin, start, approve, paste, eve } = await inNeed()
    await admin.ask(`POST /api/accounts/${eve.id}/pause`)
    const flow = await start({ accountId: eve.id })
    await paste(approve(flow, eve.sim))
    const page = await (
      await admin.ask(`GET /accounts/new/browser?flow=${flow.flowId}`, { headers: { accept: 'text/html' } })
    ).text()
    expect(page).toContain('It is still paused: resume it to use it.')
    expect(page).not.toContain('serves from now on')
    expect(app.bindings.pool.get(eve.id)?.state.status).toBe('paused')
    expect((await history(app)).slice(-2)).toEqual([
      { accountId: eve.id, kind: 'state', result: 'paused', detail: 'Paused by a user.' },
      { accountId: eve.id, kind: 'import', result: 'signed in again', detail: 'By anna.' },
    ])
  })

  test('the account page shows it, and a changed plan', async () => {
    const { app, admin, start, approve, paste, ada } = await inNeed()
    app.sqlite.run(`UPDATE accounts SET plan_type = 'free' WHERE id = '${ada.id}'`)
    await paste(approve(await start({ accountId: ada.id }), ada.sim))
    const page = await admin.ask(`GET /accounts/${ada.id}?tab=events`, { headers: { accept: 'text/html' } })
    const text = (await page.text()).replace(/<[^>]*>/g, ' ')
    for (const said of ['Signed in again', 'By anna.', 'New tokens were stored', 'Before: free.'])
      expect(text).toContain(said)
  })

  test('event, audit entry and tokens are written together or not at all', async () => {
    const world = await inNeed()
    const { app, start, approve, paste, ada, events } = world
    const flow = await start({ accountId: ada.id })
    const before = [rows(world), await history(app), await events()]
    app.sqlite.run(
      "CREATE TRIGGER full BEFORE INSERT ON account_events BEGIN SELECT RAISE(ABORT, 'the disk is full'); END",
    )
    const refused = paste(approve(flow, ada.sim)).catch(String)
    expect(await advanceClockDuring(app, refused)).toContain('answered 500')
    expect([rows(world), await history(app), await events()]).toEqual(before)
  })

  test('ends the sign-in when the account was deleted', async () => {
    const { app, admin, start, approve, ada } = await inNeed()
    const flow = await start({ accountId: ada.id })
    const callbackUrl = approve(flow, ada.sim)
    await admin.ask(`DELETE /api/accounts/${ada.id}`)
    const response = await admin.ask('POST /api/oauth/manual-callback', { json: { callbackUrl } })
    expect(await problem(response)).toEqual([400, 'invalid_callback'])
    expect(app.bindings.pool.all()).toHaveLength(1)
  })
})
