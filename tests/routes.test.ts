/** The route table as a whole: the reviewed version, and requirements for every route. */
import { expect, test } from 'bun:test'
import { formatRoutes, type RouteRow, requireOneAccessGate } from '../src/http/route-table.ts'
import { dashboard } from '../src/routes/dashboard.ts'
import { everyRoute } from '../src/routes/every-route.ts'
import { gateway } from '../src/routes/gateway.ts'

const rows = everyRoute
const getName = ({ method, path }: RouteRow) => `${method} ${path}`
const isMutation = ({ method }: RouteRow) => !['GET', 'HEAD', 'OPTIONS'].includes(method)

/** Changes that are not worth an audit entry: offers, challenges, and a measurement. */
const UNAUDITED = [
  'POST /api/dashboard-auth/totp/setup/start',
  'POST /api/dashboard-auth/passkeys/register/start',
  'POST /api/dashboard-auth/passkeys/sign-in/start',
  'POST /api/dashboard-auth/passkeys/step-up/start',
  'POST /api/dashboard-auth/clock',
  'POST /api/oauth/complete',
  'POST /api/accounts/import/preflight',
  'POST /api/import/preflight',
  'POST /api/model-sources/:id/discover',
  'POST /doctor/upload',
]

/** Signing in comes before having a user; a user's own account stays accessible at the enrollment gate (spec §3). */
const OPEN = [
  'POST /api/dashboard-auth/password/setup',
  'POST /api/dashboard-auth/password/login',
  'POST /api/dashboard-auth/password/change',
  'DELETE /api/dashboard-auth/password',
  'POST /api/dashboard-auth/password/remove',
  'POST /api/dashboard-auth/guest/login',
  'POST /api/dashboard-auth/totp/setup/start',
  'POST /api/dashboard-auth/totp/setup/confirm',
  'POST /api/dashboard-auth/totp/verify',
  'POST /api/dashboard-auth/totp/disable',
  'POST /api/dashboard-auth/step-up',
  'POST /api/dashboard-auth/logout',
  'POST /api/dashboard-auth/logout-all',
  'PATCH /api/dashboard-auth/me',
  'POST /api/dashboard-auth/me',
  'POST /api/dashboard-auth/passkeys/sign-in/start',
  'POST /api/dashboard-auth/passkeys/sign-in/finish',
  'POST /api/dashboard-auth/invite/accept',
  'POST /api/key/session',
  'POST /api/key/logout',
  'POST /api/key/secret',
]

test('the table is the reviewed one', () => {
  expect(formatRoutes(rows)).toMatchSnapshot()
})

test('every route has exactly one access gate, before its capability rule', () => {
  expect(rows.length).toBeGreaterThan(10)
  for (const app of [gateway, dashboard]) expect(() => requireOneAccessGate(app)).not.toThrow()
})

test('no dashboard route that changes something is open, except sign-in', () => {
  const open = rows.filter((row) => isMutation(row) && row.path.startsWith('/api/') && row.access[0]?.access === 'open')
  expect(open.map(getName).toSorted()).toEqual(OPEN.toSorted())
})

test('every route for model clients requires a key and declares its handling of a required capability', () => {
  const model = rows.filter(({ path }) => path.startsWith('/v1/') || path.startsWith('/backend-api/'))
  expect(model.length).toBeGreaterThan(5)
  const careless = model.filter((row) => row.access[0]?.access !== 'client-key' || row.capability === null)
  expect(careless.map(getName)).toEqual([])
})

test('every dashboard mutation names its audit event', () => {
  const unnamed = rows.filter((row) => {
    const rule = row.access[0]
    const isDashboard = rule !== undefined && rule.access !== 'client-key'
    return isMutation(row) && isDashboard && !('audit' in rule) && !UNAUDITED.includes(getName(row))
  })
  expect(unnamed.map(getName)).toEqual([])
})
