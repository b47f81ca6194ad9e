/** Remote control of the stand-in upstream under `/_sim`, for tests in other processes and manual use. */
import { Hono } from 'hono'
import type { Account, AccountOptions, Usage } from './accounts.ts'
import type { Fault } from './faults.ts'
import type { Env } from './routes.ts'
import type { Answer } from './script.ts'
import type { World } from './world.ts'

/** What the routes can do to the stand-in as a whole. */
export type Controls = { reset: () => void; closeSockets: (code?: number, reason?: string) => void }

/** Bodies are trusted: this is a tool for tests on loopback. */
export function controlRoutes(world: World, { reset, closeSockets }: Controls): Hono<Env> {
  const routes = new Hono<Env>()
  const held: Answer[] = []
  const find = (id: string) => world.accounts.byId(id) ?? world.accounts.list().find(({ email }) => email === id)
  routes.get('/accounts', (c) => c.json(world.accounts.list().map(describeAccount)))
  routes.post('/accounts', async (c) => {
    const options: AccountOptions = await c.req.json()
    return c.json(describeAccount(world.accounts.add(options)), 201)
  })
  routes.post('/accounts/:id/faults', async (c) => {
    const account = find(c.req.param('id'))
    if (!account) return c.notFound()
    const { next, always }: { next?: Fault | Fault[]; always?: Fault | null } = await c.req.json()
    if (next) account.next(...[next].flat())
    if (always !== undefined) account.always(always)
    return c.body(null, 204)
  })
  routes.post('/accounts/:id/expire', (c) => {
    const account = find(c.req.param('id'))
    account?.expireAccessToken()
    return account ? c.body(null, 204) : c.notFound()
  })
  routes.post('/accounts/:id/revoke', async (c) => {
    const account = find(c.req.param('id'))
    const { code }: { code?: string } = await c.req.json()
    account?.revoke(code)
    return account ? c.body(null, 204) : c.notFound()
  })
  routes.post('/usage/:id', async (c) => {
    const account = find(c.req.param('id'))
    const usage: Usage | null = await c.req.json()
    account?.setUsage(usage)
    return account ? c.body(null, 204) : c.notFound()
  })
  routes.post('/answer', async (c) => {
    const answer: Answer | null = await c.req.json()
    if (answer?.isHeld) held.push(answer)
    world.script = answer === null ? null : () => answer
    return c.body(null, 204)
  })
  routes.post('/release', (c) => {
    for (const answer of held.splice(0)) answer.isHeld = false
    return c.body(null, 204)
  })
  routes.post('/compact-retired', async (c) => {
    world.compactRetired = (await c.req.json()) === true
    return c.body(null, 204)
  })
  routes.post('/close-sockets', async (c) => {
    const { code, reason }: { code?: number; reason?: string } = await c.req.json()
    closeSockets(code, reason)
    return c.body(null, 204)
  })
  routes.get('/requests', (c) => c.json(world.ledger.requests))
  routes.get('/handshakes', (c) => c.json(world.ledger.handshakes))
  routes.get('/oddities', (c) => c.json(world.ledger.oddities))
  routes.get('/stats', (c) => c.json(world.ledger.stats()))
  routes.post('/reset', (c) => {
    reset()
    return c.body(null, 204)
  })
  return routes
}

/** What a test in another process needs to use the account. */
export function describeAccount(account: Account) {
  return {
    chatgptAccountId: account.chatgptAccountId,
    email: account.email,
    plan: account.plan,
    securityWorkAuthorized: account.securityWorkAuthorized,
    accessToken: account.accessToken,
    refreshToken: account.refreshToken,
    authJson: account.authJson(),
  }
}
