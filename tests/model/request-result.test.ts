/** The result of a request, in the same words in the log, the overview, the metrics and the API. */
import { describe, expect, test } from 'bun:test'
import { getCause, REJECTION_RESULTS, type ResultFacts, resultText } from '../../src/model/log/request-result.ts'

const failed = (errorCode: string | null, more: Partial<ResultFacts> = {}): ResultFacts => ({
  status: 'error',
  errorCode,
  phase: 'select',
  errorMessage: null,
  ...more,
})

describe('a result is named by its cause', () => {
  test.each<[string, ResultFacts, accountsTried: number]>([
    ['Completed', { ...failed(null), status: 'ok', phase: null }, 1],
    ['Cancelled by the client', { ...failed(null), status: 'cancelled', phase: 'stream' }, 1],
    ['Rejected by ChatGPT: unknown model (1 account tried)', failed('model_not_found', { phase: 'upstream' }), 1],
    ['Rejected by ChatGPT: unknown model (3 accounts tried)', failed('model_not_supported', { phase: 'upstream' }), 3],
    ['Unknown model', failed('model_not_found', { phase: 'auth' }), 0],
    ['All accounts at their limit', failed('usage_limit_reached'), 0],
    ['All accounts at their limit (2 accounts tried)', failed('insufficient_quota', { phase: 'upstream' }), 2],
    ['All accounts at their limit', failed('workspace_member_credits_depleted'), 0],
    [
      'The account of this conversation is at its limit',
      failed('usage_limit_reached', {
        errorMessage: 'The account that owns this conversation has reached its usage limit.',
      }),
      0,
    ],
    ['Rejected by a limit of the key', failed('rate_limit_exceeded', { phase: 'auth' }), 0],
    ['Rejected by ChatGPT: rate limit (1 account tried)', failed('rate_limit_exceeded', { phase: 'upstream' }), 1],
    ['Rejected by a restriction of the key', failed('invalid_request_error', { phase: 'auth' }), 0],
    ['Invalid request', failed('invalid_request_error', { phase: 'request' }), 0],
    [
      'Rejected by ChatGPT: invalid request (1 account tried)',
      failed('invalid_request_error', { phase: 'upstream' }),
      1,
    ],
    [
      'Rejected by ChatGPT: input too long (1 account tried)',
      failed('context_length_exceeded', { phase: 'upstream' }),
      1,
    ],
    ['Stream cut off', failed('stream_incomplete', { phase: 'stream' }), 1],
    ['Stream cut off', failed('upstream_timeout', { phase: 'stream' }), 1],
    ['ChatGPT did not respond in time (2 accounts tried)', failed('upstream_timeout', { phase: 'first_event' }), 2],
    ['ChatGPT could not be reached (1 account tried)', failed('stream_incomplete', { phase: 'connect' }), 1],
    ['No account available', failed('no_accounts'), 0],
    ['No account available (1 account tried)', failed('no_accounts', { phase: 'upstream' }), 1],
    ['ChatGPT is overloaded (1 account tried)', failed('server_is_overloaded', { phase: 'upstream' }), 1],
    ['ChatGPT returned an error (1 account tried)', failed('upstream_error', { phase: 'upstream' }), 1],
    // A code that the table does not have is shown in place of words.
    ['Rejected by ChatGPT: some new rule (1 account tried)', failed('Some_New_Rule', { phase: 'upstream' }), 1],
    ['ChatGPT returned an error (1 account tried)', failed('some_new_rule', { phase: 'stream' }), 1],
    ['Failed: some new rule', failed('some_new_rule'), 0],
    ['Failed', failed(null), 0],
  ])('%s', (words, facts, accountsTried) => {
    expect(resultText(facts, accountsTried)).toBe(words)
  })

  test('a long code of the upstream is shortened', () => {
    expect(resultText(failed('x'.repeat(500), { phase: 'upstream' }), 0).length).toBeLessThan(100)
  })

  test.each(['constructor', '__proto__', 'toString'])('%s is not found in the table', (code) => {
    expect(getCause(failed(code))).toBe('other')
    expect(getCause(failed(code, { phase: 'upstream' }))).toBe('rejected')
  })
})

test('rejected clients have one result each, and all say that they were rejected', () => {
  expect(REJECTION_RESULTS.unknown_key).toBe('Rejected: unknown key')
  for (const words of Object.values(REJECTION_RESULTS)) expect(words).toStartWith('Rejected: ')
})
