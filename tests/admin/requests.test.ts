/** The filter options of the request log, and the price table in use. */
import { expect, test } from 'bun:test'
import { PRICES_VERSION } from '../../src/model/catalog/pricing.ts'
import { testApp } from '../support/app.ts'

test('the options name the current price table beside the values that occur', async () => {
  const response = await (await testApp()).ask('GET /api/request-logs/options')
  expect([response.status, await response.json()]).toEqual([
    200,
    expect.objectContaining({ pricesVersion: PRICES_VERSION, statuses: expect.any(Array) }),
  ])
})
