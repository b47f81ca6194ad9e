/** The handshakes that the stand-in upstream rejects or records as odd. */
import { afterEach, describe, expect, test } from 'bun:test'
import { connectSocket, SocketRefused } from '../socket-client.ts'
import { getHandshake } from './client.ts'
import { createSocketLab, SOCKET_PATH } from './socket-lab.ts'

const lab = createSocketLab({ now: () => Date.UTC(2026, 10, 20) })
const { upstream, url, anAccount, open } = lab
afterEach(lab.tidy)

async function refused(headers: Record<string, string>): Promise<SocketRefused> {
  const outcome = await connectSocket(`${url}${SOCKET_PATH}`, { headers }).catch((error: unknown) => error)
  if (outcome instanceof SocketRefused) return outcome
  throw outcome
}

describe('a handshake', () => {
  test('without a valid token or the protocol version is rejected', async () => {
    const account = anAccount()
    const good = getHandshake(account)
    const token = await refused({ ...good, authorization: 'Bearer nobody' })
    expect([token.status, JSON.parse(token.body)]).toEqual([401, { detail: 'Unauthorized' }])
    const beta = await refused({ ...good, 'openai-beta': 'responses=experimental' })
    expect([beta.status, beta.body]).toEqual([400, expect.stringContaining('responses_websockets=2026-02-06')])
    expect((await refused({ ...good, 'openai-beta': '' })).status).toBe(400)
    expect(upstream.oddities).toEqual([])
    const stranger = await refused({ ...good, 'chatgpt-account-id': anAccount().chatgptAccountId })
    expect(stranger.status).toBe(401)
    expect(upstream.oddities).toEqual([expect.stringContaining('the chatgpt-account-id of another account')])
    account.expireAccessToken()
    const expired = await refused(good)
    expect([expired.status, JSON.parse(expired.body)]).toMatchObject([401, { error: { code: 'token_expired' } }])
    expect(upstream.handshakes.map(({ status }) => status)).toEqual([401, 400, 400, 401, 401])
    expect(upstream.requests).toEqual([])
  })

  const mistakes: [name: string, headers: Record<string, string>, sentence: string][] = [
    ['a cookie', { cookie: 'a=b' }, 'the header cookie must not reach the service'],
    ['a content type', { 'content-type': 'application/json' }, 'the header content-type must not'],
    ['an internal header', { 'x-codex-lb-required-capability': 'x' }, 'x-codex-lb-required-capability must not'],
    ['a forwarding header', { 'x-forwarded-for': '10.0.0.1' }, 'x-forwarded-for must not'],
    ['a hop-by-hop header', { te: 'trailers' }, 'the header te must not'],
    ['the lite marker', { 'x-openai-internal-codex-responses-lite': 'true' }, 'responses-lite must not'],
    ['a client key', { 'x-something': 'sk-clb-abc' }, 'a client API key is in the header x-something'],
    ['a foreign turn state', { 'x-codex-turn-state': 'ts.other.1' }, 'an x-codex-turn-state that it did not issue'],
    ['no user agent', { 'user-agent': '' }, 'there is no user-agent'],
  ]
  test.each(mistakes)('with %s is recorded as odd', async (_name, headers, sentence) => {
    await open(anAccount(), { headers })
    expect(upstream.oddities).toEqual([expect.stringContaining(sentence)])
  })

  test('that offers a sub-protocol is recorded as odd', async () => {
    await open(anAccount(), { protocols: ['v1'] })
    expect(upstream.oddities).toEqual([expect.stringContaining('sec-websocket-protocol must not')])
  })
})
