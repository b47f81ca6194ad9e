/** A dashboard behind a reverse proxy that identifies users: their browsers, and the rules for new users. */
import { expect } from 'bun:test'
import { users } from '../../db/schema/people.ts'
import { testApp } from './app.ts'
import { type Browser, people } from './people.ts'

/** The header the proxy sets by default. */
export const HEADER = 'remote-user'
export const SETTINGS = 'GET /api/settings'
export const PROVIDER = 'PATCH /api/auth-providers/idp_trusted_header'

export const behindProxy = async (environment: Record<string, string> = {}) => {
  const app = await testApp({
    accounts: 0,
    environment: {
      CODEX_LB_DASHBOARD_AUTH_MODE: 'trusted_header',
      CODEX_LB_FIREWALL_TRUST_PROXY_HEADERS: 'true',
      ...environment,
    },
  })
  const world = people(app)
  /** A browser behind the proxy, announced as `subject`. */
  const announced = (subject: string): Browser => {
    const self = world.browser()
    const { ask } = self
    self.ask = (route, more = {}) => ask(route, { ...more, headers: { [HEADER]: subject, ...more.headers } })
    self.session = async () =>
      (await (await self.ask('GET /api/dashboard-auth/session')).json()) as Awaited<ReturnType<Browser['session']>> // as: the same route
    return self
  }
  const names = async () =>
    (await app.db.select().from(users).orderBy(users.createdAt, users.id).all()).map(({ username }) => username)
  /** What becomes of strangers, set by an Admin who confirmed. */
  const setProvider = async (json: Record<string, unknown>) => {
    const admin = await world.as('admin', { username: 'boss' })
    expect((await admin.ask(PROVIDER, { json })).status).toBe(200)
    return admin
  }
  return { app, ...world, announced, names, setProvider }
}
