/** What the stand-in upstream finds odd in a request. */
import { describe, expect, test } from 'bun:test'
import type { Account } from './accounts.ts'
import { createUpstream, type Upstream } from './app.ts'
import { aBody, ask, getHeaders, says } from './client.ts'

function anUpstream(): { upstream: Upstream; account: Account } {
  const upstream = createUpstream({ sleep: async () => {} })
  return { upstream, account: upstream.addAccount() }
}

describe('manners', () => {
  const mistakes: [name: string, headers: Record<string, string>, sentence: string][] = [
    ['a cookie', { cookie: 'a=b' }, 'the header cookie must not reach the service'],
    ['a client key', { 'x-something': 'sk-clb-abc' }, 'a client API key is in the header x-something'],
    ['a forwarding header', { 'x-forwarded-for': '10.0.0.1' }, 'x-forwarded-for must not reach'],
    ['an edge header', { 'cf-ray': 'x' }, 'cf-ray must not reach'],
    ['an internal header', { 'x-codex-lb-required-capability': 'x' }, 'x-codex-lb-required-capability must not'],
    ['a hop-by-hop header', { connection: 'upgrade' }, 'the hop-by-hop header connection'],
    ['a compressed answer', { 'accept-encoding': 'gzip' }, 'a stream was asked for with accept-encoding gzip'],
    ['a foreign turn state', { 'x-codex-turn-state': 'ts.other.1' }, 'an x-codex-turn-state that it did not issue'],
    ['no user agent', { 'user-agent': '' }, 'there is no user-agent'],
    ["Bun's user agent", { 'user-agent': 'Bun/1.4.5' }, "the user-agent is Bun's own"],
  ]
  test.each(mistakes)('%s is odd, and odd once', async (_name, headers, sentence) => {
    const { upstream, account } = anUpstream()
    await ask(upstream, account, { headers })
    await ask(upstream, account, { headers })
    expect(upstream.oddities).toEqual([expect.stringContaining(sentence)])
  })

  test('what Bun adds to a request by itself is seen in process too', async () => {
    const { upstream, account } = anUpstream()
    const { authorization = '', ...rest } = getHeaders(account)
    const headers = {
      authorization,
      'chatgpt-account-id': rest['chatgpt-account-id'] ?? '',
      accept: 'text/event-stream',
    }
    const init = { method: 'POST', headers, body: JSON.stringify(aBody()) }
    await upstream.fetch('http://upstream.test/backend-api/codex/responses', init)
    expect(upstream.oddities).toEqual([
      expect.stringContaining('accept-encoding gzip, deflate, br, zstd'),
      expect.stringContaining("Bun's own"),
    ])
  })

  test('a token with the id of another account is refused and odd', async () => {
    const { upstream, account } = anUpstream()
    const other = upstream.addAccount()
    const response = await ask(upstream, account, { headers: { 'chatgpt-account-id': other.chatgptAccountId } })
    expect(response.status).toBe(401)
    expect(upstream.oddities).toEqual([expect.stringContaining('the chatgpt-account-id of another account')])
  })

  test('the own turn state is echoed and not odd; a lite body without its header is', async () => {
    const { upstream, account } = anUpstream()
    const state = (await ask(upstream, account)).headers.get('x-codex-turn-state') ?? ''
    const again = await ask(upstream, account, { headers: { 'x-codex-turn-state': state } })
    expect(again.headers.get('x-codex-turn-state')).toBe(state)
    expect(upstream.oddities).toEqual([])
    const input = [{ type: 'additional_tools', role: 'developer', tools: [] }, says('hi')]
    await ask(upstream, account, { body: aBody({ input }) })
    expect(upstream.oddities).toEqual([expect.stringContaining('without the responses-lite header')])
  })
})
