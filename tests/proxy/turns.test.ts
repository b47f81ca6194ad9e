/** Model requests over HTTP, end to end in process: the response, the upstream request, and the log. */
import { describe, expect, test } from 'bun:test'
import { codexBody, getEvents, testApp } from '../support/app.ts'

const POST = 'POST /backend-api/codex/responses'
const getTypes = (events: { type: string }[]) => events.map(({ type }) => type)

describe('a successful request', () => {
  test('is relayed event by event and logged once', async () => {
    const { ask, upstream, rows, bindings } = await testApp()
    const response = await ask(POST, { json: codexBody() })
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toStartWith('text/event-stream')
    const events = await getEvents(response)
    expect(events[0]?.type).toBe('response.created')
    expect(getTypes(events).filter((type) => type === 'response.completed')).toHaveLength(1)
    expect(events.at(-1)?.type).toBe('response.completed')
    expect(await rows()).toHaveLength(1)
    expect((await rows())[0]).toMatchObject({ status: 'ok', httpStatus: 200, attempts: 1, model: 'gpt-5.5' })
    expect((await rows())[0]?.outputTokens).toBeGreaterThan(0)
    expect(bindings.pool.all()[0]?.inFlight).toBe(0)
    expect(upstream.oddities).toEqual([])
  })

  test.each([true, false])('shows a key the quota of its account unless that is hidden: %p', async (isHidden) => {
    const { ask, key, members } = await testApp({
      settings: { apiKeyAuthEnabled: true, hideUpstreamQuotaFromApiKeys: isHidden },
    })
    members[0]?.sim.next({ rateLimitsEvent: true })
    const response = await ask(POST, { json: codexBody(), headers: { authorization: `Bearer ${(await key()).key}` } })
    const types = getTypes(await getEvents(response))
    expect([types.includes('codex.rate_limits'), types.at(-1)]).toEqual([!isHidden, 'response.completed'])
  })

  test('sends the body byte for byte', async () => {
    const { ask, upstream } = await testApp()
    const text = `  ${JSON.stringify(codexBody(), null, 3)}\n`
    await (await ask(POST, { body: text })).text()
    expect(upstream.requests[0]?.bodyText).toBe(text)
  })

  test('has a request id and phases', async () => {
    const { ask } = await testApp()
    const response = await ask(POST, { json: codexBody(), headers: { 'x-request-id': 'mine-1' } })
    expect(response.headers.get('x-request-id')).toBe('mine-1')
    expect(response.headers.get('server-timing')).toMatch(/^admit;dur=\d+\.\d{3}, select;dur=\d+\.\d{3}, connect;dur=/)
    await response.text()
  })
})
