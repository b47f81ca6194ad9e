/** The sign-in routes for users and devices: the page with the accounts, and the two calls of a device. */
import type { Hono } from 'hono'
import type { Env } from './routes.ts'
import { isJson, type Json } from './script.ts'
import { requireAuthorization } from './sign-ins.ts'
import type { World } from './world.ts'

/** The page has a link for each account; following one is signing in as it. */
export function signInRoutes(routes: Hono<Env>, { accounts, signIns }: World): void {
  routes.get('/oauth/authorize', (c) => {
    requireAuthorization(c.req.url)
    const links = accounts
      .list()
      .map(({ email }, index) => `<li><a href="${getApproval(c.req.url, index)}">${email}</a></li>`)
    return c.html(`<!doctype html><title>Sign in</title><h1>Sign in as</h1><ul>${links.join('')}</ul>`)
  })
  routes.get('/oauth/approve/:index', (c) => {
    const account = accounts.list()[Number(c.req.param('index'))]
    const asked = new URL(c.req.url)
    asked.pathname = '/oauth/authorize'
    return account ? c.redirect(signIns.approve(asked.href, account)) : c.notFound()
  })
  routes.post('/api/accounts/deviceauth/usercode', (c) => c.json(signIns.newDevice(getBody(c.get('received').body))))
  routes.post('/api/accounts/deviceauth/token', (c) => c.json(signIns.askDevice(getBody(c.get('received').body))))
}

function getApproval(authorizationUrl: string, index: number): string {
  return `/oauth/approve/${index}${new URL(authorizationUrl).search.replaceAll('&', '&amp;')}`
}

function getBody(body: unknown): Json {
  return isJson(body) ? body : {}
}
