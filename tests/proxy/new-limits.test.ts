/** A limit added to a key starts with what the key used before, as far as the log has it. */
import { describe, expect, test } from 'bun:test'
import { codexBody, expectNothingLeft, getAnswer, type TestApp, testApp } from '../support/app.ts'
import { type Fault, faults } from '../support/upstream/faults.ts'
import { sse } from '../support/upstream/relay-routes.ts'

const IMAGE = 'POST /backend-api/codex/images/generations'
const SEARCH = 'POST /backend-api/codex/alpha/search'
const TURN = 'POST /backend-api/codex/responses'
const CALL = 'POST /v1/realtime/calls'
const MINUTE_MS = 60_000

interface Case {
  isCharged: boolean
  route: string
  fault?: Fault
  /** The upstream's response on the route. */
  answer?: () => Response
  /** Milliseconds until the client disconnects. */
  leavesAfter?: number
}

/** An image stream that breaks off, or never ends. */
const part = (ends: boolean) => () =>
  new Response(
    new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(sse([{ type: 'image_generation.partial_image' }])))
        if (ends) controller.close()
      },
    }),
    { headers: { 'content-type': 'text/event-stream' } },
  )

const CASES: Record<string, Case> = {
  answered: { route: SEARCH, isCharged: true },
  'rejected upstream': { route: SEARCH, fault: { status: 400 }, isCharged: false },
  'failed upstream': { route: IMAGE, fault: faults.serverError(), isCharged: false },
  'left while an account worked on it': {
    route: SEARCH,
    fault: { delayHeadersMs: 1000 },
    leavesAfter: 100,
    isCharged: true,
  },
  'left while the answer was read': { route: IMAGE, answer: part(false), leavesAfter: 100, isCharged: true },
  'broken off': { route: IMAGE, answer: part(true), isCharged: true },
  'left while the next attempt waits': { route: SEARCH, fault: { reset: true }, leavesAfter: 0, isCharged: false },
  'a live call': { route: CALL, isCharged: true },
  'a live call that could not be bound': {
    route: CALL,
    answer: () => new Response('v=0', { status: 201 }),
    isCharged: false,
  },
  'a model request': { route: TURN, isCharged: true },
  'a model request that was left': { route: TURN, fault: { delayHeadersMs: 1000 }, leavesAfter: 100, isCharged: true },
}
const getBody = (route: string) => (route === TURN ? codexBody('hello') : { prompt: 'x', query: 'x', sdp: 'v=0' })

const run = async (app: TestApp, { route, fault, answer, leavesAfter }: Case, key: string) => {
  if (fault)
    app.members[0]!.sim.next({ ...(route === TURN ? {} : { on: route === IMAGE ? 'image' : 'control' }), ...fault })
  if (answer) app.upstream.answerRelay(answer)
  const client = new AbortController()
  const ask = { json: getBody(route), headers: { authorization: `Bearer ${key}` }, signal: client.signal }
  if (leavesAfter === undefined) await getAnswer(app, route, ask, 250)
  else {
    const asked = app.ask(route, ask).then(
      (response) => response.text(),
      () => '',
    )
    await app.clock.advance(leavesAfter)
    client.abort()
    await asked.catch(() => '')
    await app.clock.advance(2000)
  }
}
const limit = (limitWindow: 'daily' | '5h') =>
  ({ limitType: 'requests', limitWindow, maxValue: 100, modelFilter: '' }) as const

describe('requests of a new limit', () => {
  test.each(Object.entries(CASES))('are those that were charged: %s', async (_, sent) => {
    const { isCharged } = sent
    const app = await testApp()
    await app.clock.advance(10 * MINUTE_MS) // into an hour that the limit begins in
    const { key, row } = await app.key({ limits: [limit('daily')] })
    await run(app, sent, key)
    const { limits } = app.bindings.keys.find(key)!
    expect(limits[0]!.settled).toBe(isCharged ? 1 : 0)
    await app.clock.advance(295 * MINUTE_MS)
    await app.bindings.ledger.flush()
    const response = await app.ask(`PATCH /api/api-keys/${row.id}`, { json: { limits: [limit('daily'), limit('5h')] } })
    expect(response.status).toBe(200)
    const added = app.bindings.keys.find(key)!.limits.find(({ window }) => window === '5h')
    expect(added?.settled).toBe(isCharged ? 1 : 0)
    await expectNothingLeft(app)
  })
})
