/** What is logged for a failed account request. */
import { expect, test } from 'bun:test'
import { AppError } from '../../src/errors.ts'
import { getWhy, UpstreamRejection } from '../../src/upstream/account-call.ts'

test('the log has the message of a known failure, and all of an unexpected one', () => {
  const lost = new TypeError('ECONNREFUSED: Unable to connect.')
  const why = 'ChatGPT could not be reached. ECONNREFUSED: Unable to connect.'
  expect(getWhy(new AppError('upstream_unreachable', { cause: lost }))).toEqual({ why })
  const refused = new AppError('upstream_error', { message: 'No.', cause: '<html>' })
  expect(getWhy(refused)).toEqual({ why: 'No.', cause: '<html>' })
  const away = new UpstreamRejection(503, 'overloaded', 'Try later.')
  expect(getWhy(away)).toEqual({ why: 'ChatGPT answered 503 overloaded: Try later.' })
  for (const err of [lost, new AppError('internal_error', { cause: lost })]) expect(getWhy(err)).toEqual({ err })
})
