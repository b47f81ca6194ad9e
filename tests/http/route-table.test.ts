/** Reading routes from an app, and rejecting an invalid one at the start. */
import { expect, test } from 'bun:test'
import { Hono } from 'hono'
import { z } from 'zod'
import type { AppEnv } from '../../src/boot/bindings.ts'
import { body } from '../../src/http/body.ts'
import { clientKey, open, requires, restricted, writes } from '../../src/http/gates.ts'
import { createHandlers } from '../../src/http/handlers.ts'
import { query } from '../../src/http/query.ts'
import { formatRoutes, requireOneAccessGate, routeTable } from '../../src/http/route-table.ts'
import { notBuilt } from '../../src/proxy/handlers/not-built.ts'

const app = () => new Hono<AppEnv>().use(async (_c, next) => next())

test('one row per route, with its gates; middleware is not a route', () => {
  const routes = app()
  routes.post('/v1/turn', clientKey('optional'), restricted('refuse'), (c) => c.text(''))
  routes.delete('/api/thing', requires('security:write', { stepUp: true }), (c) => c.text(''))
  expect(routeTable(routes)).toMatchObject([
    { method: 'POST', path: '/v1/turn', access: [{ access: 'client-key', key: 'optional' }], capability: 'refuse' },
    {
      method: 'DELETE',
      path: '/api/thing',
      access: [{ permission: 'security:write', stepUp: true }],
      capability: null,
    },
  ])
  expect(() => requireOneAccessGate(routes)).not.toThrow()
})

test('a row has the schemas its middleware checks, and two rows with one handler share them', () => {
  const routes = app()
  const Thing = z.strictObject({ name: z.string() })
  const Page = z.object({ limit: z.coerce.number() })
  const handlers = createHandlers(open('x'), query(Page), body(Thing), (c) => c.text(''))
  routes.put('/api/thing', ...handlers)
  routes.patch('/api/thing', ...handlers)
  routes.get('/api/thing', open('x'), (c) => c.text(''))
  const [put, patch, get] = routeTable(routes)
  expect(put?.inputs).toEqual([
    { in: 'query', schema: Page },
    { in: 'body', schema: Thing },
  ])
  expect(get?.inputs).toEqual([])
  expect([put?.endpoint === patch?.endpoint, put?.endpoint === get?.endpoint]).toEqual([true, false])
})

test('a planned route is marked', () => {
  const routes = app()
  routes.get('/v1/later', ...notBuilt('optional', 'refuse'))
  routes.get('/v1/now', clientKey('optional'), (c) => c.text(''))
  expect(routeTable(routes).map(({ isPlanned }) => isPlanned)).toEqual([true, false])
})

test('a route without a gate, with two, or with the capability before the key stops the start and is named', () => {
  const routes = app()
  routes.get('/bare', (c) => c.text(''))
  routes.get('/twice', open('x'), writes(), (c) => c.text(''))
  routes.get('/early', restricted('refuse'), clientKey('optional'), (c) => c.text(''))
  expect(() => requireOneAccessGate(routes)).toThrow(
    'GET /bare has 0 access gates; GET /twice has 2 access gates; GET /early checks the capability before the key',
  )
})

test('the printed table shows what a reviewer needs', () => {
  const routes = app()
  const sometimes = { permission: 'security:write', when: 'a lock changes' } as const
  routes.put('/api/settings', writes({ audit: 'settings_updated', sometimes }), (c) => c.text(''))
  expect(formatRoutes(routeTable(routes)).split('\n')).toEqual([
    'METHOD  PATH           ACCESS  PERMISSION                               STEP-UP  CAPABILITY  AUDIT',
    'PUT     /api/settings  writes  security:write instead (a lock changes)  then     -           settings_updated',
  ])
})
