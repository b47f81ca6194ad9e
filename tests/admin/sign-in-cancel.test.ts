/** Cancelling a pending sign-in: it can't be completed, polling stops, and the port is released. */
import { describe, expect, test } from 'bun:test'
import type { SignInValue } from '../../views/accounts/new-frame.tsx'
import { type Browser, problem } from '../support/people.ts'
import { signInWorld } from '../support/sign-ins.ts'

const CANCEL = 'POST /api/oauth/cancel'

const open = async (options: Parameters<typeof signInWorld>[0] = {}) => {
  const world = await signInWorld(options)
  const cancel = async (flowId: string, browser: Browser = world.admin) =>
    (await (await browser.ask(CANCEL, { json: { flowId } })).json()) as SignInValue // as: tests look at the members they name
  return { ...world, cancel }
}

/** Throws where another has the port. */
const takePort = async (port: number): Promise<void> => {
  await Bun.serve({ hostname: '127.0.0.1', port, fetch: () => new Response() }).stop(true)
}

describe('cancelling a browser sign-in', () => {
  test('closes the port immediately', async () => {
    const { app, start, cancel, port } = await open()
    const flow = await start()
    expect(app.bindings.signIns.isListening).toBe(true)
    await cancel(flow.flowId)
    expect(app.bindings.signIns.isListening).toBe(false)
    await takePort(port)
    expect(app.clock.pending).toBe(0)
  })

  test('says so, and a callback afterwards changes nothing', async () => {
    const { app, start, cancel, status, approve, paste, tokenCalls, emails } = await open()
    const flow = await start()
    const url = approve(flow, app.upstream.addAccount({}))
    const ended = { status: 'error', isCancelled: true, errorMessage: 'The sign-in was cancelled.' }
    expect(await cancel(flow.flowId)).toMatchObject({ ...ended, authorizationUrl: null })
    expect(await status(flow.flowId)).toMatchObject(ended)
    expect(await paste(url)).toMatchObject(ended)
    expect([tokenCalls(), emails()]).toEqual([[], []])
  })

  test('of one sign-in keeps another pending', async () => {
    const { app, start, cancel, approve, follow, emails } = await open()
    const [one, two] = [await start(), await start()]
    await cancel(one.flowId)
    expect(app.bindings.signIns.isListening).toBe(true)
    expect((await follow(approve(two, app.upstream.addAccount({ email: 'ada@example.test' })))).status).toBe(302)
    expect(emails()).toEqual(['ada@example.test'])
  })

  test('during the exchange of the code adds no account', async () => {
    const { app, start, cancel, approve, paste, emails, events } = await open()
    const flow = await start()
    const url = approve(flow, app.upstream.addAccount({}))
    let cancelled: Promise<SignInValue> | null = null
    app.wire.before = async () => {
      cancelled ??= cancel(flow.flowId)
      await cancelled
    }
    expect(await paste(url)).toMatchObject({ status: 'error', isCancelled: true })
    expect(await cancelled!).toMatchObject({ status: 'error', isCancelled: true })
    expect(emails()).toEqual([])
    expect((await events()).map(({ event }) => event)).toEqual(['account_sign_in_started', 'account_sign_in_cancelled'])
  })

  test('is recorded once, with the user; a second time changes nothing', async () => {
    const { app, admin, start, cancel, events } = await open({ accounts: [{ email: 'ada@example.test' }] })
    const accountId = app.members[0]!.id
    const flow = await start({ accountId })
    await cancel(flow.flowId)
    await cancel(flow.flowId)
    expect((await events()).filter(({ event }) => event === 'account_sign_in_cancelled')).toEqual([
      {
        event: 'account_sign_in_cancelled',
        actor: admin.person.row.id,
        target: accountId,
        details: { flowId: flow.flowId, method: 'browser' },
      },
    ])
  })

  test('does not affect a completed one', async () => {
    const { app, start, cancel, approve, paste, events } = await open()
    const flow = await start()
    await paste(approve(flow, app.upstream.addAccount({})))
    expect(await cancel(flow.flowId)).toMatchObject({ status: 'success', isCancelled: false })
    expect((await events()).at(-1)?.event).toBe('account_signed_in')
  })
})

test('stopping while the sign-ins are read leaves the port closed', async () => {
  const { app, start } = await open()
  await start()
  const { signIns } = app.bindings
  await signIns.stop()
  await signIns.resume()
  expect(signIns.isListening).toBe(true)
  const following = signIns.follow()
  await signIns.stop()
  await following
  expect(signIns.isListening).toBe(false)
  expect(app.clock.pending).toBe(0)
})

describe('cancelling a code sign-in', () => {
  test('stops polling, and adds no account for a code entered later', async () => {
    const { app, start, cancel, emails } = await open()
    const flow = await start({ forceMethod: 'device' })
    await app.clock.advance('5s')
    const asked = () => app.upstream.requests.filter(({ path }) => path === '/api/accounts/deviceauth/token').length
    expect(asked()).toBe(1)
    expect(await cancel(flow.flowId)).toMatchObject({ method: 'device', status: 'error', isCancelled: true })
    app.upstream.signIns.enterCode(flow.userCode ?? '', app.upstream.addAccount({}))
    await app.clock.advance('60s')
    expect([asked(), emails(), app.clock.pending]).toEqual([1, [], 0])
  })
})

describe('the cancel request', () => {
  test.each([
    ['names an unknown sign-in', { flowId: 'flow_x' }, [404, 'oauth_flow_not_found']],
    ['names none', {}, [422, 'validation_error']],
    ['says more', { flowId: 'flow_x', accountId: 'acc_x' }, [422, 'validation_error']],
  ])('%s and is rejected', async (_, json, expected) => {
    const { admin } = await open()
    expect(await problem(await admin.ask(CANCEL, { json }))).toEqual(expected as [number, string])
  })
})

describe('the page', () => {
  const html = { headers: { accept: 'text/html' } }

  test.each(['browser', 'device'])(
    'of a pending %s sign-in has the button, which leads to the result',
    async (method) => {
      const { admin, start } = await open({ accounts: [{ email: 'ada@example.test' }] })
      const flow = await start({ forceMethod: method })
      const path = `/accounts/new/${method}?flow=${flow.flowId}`
      const waiting = await (await admin.ask(`GET ${path}`, html)).text()
      expect(waiting).toContain('action="/api/oauth/cancel"')
      expect(waiting.replace(/<[^>]*>/g, '')).toContain('Cancel')
      const sent = await admin.submit(CANCEL, { flowId: flow.flowId })
      expect([sent.status, sent.headers.get('location')]).toEqual([303, path])
      const page = await (await admin.ask(`GET ${path}`, html)).text()
      expect(page).toContain('Sign-in cancelled.')
      expect(page).toContain('Start again')
      expect(page).not.toContain('/api/oauth/cancel')
      expect(page).not.toContain('problem-line')
    },
  )
})
