/**
 * docs/reverse-proxies.md, "A proxy that signs people in": its configuration in a real nginx, with a stand-in
 * provider.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { ensureProgram, NGINX } from '../../scripts/programs.ts'
import { codexBody } from '../support/app.ts'
import { type Network, ORIGIN, openNetwork } from './reverse-proxies-network.ts'
import { type ProxyServer, startIdentityNginx } from './reverse-proxies-servers.ts'
import { startWorld, type World } from './reverse-proxies-world.ts'

setDefaultTimeout(120_000)

const nginx = await ensureProgram(NGINX)
const CAN_RUN = process.platform === 'linux' && nginx !== undefined

const SIGN_IN = 'https://auth.example.com/'

/** Identifies users by its own cookie. */
const identityProvider = () =>
  Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: ({ url, headers }) => {
      const [, who] = /\bwho=(\w+)/.exec(headers.get('cookie') ?? '') ?? []
      if (new URL(url).pathname !== '/api/authz/auth-request') return new Response(null, { status: 404 })
      if (who) return new Response(null, { headers: { 'remote-user': who } })
      return new Response(null, {
        status: 401,
        headers: { location: `${SIGN_IN}?rd=${headers.get('x-original-url')}` },
      })
    },
  })

describe.skipIf(!CAN_RUN && process.env.CI !== 'true')('nginx with an identity provider', () => {
  const identity = identityProvider()
  let world: World
  let proxy: ProxyServer
  let network: Network

  beforeAll(async () => {
    world = await startWorld({
      headings: ['Set up Sluice', 'A proxy that signs people in'],
      accounts: ['ada@example.test'],
    })
    const behind = { port: world.server.port, identityPort: identity.port }
    proxy = await startIdentityNginx(nginx ?? '', behind)
    network = await openNetwork(proxy.port)
  })

  afterAll(async () => {
    for (const one of [network, proxy, world]) await one?.[Symbol.asyncDispose]()
    await identity.stop(true)
  })

  /** A header sent by the client differs from the proxy's. */
  const as = (who: string, more: Record<string, string> = {}) => ({
    headers: { cookie: `who=${who}`, 'remote-user': 'admin', origin: ORIGIN, ...more },
  })

  test('redirects visitors without a session to the provider, and back to their page', async () => {
    const answer = await network.fetch('/dashboard', { redirect: 'manual', headers: { 'remote-user': 'admin' } })
    expect([answer.status, answer.headers.get('location')]).toEqual([302, `${SIGN_IN}?rd=${ORIGIN}/dashboard`])
  })

  test('identifies users to the dashboard, whatever headers they send', async () => {
    const session = await (await network.fetch('/api/dashboard-auth/session', as('anna'))).json()
    expect(session).toMatchObject({ user: { username: 'anna' } })
  })

  test('passes their changes on', async () => {
    const init = { method: 'POST', body: JSON.stringify({ name: 'hers' }) }
    const made = await network.fetch('/api/api-keys/', {
      ...init,
      ...as('anna', { 'content-type': 'application/json' }),
    })
    expect([made.status, await made.json()]).toEqual([200, expect.objectContaining({ name: 'hers' })])
  })

  test('leaves model clients to their keys', async () => {
    const turn = (authorization: string) =>
      network.fetch('/v1/responses', {
        method: 'POST',
        headers: { authorization, 'remote-user': 'admin', 'content-type': 'application/json' },
        body: JSON.stringify({ ...codexBody(), stream: false }),
      })
    expect((await turn('Bearer none')).status).toBe(401)
    const answer = await turn(`Bearer ${world.key}`)
    expect([answer.status, await answer.json()]).toEqual([200, expect.objectContaining({ status: 'completed' })])
  })
})
