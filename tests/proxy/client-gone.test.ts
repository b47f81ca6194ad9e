/** A client that disconnects: the upstream is released, the request logged once, and no account charged. */
import { describe, expect, test } from 'bun:test'
import { codexBody, expectNothingLeft, type TestApp, testApp } from '../support/app.ts'
import { faults } from '../support/upstream/faults.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const V1 = 'POST /v1/responses'

const expectCancelled = async (app: TestApp, charged: { inputTokens: number | null }) => {
  await expectNothingLeft(app)
  expect(app.upstream.requests.map(({ aborted }) => aborted)).toEqual([true])
  expect(await app.rows()).toHaveLength(1)
  expect((await app.rows())[0]).toMatchObject({ status: 'cancelled', errorCode: null, ...charged })
  expect(app.bindings.pool.all()[0]).toMatchObject({ health: { errors: 0 }, state: { status: 'active' } })
  expect(app.lines.filter((line) => !/^\S+ (INFO|DEBUG) /.test(line))).toEqual([])
}

const json = codexBody()
/** What admission reserved for the input: one token a byte. */
const reserved = JSON.stringify(json).length

describe('a client that disconnects', () => {
  test('before the upstream has answered', async () => {
    const app = await testApp()
    app.members[0]!.sim.next({ delayHeadersMs: 60_000 })
    const client = new AbortController()
    void app.ask(NATIVE, { json, signal: client.signal }).catch(() => {})
    await app.clock.advance('2s')
    expect(app.bindings.turns.size).toBe(1)
    client.abort()
    await expectCancelled(app, { inputTokens: reserved })
    expect((await app.rows())[0]).toMatchObject({ httpStatus: 499, phase: 'connect', outputTokens: 0 })
  })

  test('while it waits for a slot', async () => {
    const app = await testApp({ settings: { proxyAccountStreamLimit: 1 } })
    app.members[0]!.sim.next({ silence: { afterEvents: 8 } })
    const reader = (await app.ask(NATIVE, { json })).body!.getReader()
    const client = new AbortController()
    void app.ask(NATIVE, { json, signal: client.signal }).catch(() => {})
    await app.clock.advance('2s')
    client.abort()
    await app.clock.advance(0)
    expect(await app.rows()).toMatchObject([{ status: 'cancelled', httpStatus: 499, phase: 'select', attempts: 0 }])
    expect(await app.failedSelections()).toEqual([])
    await reader.cancel()
    await expectNothingLeft(app)
  })

  test('while it waits for another attempt, after a rejected one', async () => {
    const app = await testApp()
    app.members[0]!.sim.always(faults.serverError())
    const client = new AbortController()
    void app.ask(NATIVE, { json, signal: client.signal }).catch(() => {})
    await app.clock.advance(100)
    client.abort()
    await expectNothingLeft(app)
    expect(await app.rows()).toMatchObject([{ status: 'cancelled', attempts: 1, inputTokens: null }])
  })

  test('while the first events are held', async () => {
    const app = await testApp()
    app.members[0]!.sim.next({ silence: { afterEvents: 2 } })
    const client = new AbortController()
    void app.ask(NATIVE, { json, signal: client.signal }).catch(() => {})
    await app.clock.advance('2s')
    expect(app.upstream.requests[0]?.eventsSent).toBe(2)
    client.abort()
    await expectCancelled(app, { inputTokens: reserved })
    expect((await app.rows())[0]).toMatchObject({ httpStatus: 499, phase: 'first_event' })
  })

  test('after early headers, in the body', async () => {
    const app = await testApp()
    app.members[0]!.sim.next({ delayHeadersMs: 60_000 })
    const asked = app.ask(NATIVE, { json })
    await app.clock.advance('11s')
    const reader = (await asked).body!.getReader()
    const read = reader.read()
    await app.clock.advance('9s')
    expect(new TextDecoder().decode((await read).value)).toContain('codex.keepalive')
    await reader.cancel()
    await expectCancelled(app, { inputTokens: reserved })
    expect((await app.rows())[0]).toMatchObject({ httpStatus: 200 })
  })

  test('after early headers, before it has read anything', async () => {
    const app = await testApp()
    app.members[0]!.sim.next({ delayHeadersMs: 60_000 })
    const client = new AbortController()
    const asked = app.ask(NATIVE, { json, signal: client.signal })
    await app.clock.advance('11s')
    await asked
    client.abort()
    await expectCancelled(app, { inputTokens: reserved })
  })

  for (const how of ['by closing the body', 'by closing the connection'] as const)
    test(`in the middle of the stream, ${how}`, async () => {
      const app = await testApp()
      app.members[0]!.sim.next({ silence: { afterEvents: 11 } })
      const client = new AbortController()
      const response = await app.ask(NATIVE, { json, signal: client.signal })
      const reader = response.body!.getReader()
      let seen = ''
      while (!seen.includes('output_text.delta')) seen += new TextDecoder().decode((await reader.read()).value)
      if (how === 'by closing the body') await reader.cancel()
      else client.abort()
      await expectCancelled(app, { inputTokens: reserved })
      expect((await app.rows())[0]!.outputTokens).toBeGreaterThan(0)
      expect((await app.rows())[0]).toMatchObject({ httpStatus: 200, phase: 'stream' })
    })

  test('while it reads nothing', async () => {
    const app = await testApp()
    app.members[0]!.sim.next({ manyEvents: { count: 1000, bytes: 100 } })
    const client = new AbortController()
    const response = await app.ask(NATIVE, { json, signal: client.signal })
    await app.clock.advance('30s')
    expect(response.status).toBe(200)
    expect(app.upstream.requests[0]!.eventsSent).toBeLessThan(20)
    client.abort()
    await expectCancelled(app, { inputTokens: reserved })
  })

  test('while a JSON answer is collected', async () => {
    const app = await testApp()
    app.members[0]!.sim.next({ silence: { afterEvents: 8 } })
    const client = new AbortController()
    const body = codexBody('hello', { stream: false })
    void app.ask(V1, { json: body, signal: client.signal }).catch(() => {})
    await app.clock.advance('2s')
    client.abort()
    await expectNothingLeft(app)
    expect(await app.rows()).toHaveLength(1)
    expect((await app.rows())[0]).toMatchObject({ status: 'cancelled', httpStatus: 499, phase: 'stream' })
  })

  test('while it waits for an account, which costs nothing', async () => {
    const app = await testApp({ settings: { proxyAccountStreamLimit: 1 } })
    app.members[0]!.sim.next({ silence: { afterEvents: 8 } })
    const first = new AbortController()
    const reader = (await app.ask(NATIVE, { json, signal: first.signal })).body!.getReader()
    const second = new AbortController()
    void app.ask(NATIVE, { json, signal: second.signal }).catch(() => {})
    await app.clock.advance('1s')
    second.abort()
    await app.clock.advance(0)
    expect(app.upstream.requests).toHaveLength(1)
    expect(await app.rows()).toMatchObject([{ status: 'cancelled', inputTokens: null, attempts: 0, phase: 'select' }])
    await reader.cancel()
    await expectNothingLeft(app)
  })

  test('while the token of its account is refreshed, which costs nothing', async () => {
    const app = await testApp()
    const { sim } = app.members[0]!
    sim.expireAccessToken()
    sim.always({ on: 'token', delayHeadersMs: 5000 })
    await app.clock.advance('9d')
    const client = new AbortController()
    void app.ask(NATIVE, { json, signal: client.signal }).catch(() => {})
    await app.clock.advance('1s')
    client.abort()
    await app.clock.advance('10s')
    expect(app.upstream.requests.filter(({ path }) => path.includes('responses'))).toEqual([])
    expect(await app.rows()).toMatchObject([
      { status: 'cancelled', phase: 'connect', inputTokens: null, costMicros: null },
    ])
    await expectNothingLeft(app)
  })

  test('right after the terminal event was answered', async () => {
    const app = await testApp()
    const client = new AbortController()
    const reader = (await app.ask(NATIVE, { json, signal: client.signal })).body!.getReader()
    let seen = ''
    while (!seen.includes('"type":"response.completed"')) seen += new TextDecoder().decode((await reader.read()).value)
    client.abort()
    await reader.cancel()
    await expectNothingLeft(app)
    expect(await app.rows()).toHaveLength(1)
    expect((await app.rows())[0]).toMatchObject({ status: 'ok', phase: null })
    expect(app.upstream.requests[0]).toMatchObject({ aborted: false, finished: true })
  })

  test('with the complete response before it disconnects gives the upstream time to end it', async () => {
    const app = await testApp()
    const { sim } = app.members[0]!
    const atOnce = { manyEvents: { count: 1, bytes: 1, perChunk: 100 } }
    sim.next(atOnce)
    await (await app.ask(NATIVE, { json })).text()
    sim.next({ ...atOnce, silence: { afterEvents: app.upstream.requests[0]!.eventsSent } })
    await (await app.ask(NATIVE, { json })).body!.cancel()
    await app.clock.advance(1000)
    expect(app.upstream.openStreams).toBe(1)
    await app.clock.advance(100)
    await expectNothingLeft(app)
  })

  test('a subsequent failure is not logged a second time', async () => {
    const app = await testApp()
    app.members[0]!.sim.next({ dripMs: 1000 })
    const asked = app.ask(NATIVE, { json })
    await app.clock.advance('5s')
    const reader = (await asked).body!.getReader()
    await reader.cancel()
    await app.clock.advance('30s')
    expect(await app.rows()).toHaveLength(1)
    await expectNothingLeft(app)
  })
})
