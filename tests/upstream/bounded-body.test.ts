/** Upstream bodies are read up to a limit and never decompressed, so the upstream can't exhaust memory. */
import { describe, expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { seededRandom } from '../../src/lib/random.ts'
import { NOT_FOR_AN_ACCOUNT } from '../../src/model/egress/route.ts'
import { callAsAccount } from '../../src/upstream/account-call.ts'
import { createDial } from '../../src/upstream/dial.ts'
import { exchangeCode, type OAuthCall, RefreshError, refreshTokens, SignInError } from '../../src/upstream/oauth.ts'
import { pollDevice } from '../../src/upstream/oauth-device.ts'
import { codexBody, expectNothingLeft, getAnswer, testApp } from '../support/app.ts'
import { liveService } from '../support/live.ts'
import type { Fault, FaultRoute } from '../support/upstream/faults.ts'
import { poolOfOne, rejection } from './pool-of-one.ts'

const KIB = 1024
const MIB = 1024 * KIB
const PIECE_BYTES = 16 * KIB

/** A response of 64 MiB in pieces, as from the runtime; `seen` counts what was read. */
const flood = (status: number, on: FaultRoute = 'responses') => {
  const seen = { sentBytes: 0, isCancelled: false }
  const body = () =>
    new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          controller.enqueue(new Uint8Array(PIECE_BYTES).fill(120))
          seen.sentBytes += PIECE_BYTES
          if (seen.sentBytes >= 64 * MIB) controller.close()
        },
        cancel() {
          seen.isCancelled = true
        },
      },
      { highWaterMark: 0 },
    )
  return { seen, fault: { on, status, body } satisfies Fault, response: () => new Response(body(), { status }) }
}

const expectBounded = ({ seen }: ReturnType<typeof flood>, maxBytes: number): void => {
  expect(seen.sentBytes).toBeGreaterThan(0)
  expect(seen.sentBytes).toBeLessThanOrEqual(maxBytes + PIECE_BYTES)
  expect(seen.isCancelled).toBe(true)
}

const ERROR_BYTES = 64 * KIB
const TURN = 'POST /backend-api/codex/responses'

const TOKENS = { accessToken: 'a', refreshToken: 'r', idToken: 'i' }
const GRANT = { code: 'c', verifier: 'v', redirectUri: 'http://localhost/' }
const DEVICE = { deviceAuthId: 'd', userCode: 'ABCD' }
const COMPACT_BODY = { model: 'gpt-5.5', instructions: 'Be brief.', input: codexBody('hello').input }
const NEVER = new AbortController().signal

const toContext = (respond: () => Response): OAuthCall => {
  const fetch = (async () => respond()) as unknown as typeof globalThis.fetch // as: called with an address and options
  const dial = createDial({}, fetch, { trustsSocketEnvironment: true, random: seededRandom(1) })
  return { dial, authBaseUrl: 'http://auth.test', timeout: () => NEVER, route: NOT_FOR_AN_ACCOUNT }
}

describe('an error of any length is read to 64 KiB, and the rest is dropped', () => {
  test('of a model request', async () => {
    const app = await testApp()
    const endless = flood(400)
    app.members[0]?.sim.next(endless.fault)
    expect(await getAnswer(app, TURN, { json: codexBody('hello') })).toMatchObject({ status: 502 })
    expectBounded(endless, ERROR_BYTES)
  })

  test('of an account request', async () => {
    const one = await poolOfOne()
    const endless = flood(404, 'usage')
    one.sim.next(endless.fault)
    const err = await rejection(callAsAccount(one.deps, one.id, { path: '/wham/usage', timeoutMs: 1000 }))
    expect(err).toMatchObject({ status: 404 })
    expectBounded(endless, ERROR_BYTES)
  })

  test.each([
    ['a token refresh', (context: OAuthCall) => refreshTokens(context, TOKENS), RefreshError],
    ['a sign-in by a code', (context: OAuthCall) => exchangeCode(context, GRANT), SignInError],
    ['a sign-in on another device', (context: OAuthCall) => pollDevice(context, DEVICE, NEVER), SignInError],
  ])('of %s', async (_what, call, kind) => {
    const endless = flood(400)
    expect(await rejection(call(toContext(() => endless.response())))).toBeInstanceOf(kind)
    expectBounded(endless, ERROR_BYTES)
  })

  test('and a body that never ends is read for 5 s', async () => {
    const app = await testApp()
    const begun = new TextEncoder().encode('{"detail":"cut')
    const stalled = () => new ReadableStream({ start: (controller) => controller.enqueue(begun) })
    app.members[0]?.sim.always({ status: 400, body: stalled })
    const began = app.clock.monotonic()
    expect(await getAnswer(app, TURN, { json: codexBody('hello') }, 1000)).toMatchObject({ status: 400 })
    expect(app.clock.monotonic() - began).toBeLessThan(7000)
    await expectNothingLeft(app)
  })

  test('and a status counts even if the body is interrupted', async () => {
    const broken = new ReadableStream({
      pull(controller) {
        controller.enqueue(new TextEncoder().encode('{"detail":"cut'))
        controller.error(new TypeError('ECONNRESET'))
      },
    })
    const one = await poolOfOne()
    one.sim.next({ on: 'usage', status: 404, body: () => broken })
    const err = await rejection(callAsAccount(one.deps, one.id, { path: '/wham/usage', timeoutMs: 1000 }))
    expect(err).toMatchObject({ status: 404 })
  })
})

