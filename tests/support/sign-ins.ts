/** Upstream sign-ins in process: an app with its own callback port, and the stand-in's users. */
import { afterEach } from 'bun:test'
import type { SignInValue } from '../../views/accounts/new-frame.tsx'
import { type TestApp, type TestOptions, testApp } from './app.ts'
import { freePort } from './free-port.ts'
import { people } from './people.ts'
import type { Account } from './upstream/accounts.ts'

const running = new Set<TestApp>()

afterEach(async () => {
  for (const { bindings } of running) await bindings.signIns.stop()
  running.clear()
})

export const signInWorld = async ({ environment, ...options }: TestOptions = {}) => {
  const port = freePort()
  const app = await testApp({
    accounts: 0,
    ...options,
    environment: { CODEX_LB_OAUTH_CALLBACK_PORT: String(port), ...environment },
  })
  running.add(app)
  const { as, audit } = people(app)
  const admin = await as('admin', { username: 'anna' })
  const value = async (response: Response | Promise<Response>): Promise<SignInValue> => {
    const settled = await response
    if (settled.status !== 200) throw new Error(`answered ${settled.status}: ${await settled.text()}`)
    return (await settled.json()) as SignInValue // as: tests look at the members they name
  }
  return {
    app,
    admin,
    as,
    port,
    /** The recorded events about sign-ins and imports. */
    events: async () => (await audit()).map(({ event, actor, target, details }) => ({ event, actor, target, details })),
    start: (json: object = {}) => value(admin.ask('POST /api/oauth/start', { json })),
    status: (flowId?: string) => value(admin.ask(`GET /api/oauth/status${flowId ? `?flowId=${flowId}` : ''}`)),
    paste: (callbackUrl: string, flowId?: string) =>
      value(admin.ask('POST /api/oauth/manual-callback', { json: { callbackUrl, ...(flowId && { flowId }) } })),
    /** Where the browser of a user who signs in as `account` ends up. */
    approve: (flow: SignInValue, account: Account) =>
      app.upstream.signIns.approve(flow.authorizationUrl ?? '', account),
    /** A browser that is sent there. */
    follow: (callbackUrl: string) => fetch(callbackUrl.replace('//localhost:', '//127.0.0.1:'), { redirect: 'manual' }),
    tokenCalls: () => app.upstream.requests.filter(({ path }) => path === '/oauth/token'),
    emails: () => app.bindings.pool.all().map(({ row }) => row.email),
  }
}
