/** A request is priced and logged at the tier that was sent, whatever the response says. */
import { describe, expect, test } from 'bun:test'
import { costMicros } from '../../src/model/catalog/pricing.ts'
import type { NewKey } from '../../src/model/keys/key-input.ts'
import { codexBody, getAnswer, testApp } from '../support/app.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const USAGE = { inputTokens: 1000, cachedInputTokens: 0, outputTokens: 100, reasoningTokens: 0 }
const priced = (tier: string | null) => costMicros(USAGE, 'gpt-5.5', tier)

const answeredWith = (serviceTier: string | null) => {
  const response = {
    id: 'resp_1',
    object: 'response',
    status: 'completed',
    output: [],
    service_tier: serviceTier,
    usage: { input_tokens: 1000, output_tokens: 100, total_tokens: 1100 },
  }
  const events = [
    { type: 'response.created', response: { id: 'resp_1', service_tier: serviceTier } },
    { type: 'response.completed', response },
  ]
  return {
    status: 200,
    headers: { 'content-type': 'text/event-stream' },
    body: events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''),
  }
}

const served = async (sent: Record<string, unknown>, answered: string | null, key: Partial<NewKey> | null = null) => {
  const app = await testApp()
  app.members[0]!.sim.next(answeredWith(answered))
  const headers: Record<string, string> = key ? { authorization: `Bearer ${(await app.key(key)).key}` } : {}
  expect((await getAnswer(app, NATIVE, { json: codexBody('hello', sent), headers })).status).toBe(200)
  const [row] = await app.rows()
  return [row?.serviceTier, row?.costMicros]
}

describe('the tier that was sent is charged', () => {
  test.each([
    ['priority', 'default'],
    ['priority', null],
    ['flex', 'auto'],
  ])('%s, answered with %p', async (tier, answered) => {
    expect(await served({ service_tier: tier }, answered)).toEqual([tier, priced(tier)])
    expect(priced(tier)).not.toBe(priced(null))
  })

  test.each(['priority', 'flex', 'auto'])('none, answered with %p: the standard price', async (answered) => {
    expect(await served({}, answered)).toEqual([null, priced(null)])
  })

  test('a tier enforced by the key is sent, and charged', async () => {
    expect(await served({}, 'default', { enforcedServiceTier: 'priority' })).toEqual(['priority', priced('priority')])
  })
})