describe('a successful response has a limit too', () => {
  test('of an account request', async () => {
    const one = await poolOfOne()
    const endless = flood(200, 'usage')
    one.sim.next(endless.fault)
    const err = await rejection(callAsAccount(one.deps, one.id, { path: '/wham/usage', timeoutMs: 1000 }))
    expect(err).toMatchObject({ code: 'upstream_error', message: expect.stringContaining('larger than 8 MiB') })
    expectBounded(endless, 8 * MIB)
  })

  test.each([
    ['a token refresh', (context: OAuthCall) => refreshTokens(context, TOKENS), RefreshError],
    ['a sign-in by a code', (context: OAuthCall) => exchangeCode(context, GRANT), SignInError],
  ])('of %s', async (_what, call, kind) => {
    const endless = flood(200)
    const err = await rejection(call(toContext(() => endless.response())))
    expect(err).toBeInstanceOf(kind)
    expect(String(err)).toContain('larger than 1 MiB')
    expectBounded(endless, MIB)
  })

  test('of a compaction', async () => {
    const app = await testApp()
    const endless = flood(200, 'compact')
    app.members[0]?.sim.next(endless.fault)
    const route = 'POST /backend-api/codex/responses/compact'
    expect(await getAnswer(app, route, { json: COMPACT_BODY })).toMatchObject({ status: 200 }) // by another attempt
    expect(await app.attemptRows()).toMatchObject([{ code: 'upstream_error' }, { code: null }])
    expectBounded(endless, 16 * MIB)
  })
})

describe('a compressed response, which is never requested', () => {
  const BOMB = gzipSync(Buffer.alloc(8 * MIB))
  const GZIP = { 'content-encoding': 'gzip' }

  test.each([
    ['a model turn', 'responses', 500],
    ['a compaction', 'compact', 400],
  ] as const)('that is an error of %s is not decompressed: its status counts', async (_what, on, status) => {
    await using service = Object.assign(await liveService({ settings: { upstreamStreamTransport: 'http' } }), {
      [Symbol.asyncDispose]: () => service.stop(),
    })
    service.members[0]?.sim.always({ on, status, body: BOMB, headers: GZIP })
    const path = on === 'compact' ? '/responses/compact' : '/responses'
    const response = await fetch(`${service.url}/backend-api/codex${path}`, {
      method: 'POST',
      body: JSON.stringify(on === 'compact' ? COMPACT_BODY : codexBody('hello')),
    })
    expect(response.status).toBe(status)
    expect(await response.json()).toMatchObject({ error: { message: `ChatGPT answered with status ${status}.` } })
  })

  test('that is a stream is attributed to a proxy on the way, not to the account', async () => {
    const app = await testApp()
    const body = gzipSync('data: {"type":"response.completed"}\n\n')
    app.members[0]?.sim.always({ status: 200, body, headers: { 'content-encoding': 'br' } })
    const { status, text } = await getAnswer(app, TURN, { json: codexBody('hello') })
    const { code, message } = JSON.parse(text).error
    expect([status, code]).toEqual([502, 'upstream_unreachable'])
    expect(message).toBe("ChatGPT sent a compressed answer, which Sluice doesn't accept.")
    expect(app.bindings.pool.all()[0]?.health.errors).toBe(0)
  })

  test('that is successful and small is decompressed, because it may contain the only valid token', async () => {
    const renewed = JSON.stringify({ access_token: 'a', refresh_token: 'r', id_token: 'i' })
    const context = toContext(() => new Response(gzipSync(renewed), { headers: GZIP }))
    expect(await refreshTokens(context, TOKENS)).toEqual({ accessToken: 'a', refreshToken: 'r', idToken: 'i' })
  })

  test.each([
    ['unpacks to more than the limit', BOMB, 'larger than 1 MiB'],
    ['is not what it says', Buffer.from('{}'), 'could not be decoded'],
  ])('that %s is an error', async (_why, body, words) => {
    const context = toContext(() => new Response(body, { headers: GZIP }))
    expect(String(await rejection(refreshTokens(context, TOKENS)))).toContain(words)
  })
})
