/** Every upstream failure is classified in one place: the next account, the charge, and the client's error. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { AppError, openAiError } from '../../src/errors.ts'
import { PERMANENT_AUTH_CODES } from '../../src/model/accounts/account-state.ts'
import {
  classify,
  failureFromEvent,
  failureFromResponse,
  failureFromThrown,
  parseTryAgain,
  type UpstreamFailure,
} from '../../src/proxy/exchange/classify.ts'
import { holds } from '../support/property.ts'

const AT = Date.UTC(2026, 10, 20, 12)
const RESET = AT / 1000 + 3600

const response = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  failureFromResponse(status, new Headers(headers), typeof body === 'string' ? body : JSON.stringify(body), AT)
const failed = (error: object | null, rest: object = {}) =>
  event({ type: 'response.failed', response: { error, ...rest } })
const event = (body: object): UpstreamFailure => {
  const failure = failureFromEvent(body, AT)
  if (!failure) throw new Error('not read as a failure')
  return failure
}
const judge = (failure: UpstreamFailure) => {
  const { verdict, penalty, error } = classify(failure, AT)
  return [verdict, penalty?.kind ?? null, error.status, openAiError(error).code]
}

describe('statuses', () => {
  const error = (code: string | null, message = 'Sorry.', type: string | null = null) => ({
    error: { code, message, type },
  })
  const model = "The 'gpt-x' model is not supported when using Codex with a ChatGPT account."
  const rows: [string, UpstreamFailure, (string | number | null)[]][] = [
    ['401', response(401, { detail: 'Unauthorized' }), ['refresh', null, 502, 'upstream_auth_failed']],
    ['401 invalid_api_key', response(401, error('invalid_api_key')), ['refresh', null, 502, 'upstream_auth_failed']],
    ['401 token_expired', response(401, error('token_expired')), ['refresh', null, 502, 'upstream_auth_failed']],
    [
      '401 generic type',
      response(401, error(null, 'x', 'invalid_request_error')),
      ['refresh', null, 502, 'upstream_auth_failed'],
    ],
    [
      '401 suspended',
      response(401, error('account_suspended')),
      ['other_account', 'auth_failed', 502, 'upstream_auth_failed'],
    ],
    [
      '402 workspace',
      response(402, { detail: { code: 'deactivated_workspace' } }),
      ['other_account', 'auth_failed', 502, 'upstream_auth_failed'],
    ],
    ['402', response(402, {}), ['other_account', 'quota_exceeded', 429, 'usage_limit_reached']],
    ['403 page', response(403, '<html>challenge</html>'), ['refused', null, 502, 'upstream_error']],
    ['403 with a code', response(403, error('region_denied')), ['refused', null, 403, 'region_denied']],
    [
      '403 model by code',
      response(403, error('model_not_found')),
      ['other_account', 'model_unsupported', 403, 'model_not_found'],
    ],
    [
      '403 model in words',
      response(403, { detail: model }),
      ['other_account', 'model_unsupported', 403, 'model_not_found'],
    ],
    [
      '403 model by param',
      response(403, { error: { code: 'permission_denied', message: 'No access.', param: 'model' } }),
      ['other_account', 'model_unsupported', 403, 'permission_denied'],
    ],
    [
      '403 model by param, in the other error format',
      response(403, { detail: { code: 'permission_denied', message: 'No access.', param: 'model' } }),
      ['other_account', 'model_unsupported', 403, 'permission_denied'],
    ],
    [
      '403 of another param',
      response(403, { error: { code: 'permission_denied', message: 'No access.', param: 'tools' } }),
      ['refused', null, 403, 'permission_denied'],
    ],
    ['429 plain', response(429, 'slow'), ['other_account', 'rate_limited', 429, 'rate_limit_exceeded']],
    [
      '429 by type',
      response(429, error(null, 'x', 'usage_limit_reached')),
      ['other_account', 'rate_limited', 429, 'usage_limit_reached'],
    ],
    [
      '429 insufficient_quota',
      response(429, error('insufficient_quota')),
      ['other_account', 'quota_exceeded', 429, 'insufficient_quota'],
    ],
    [
      '429 usage_not_included',
      response(429, error(null, 'x', 'usage_not_included')),
      ['other_account', 'quota_exceeded', 429, 'usage_limit_reached'],
    ],
    ['500', response(500, error('server_error')), ['same_account', 'transient', 500, 'server_error']],
    ['502 page', response(502, '<html>'), ['same_account', 'transient', 502, 'upstream_error']],
    ['503 overloaded', response(503, error('server_is_overloaded')), ['overloaded', null, 503, 'server_is_overloaded']],
    ['504', response(504, ''), ['same_account', 'transient', 504, 'upstream_error']],
    ['522', response(522, ''), ['same_account', 'transient', 502, 'upstream_error']],
    ['529', response(529, ''), ['same_account', 'transient', 529, 'upstream_error']],
    ['408', response(408, ''), ['same_account', 'transient', 502, 'upstream_error']],
    [
      '400 at capacity',
      response(400, error(null, 'Selected model is at capacity. Please try another.')),
      ['overloaded', null, 400, 'upstream_error'],
    ],
    ['307', response(307, ''), ['same_account', 'transient', 502, 'upstream_error']],
    ['400 model', response(400, { detail: model }), ['other_account', 'model_unsupported', 400, 'model_not_found']],
    [
      '404 model',
      response(404, error('model_not_found')),
      ['other_account', 'model_unsupported', 404, 'model_not_found'],
    ],
    ['400 context', response(400, error('context_length_exceeded')), ['give_up', null, 400, 'context_length_exceeded']],
    ['400 cyber', response(400, error('cyber_policy')), ['give_up', null, 400, 'cyber_policy']],
    ['400 prompt', response(400, error('invalid_prompt')), ['give_up', null, 400, 'invalid_prompt']],
    [
      '400 tool output',
      response(400, error(null, 'No tool output found for function call call_1.', 'invalid_request_error')),
      ['give_up', null, 400, 'invalid_request_error'],
    ],
    [
      '400 previous',
      response(400, error('previous_response_not_found')),
      ['give_up', null, 400, 'previous_response_not_found'],
    ],
    [
      '404 model that is not everywhere yet',
      response(404, { detail: 'Model not found gpt-x' }),
      ['other_account', 'model_unsupported', 404, 'model_not_found'],
    ],
    ['404', response(404, { detail: 'Not Found' }), ['give_up', null, 404, 'invalid_request_error']],
    ['422', response(422, error('odd')), ['give_up', null, 422, 'odd']],
    [
      '400 reasoning',
      response(400, error('invalid_encrypted_content')),
      ['encrypted_owner', null, 400, 'invalid_encrypted_content'],
    ],
    [
      '400 connection age',
      response(400, error('websocket_connection_limit_reached')),
      ['same_account', null, 502, 'websocket_connection_limit_reached'],
    ],
    [
      '400 quoting the client on deactivation',
      response(400, error('invalid_value', "Invalid value: 'account has been deactivated'.", 'invalid_request_error')),
      ['give_up', null, 400, 'invalid_value'],
    ],
    [
      '400 quoting it without a code',
      response(400, { detail: "Invalid value: 'account has been deactivated'." }),
      ['give_up', null, 400, 'invalid_request_error'],
    ],
    [
      '403 of the request, quoting it',
      response(403, error('invalid_prompt', 'Not this: account has been deactivated.')),
      ['give_up', null, 403, 'invalid_prompt'],
    ],
    [
      '500 quoting it',
      response(500, error(null, 'Failed at: account has been deactivated.')),
      ['same_account', 'transient', 500, 'upstream_error'],
    ],
    [
      '400 quoting the client on models',
      response(400, error('invalid_value', `Invalid value: "${model}"`)),
      ['give_up', null, 400, 'invalid_value'],
    ],
    [
      '429 quoting the client on models',
      response(429, { detail: `Too many of "${model}"` }),
      ['other_account', 'rate_limited', 429, 'rate_limit_exceeded'],
    ],
    [
      '400 quoting the client on capacity',
      response(400, error('invalid_value', "Invalid value: 'Selected model is at capacity.'")),
      ['give_up', null, 400, 'invalid_value'],
    ],
    [
      'an event quoting the client on deactivation',
      failed({ code: 'invalid_value', message: "Invalid value: 'account has been deactivated'." }),
      ['give_up', null, 502, 'invalid_value'],
    ],
    [
      '403 deactivated',
      response(403, { detail: 'Your account has been deactivated.' }),
      ['other_account', 'auth_failed', 502, 'upstream_auth_failed'],
    ],
  ]
  test.each(rows)('%s', (_, failure, expected) => expect(judge(failure)).toEqual(expected))

  test.each(Object.entries(PERMANENT_AUTH_CODES))('%s is charged by its own code', (code) => {
    const { verdict, penalty } = classify(response(403, error(code)), AT)
    const isRefreshable = code === 'token_expired' || code === 'token_invalidated'
    expect({ verdict, penalty }).toEqual(
      isRefreshable
        ? { verdict: 'refresh', penalty: null }
        : { verdict: 'other_account', penalty: { kind: 'auth_failed', code } },
    )
  })

  test('codes are recognized in any spelling, and a message beside an unknown one', () => {
    expect(judge(response(429, error('USAGE_LIMIT_REACHED')))[3]).toBe('USAGE_LIMIT_REACHED')
    expect(judge(response(400, error('USAGE_LIMIT_REACHED')))[0]).toBe('other_account')
    expect(classify(response(403, error('ACCOUNT_SUSPENDED')), AT).penalty).toEqual({
      kind: 'auth_failed',
      code: 'account_suspended',
    })
    expect(classify(response(403, error('x', 'Your account has been deactivated.')), AT).penalty).toEqual({
      kind: 'auth_failed',
      code: 'account_deactivated',
    })
    expect(judge(response(404, error(null, model)))[0]).toBe('other_account')
    for (const code of ['overloaded_error', 'server_is_overloaded', 'slow_down'])
      expect(judge(failed({ code, message: 'Sorry.' }))[2]).toBe(503)
  })

  test('an error of the request keeps its code, type, param and message', () => {
    const upstream = {
      message: 'Invalid value: bad.',
      type: 'invalid_request_error',
      code: 'invalid_value',
      param: 'input[0]',
    }
    expect(openAiError(classify(response(400, { error: upstream }), AT).error)).toEqual(upstream)
  })
})

describe('usage limits', () => {
  const body = (extra: object) => ({
    error: { type: 'usage_limit_reached', message: 'Reached.', plan_type: 'plus', ...extra },
  })

  test.each([
    ['resets_at', body({ resets_at: RESET }), {}],
    ['resets_in_seconds', body({ resets_in_seconds: 3600 }), {}],
    [
      'the headers of the full window',
      body({}),
      {
        'x-codex-primary-used-percent': '100',
        'x-codex-primary-window-minutes': '300',
        'x-codex-primary-reset-at': String(RESET),
      },
    ],
  ] as const)('take their reset from %s', (_, payload, headers) => {
    const failure = response(429, payload, headers)
    expect(failure.resetsAt).toBe(RESET * 1000)
    expect<unknown>(openAiError(classify(failure, AT).error)).toEqual({
      message: 'Reached.',
      type: 'usage_limit_reached',
      code: 'usage_limit_reached',
      param: null,
      resets_at: RESET,
      resets_in_seconds: 3600,
    })
  })

  test.each([[AT / 1000 - 5], [AT], ['soon'], [null]])('a reset of %p is ignored', (resets_at) => {
    expect(response(429, body({ resets_at })).resetsAt).toBeNull()
  })

  test('are recognized by their code alone, and in events and frames', () => {
    const expected = { type: 'usage_limit_reached', code: 'usage_limit_reached', resets_at: RESET }
    const error = { code: 'usage_limit_reached', message: 'Reached.', resets_at: RESET }
    for (const failure of [response(429, { error }), failed(error), event({ type: 'error', status: 429, error })]) {
      const { verdict, penalty, error: shown } = classify(failure, AT)
      expect([verdict, penalty?.kind]).toEqual(['other_account', 'rate_limited'])
      expect(openAiError(shown)).toMatchObject(expected)
    }
  })
})

describe('retry hints', () => {
  test.each([
    ['Please try again in 1.5s.', 1500],
    ['try again in 500ms', 500],
    ['Try again in 1h2m3s', 3_723_000],
    ['try again in 6m0s.', 360_000],
    ['try again in 20 seconds', 20_000],
    ['try again in 2 hours and 5 minutes', 7_500_000],
    ['try again in 1 day, 1 hour', 90_000_000],
    ['try again in 5 sheep', null],
    ['try again in 3mx', null],
    ['try again later', null],
    ['wait 5s', null],
  ])('%p is %p ms', (message, ms) => expect(parseTryAgain(message)).toBe(ms))

  test.each([
    [{ 'retry-after': '20' }, 20_000, 20],
    [{ 'retry-after': '0' }, 0, 1],
    [{ 'retry-after': new Date(AT + 5000).toUTCString() }, 5000, 5],
    [{ 'retry-after-ms': '1500', 'retry-after': '9' }, 1500, 2],
    [{ 'retry-after': '9000' }, 9_000_000, 300],
    [{ 'retry-after': 'soon' }, null, 60],
    [{}, null, 60],
  ] as const)('%p', (headers, ms, seconds) => {
    const failure = response(429, { error: { code: 'rate_limit_exceeded', message: 'Slow down.' } }, headers)
    expect(failure.retryAfterMs).toBe(ms)
    expect(classify(failure, AT).error.extra.retryAfterSeconds).toBe(seconds)
  })

  test.each([
    [{ 'retry-after': '20' }, 20],
    [{ 'retry-after': '86400' }, 300],
    [{}, undefined],
  ] as const)('of an overloaded upstream, %p', (headers, seconds) => {
    const failure = response(503, { error: { code: 'slow_down', message: 'Slow down.' } }, headers)
    expect(classify(failure, AT).error.extra.retryAfterSeconds).toBe(seconds)
  })

  test('an overloaded upstream is passed on without a wait of our own', () => {
    const seconds = (failure: UpstreamFailure) => classify(failure, AT).error.extra.retryAfterSeconds
    const error = { code: 'server_is_overloaded', message: 'Overloaded.' }
    expect(seconds(response(503, '<html>'))).toBeUndefined()
    expect(seconds(response(529, ''))).toBeUndefined()
    expect(seconds(failed(error))).toBeUndefined()
    expect(seconds(event({ type: 'error', status: 503, error }))).toBeUndefined()
    expect(seconds(failed({ message: 'Selected model is at capacity. Try again in 20s.' }))).toBe(20)
    expect(seconds(event({ type: 'error', status: 503, error, headers: { 'retry-after': 9 } }))).toBe(9)
  })

  test('the message is used if no header has a hint, also in events and frames', () => {
    const error = { code: 'rate_limit_exceeded', message: 'Rate limit reached for x. Please try again in 1.5s.' }
    expect(failed(error).retryAfterMs).toBe(1500)
    const frame = event({ type: 'error', status: 429, error, headers: { 'retry-after': '4', 'bad name': 'x', x: 1 } })
    expect(frame).toMatchObject({ status: 429, retryAfterMs: 4000 })
  })
})

describe('events', () => {
  test.each([
    ['server_error', ['same_account', 'transient', 502, 'server_error']],
    ['server_is_overloaded', ['overloaded', null, 503, 'server_is_overloaded']],
    ['context_length_exceeded', ['give_up', null, 400, 'context_length_exceeded']],
    ['invalid_prompt', ['give_up', null, 400, 'invalid_prompt']],
    ['insufficient_quota', ['other_account', 'quota_exceeded', 429, 'insufficient_quota']],
    ['stream_idle_timeout', ['other_account', null, 504, 'upstream_timeout']],
    ['invalid_encrypted_content', ['encrypted_owner', null, 400, 'invalid_encrypted_content']],
    ['token_revoked', ['refresh', null, 502, 'upstream_auth_failed']],
    ['never_heard_of', ['give_up', null, 502, 'never_heard_of']],
  ])('response.failed with %s', (code, expected) => expect(judge(failed({ code, message: 'x' }))).toEqual(expected))

  test('without a reason count as the upstream’s', () => {
    expect(judge(failed(null))).toEqual(['same_account', 'transient', 502, 'upstream_error'])
    expect(judge(event({ type: 'error' }))).toEqual(['same_account', 'transient', 502, 'upstream_error'])
  })

  test('are read in their flat and nested forms', () => {
    const flat = event({ type: 'error', code: 'rate_limit_exceeded', message: 'Slow.', error_type: 'tokens' })
    expect(flat).toMatchObject({
      where: 'event',
      code: 'rate_limit_exceeded',
      type: 'tokens',
      message: 'Slow.',
      status: null,
    })
    const alias = event({
      type: 'error',
      status_code: 400,
      error: { type: 'invalid_request_error', code: 'zzz', message: 'a' },
    })
    expect(judge(alias)).toEqual(['give_up', null, 400, 'zzz'])
    expect(judge(event({ type: 'error', status: 401, error: { message: 'x' } }))[0]).toBe('refresh')
  })

  test.each([
    [{ type: 'response.incomplete', response: {} }],
    [{ type: 'response.completed' }],
    [null],
    ['error'],
    [[]],
  ])('%p is not a failure', (body) => expect(failureFromEvent(body, AT)).toBeNull())
})

describe('thrown errors', () => {
  const thrown = (code: string) => Object.assign(new TypeError(`secret detail of ${code}`), { code })
  test.each([
    ['ECONNREFUSED', undefined, 'connect', ['same_account', 'connection', 502, 'upstream_unreachable']],
    ['ENOTFOUND', undefined, 'connect', ['same_account', 'connection', 502, 'upstream_unreachable']],
    ['ERR_PROXY_TUNNEL', undefined, 'connect', ['same_account', 'connection', 502, 'upstream_unreachable']],
    ['ECONNRESET', undefined, 'headers', ['same_account', 'connection', 502, 'upstream_unreachable']],
    ['ECONNRESET', 'stream', 'stream', ['same_account', 'connection', 502, 'stream_incomplete']],
    ['InvalidHTTPResponse', 'stream', 'stream', ['same_account', 'connection', 502, 'stream_incomplete']],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', undefined, 'connect', ['give_up', null, 502, 'upstream_unreachable']],
    ['ERR_TLS_CERT_ALTNAME_INVALID', undefined, 'connect', ['give_up', null, 502, 'upstream_unreachable']],
    ['EPROTO', undefined, 'connect', ['give_up', null, 502, 'upstream_unreachable']],
    ['UnsupportedProxyProtocol', undefined, 'connect', ['give_up', null, 502, 'upstream_unreachable']],
  ] as const)('%s caught at %p', (code, caughtAt, where, expected) => {
    const failure = failureFromThrown(thrown(code), caughtAt)
    expect(failure.where).toBe(where)
    expect(judge(failure)).toEqual([...expected])
    expect(failure.message).not.toContain('secret')
  })

  test.each([
    ['ConnectionRefused', 'headers', 'connect', 'ChatGPT could not be reached.'],
    ['ENOTFOUND', 'headers', 'connect', 'ChatGPT could not be reached.'],
    [
      'DEPTH_ZERO_SELF_SIGNED_CERT',
      'headers',
      'connect',
      'The TLS connection to ChatGPT failed: its certificate was not accepted.',
    ],
    ['ECONNRESET', 'headers', 'headers', 'The connection to ChatGPT was lost before it answered.'],
    ['EPROTO', 'stream', 'stream', 'The stream from ChatGPT ended before the response was complete.'],
  ] as const)('%s of an attempt, caught at %p, says what happened', (code, caughtAt, where, message) => {
    expect(failureFromThrown(thrown(code), caughtAt)).toMatchObject({ where, message })
  })

  test('timeouts, aborts, our own errors and unknown values', () => {
    const timeout = new DOMException('The operation timed out.', 'TimeoutError')
    expect(judge(failureFromThrown(timeout))).toEqual(['slow_account', 'transient', 504, 'upstream_timeout'])
    expect(judge(failureFromThrown(new DOMException('x', 'AbortError')))[0]).toBe('give_up')
    expect(judge(failureFromThrown(new AppError('stream_incomplete')))[0]).toBe('same_account')
    expect(judge(failureFromThrown('what'))).toEqual(['same_account', 'connection', 502, 'upstream_unreachable'])
  })
})

test('no failure becomes a 401', () => {
  const word = fc.option(
    fc.oneof(fc.string(), fc.constantFrom('invalid_request_error', 'constructor', 'invalid_prompt', 'model_not_found')),
    { nil: null },
  )
  const failure: fc.Arbitrary<UpstreamFailure> = fc.record({
    where: fc.constantFrom(
      'connect' as const,
      'headers' as const,
      'status' as const,
      'event' as const,
      'stream' as const,
    ),
    status: fc.oneof(fc.constantFrom(null, 401), fc.integer({ min: 300, max: 599 })),
    code: word,
    type: word,
    message: fc.string(),
    resetsAt: fc.option(fc.integer({ min: AT, max: AT + 1e9 }), { nil: null }),
    retryAfterMs: fc.option(fc.nat(1e7), { nil: null }),
    body: fc.anything(),
  })
  holds(
    fc.property(failure, (given) => {
      const { error } = classify(given, AT)
      expect(error.status).toBeWithin(400, 600)
      expect(error.status).not.toBe(401)
    }),
    500,
  )
})

test('any body and any event can be classified', () => {
  holds(
    fc.property(fc.anything(), fc.jsonValue(), (anything, json) => {
      failureFromEvent(anything, AT)
      failureFromEvent({ type: 'error', error: anything, status: anything, headers: anything }, AT)
      expect(response(500, json as object).message).not.toBe('')
      expect(response(500, { error: json, detail: json }).status).toBe(500)
    }),
  )
})
