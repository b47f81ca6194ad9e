/** Reading routes back out of an app, and refusing to start on a careless one. */
import { expect, test } from 'bun:test'
import { Hono } from 'hono'
import type { AppEnv } from '../../src/bindings.ts'
import { clientKey, open, requires, restricted, writes } from '../../src/http/gates.ts'
import { demandOneAccessGate, formatRoutes, routeTable } from '../../src/http/route-table.ts'

const app = () => new Hono<AppEnv>().use(async (_c, next) => next())

test('one row a route, with its gates; middleware is no route', () => {
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
  expect(() => demandOneAccessGate(routes)).not.toThrow()
})

test('a route without a gate, with two, or with the capability ahead of the key stops the start and is named', () => {
  const routes = app()
  routes.get('/bare', (c) => c.text(''))
  routes.get('/twice', open('x'), writes(), (c) => c.text(''))
  routes.get('/early', restricted('refuse'), clientKey('optional'), (c) => c.text(''))
  expect(() => demandOneAccessGate(routes)).toThrow(
    'GET /bare has 0 access gates; GET /twice has 2 access gates; GET /early checks the capability before the key',
  )
})

test('the printed table says what a reviewer has to see', () => {
  const routes = app()
  const sometimes = { permission: 'security:write', when: 'a lock changes' } as const
  routes.put('/api/settings', writes({ audit: 'settings_updated', sometimes }), (c) => c.text(''))
  expect(formatRoutes(routeTable(routes)).split('\n')).toEqual([
    'METHOD  PATH           ACCESS  PERMISSION                               STEP-UP  CAPABILITY  AUDIT',
    'PUT     /api/settings  writes  security:write instead (a lock changes)  then     -           settings_updated',
  ])
})
