/** The plan of an account is hidden, because the native client would suggest upgrading it. */
import { describe, expect, test } from 'bun:test'
import { withoutAccountFacts } from '../../src/proxy/formats/account-facts.ts'
import { FrameEvent } from '../../src/upstream/frame-event.ts'
import {
  create,
  leave,
  NATIVE as NATIVE_SOCKET,
  open,
  PUBLIC as PUBLIC_SOCKET,
  startSocketWorld,
} from '../sockets/ground.ts'
import { codexBody, getAnswer, testApp } from '../support/app.ts'
import { type Fault, faults } from '../support/upstream/faults.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const PUBLIC = 'POST /v1/responses'
const CHAT = 'POST /v1/chat/completions'
const hello = { model: 'gpt-5.5', stream: true }
const BODIES = {
  [NATIVE]: codexBody(),
  [PUBLIC]: { ...hello, input: 'hello' },
  [CHAT]: { ...hello, messages: [{ role: 'user', content: 'hello' }] },
}
const limit = (afterEvents: number) => ({
  code: 'usage_limit_reached',
  message: 'It is used up.',
  plan_type: 'plus',
  afterEvents,
})
const FAULTS: [string, Fault][] = [
  ['a rate event', { rateLimitsEvent: true }],
  ['429 usage_limit_reached', faults.usageLimit({ resetsAt: Date.UTC(2026, 0, 1, 3) })],
  ['429 usage_not_included', { status: 429, body: { error: { type: 'usage_not_included', plan_type: 'plus' } } }],
  ['400 that names it', { status: 400, body: { error: { code: 'invalid_value', message: 'x', plan_type: 'plus' } } }],
  ['response.failed before the commit', { failAfterCreated: limit(1) }],
  ['response.failed after the commit', { failAfterCreated: limit(8) }],
  ['an error event after the commit', { errorEvent: limit(8) }],
  ['a flat error event after the commit', { malformedChunk: { afterEvents: 8, text: flatError() } }],
]

function flatError(): string {
  return `event: error\ndata: ${JSON.stringify({ type: 'error', ...limit(0) })}\n\n`
}

describe.each(FAULTS)('%s', (_what, fault) => {
  test.each([NATIVE, PUBLIC, CHAT] as const)('%s', async (route) => {
    const app = await testApp()
    app.members[0]!.sim.always(fault)
    for (let turn = 0; turn < 2; turn++) {
      const { text, headers } = await getAnswer(app, route, { json: BODIES[route] })
      expect(text + JSON.stringify(headers)).not.toMatch(/plan[-_]type/)
      if (route === NATIVE && fault.rateLimitsEvent) expect(text).toContain('"rate_limits":{')
    }
  })

  test.each([NATIVE_SOCKET, PUBLIC_SOCKET])('socket %s', async (path) => {
    await using service = await startSocketWorld()
    service.members[0]!.sim.always(fault)
    const socket = await open(service, { path })
    expect(JSON.stringify(await socket.turn(create()))).not.toMatch(/plan[-_]type/)
    await leave(service, socket)
  })
})

test('a JSON response has none either', async () => {
  const app = await testApp()
  const response = { id: 'resp_1', status: 'completed', output: [], plan_type: 'pro', metadata: { plan_type: 'mine' } }
  const text = `event: response.completed\ndata: ${JSON.stringify({ type: 'response.completed', response })}\n\n`
  app.members[0]!.sim.always({ malformedChunk: { afterEvents: 8, text } })
  const answer = await getAnswer(app, PUBLIC, { json: { ...BODIES[PUBLIC], stream: false } })
  const { plan_type: plan, metadata } = JSON.parse(answer.text)
  expect([answer.status, plan, metadata]).toEqual([200, undefined, { plan_type: 'mine' }])
})

const cleaned = (event: object) => JSON.parse(withoutAccountFacts(new FrameEvent(JSON.stringify(event))).data ?? '')

test('it is removed from every event that could contain it, and nothing else is', () => {
  const windows = { primary: { used_percent: 3, window_minutes: 300 }, plan_type: 'pro' }
  expect(
    cleaned({ type: 'codex.rate_limits', plan_type: 'pro', rate_limits: windows, metered_limit_name: 'x' }),
  ).toEqual({
    type: 'codex.rate_limits',
    rate_limits: { primary: { used_percent: 3, window_minutes: 300 } },
    metered_limit_name: 'x',
  })
  const error = { code: 'x', plan_type: 'pro', resets_at: 5 }
  expect(cleaned({ type: 'response.failed', response: { id: 'r', plan_type: 'pro', error } })).toEqual({
    type: 'response.failed',
    response: { id: 'r', error: { code: 'x', resets_at: 5 } },
  })
  expect(cleaned({ type: 'response.metadata', headers: { 'X-Codex-Plan-Type': 'pro', 'x-a': '1' } })).toEqual({
    type: 'response.metadata',
    headers: { 'x-a': '1' },
  })
})

test('a tool with a parameter of this name is unchanged', () => {
  const tools = [{ type: 'function', name: 'f', parameters: { properties: { plan_type: { type: 'string' } } } }]
  const event = new FrameEvent(JSON.stringify({ type: 'response.created', response: { id: 'r', tools } }))
  expect(withoutAccountFacts(event)).toBe(event)
  const call = new FrameEvent(
    JSON.stringify({ type: 'response.function_call_arguments.done', arguments: '{"plan_type":"pro"}' }),
  )
  expect(withoutAccountFacts(call)).toBe(call)
})
