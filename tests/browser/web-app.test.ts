/** A web app of a listed origin, in a real browser: HTTP, a stream, errors, and a socket with its key in a subprotocol. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { launchBrowser, type TestBrowser } from './browser.ts'
import { startPopulated } from './world.ts'

setDefaultTimeout(120_000)

describe('a page of another origin', () => {
  let world: Awaited<ReturnType<typeof startPopulated>>
  let browser: TestBrowser
  let app: Bun.Server<undefined>
  beforeAll(async () => {
    world = await startPopulated()
    browser = await launchBrowser()
    const html = { headers: { 'content-type': 'text/html' } }
    app = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('<p>An app</p>', html) })
  })
  afterAll(async () => {
    await app.stop(true)
    await browser[Symbol.asyncDispose]()
    await world[Symbol.asyncDispose]()
  })

  const list = async (corsOrigins: string) => {
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ corsOrigins })
    expect((await fetch(`${world.url}/api/settings`, { method: 'PATCH', headers, body })).status).toBe(200)
  }

  const seenBy = async () => {
    await using visit = await browser.visit(app.url.href)
    return await visit.page.evaluate(fromThePage, { url: world.url, key: world.key })
  }

  test('can use the API while it is allowed', async () => {
    await list(app.url.origin)
    expect(await seenBy()).toEqual({
      stream: [200, 'temperature', true],
      wrongKey: [401, 'invalid_api_key'],
      socket: ['realtime', 'response.completed'],
    })
  })

  test('cannot read or open anything otherwise', async () => {
    await list('http://localhost:1')
    expect(await seenBy()).toEqual({ stream: 'no answer', wrongKey: 'no answer', socket: 'no answer' })
  })
})

/** Runs in the page, with what `openai` sends from one. */
const fromThePage = async ({ url, key }: { url: string; key: string }) => {
  const orNone = <T>(work: Promise<T>): Promise<T | string> => work.catch(() => 'no answer')
  const chat = async (authorization: string) => {
    const headers = { authorization, 'content-type': 'application/json', 'x-stainless-lang': 'js' }
    const messages = [{ role: 'user', content: 'hi' }]
    const body = JSON.stringify({ model: 'gpt-5.5', messages, stream: true, temperature: 1 })
    return fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body })
  }
  const socket = orNone(
    new Promise<string[]>((resolve, reject) => {
      const ws = new WebSocket(`${url.replace('http', 'ws')}/v1/responses`, [
        'realtime',
        `openai-insecure-api-key.${key}`,
      ])
      ws.onopen = () => ws.send(JSON.stringify({ type: 'response.create', model: 'gpt-5.5', input: 'hi' }))
      ws.onerror = () => reject(new Error('closed'))
      ws.onmessage = ({ data }) => {
        const { type } = JSON.parse(data)
        if (/completed|failed|error/.test(type)) resolve([ws.protocol, type])
      }
    }),
  )
  return {
    stream: await orNone(
      chat(`Bearer ${key}`).then(async (answer) => {
        const isWhole = (await answer.text()).trimEnd().endsWith('data: [DONE]')
        return [answer.status, answer.headers.get('x-sluice-dropped-fields'), isWhole]
      }),
    ),
    wrongKey: await orNone(
      chat('Bearer nope').then(async (answer) => [answer.status, (await answer.json()).error.code]),
    ),
    socket: await socket,
  }
}
