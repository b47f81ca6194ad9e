/** The firewall routes of the dashboard as a JSON client sees them. */
import { expect, test } from 'bun:test'
import { addFirewallEntry, removeFirewallEntry, showFirewall } from '../../src/admin/firewall.ts'
import { fewRoutes } from '../support/few-routes.ts'

const open = () =>
  fewRoutes((app) => {
    app.get('/api/firewall/ips', ...showFirewall)
    app.post('/api/firewall/ips', ...addFirewallEntry)
    app.delete('/api/firewall/ips/:ip', ...removeFirewallEntry)
  })

type App = Awaited<ReturnType<typeof open>>
const add = ({ ask }: App, ipAddress: unknown) => ask('POST /api/firewall/ips', { json: { ipAddress } })
const show = async ({ ask }: App) => (await ask('GET /api/firewall/ips')).body
const problem = ({ status, body }: { status: number; body: { error: { code: string } } }) => [status, body.error.code]

test('an empty list means that all clients are allowed', async () => {
  expect(await show(await open())).toEqual({ mode: 'allow_all', entries: [] })
})

test('an added range is returned and listed in its canonical form', async () => {
  const app = await open()
  const entry = { ipAddress: '10.0.0.0/8', createdAt: '2026-01-01T00:00:00.000Z' }
  expect(await add(app, '10.1.2.3/8')).toEqual({ status: 200, body: entry })
  expect(await show(app)).toEqual({ mode: 'allowlist_active', entries: [entry] })
})

test.each([
  ['10.0.0.0/8', '10.0.0.0%2F8'],
  ['192.0.2.1', '192.0.2.1'],
  ['2001:db8::1', '2001:db8::1'],
  ['2001:db8::/32', '2001%3Adb8%3A%3A%2F32'],
])('%s is removed by its path %s', async (ip, path) => {
  const app = await open()
  await add(app, ip)
  expect(await app.ask(`DELETE /api/firewall/ips/${path}`)).toEqual({ status: 200, body: { status: 'deleted' } })
  expect((await show(app)).entries).toEqual([])
})

test('an error says why the change is impossible', async () => {
  const app = await open()
  await add(app, '192.0.2.1')
  expect(problem(await add(app, 'localhost'))).toEqual([400, 'invalid_ip'])
  expect(problem(await add(app, '192.0.2.1'))).toEqual([409, 'ip_exists'])
  expect(problem(await add(app, 7))).toEqual([422, 'validation_error'])
  expect(problem(await app.ask('DELETE /api/firewall/ips/192.0.2.2'))).toEqual([404, 'ip_not_found'])
  expect(problem(await app.ask('DELETE /api/firewall/ips/%ZZ'))).toEqual([404, 'ip_not_found'])
})

test.each(['GET /api/firewall/ips', 'POST /api/firewall/ips', 'DELETE /api/firewall/ips/192.0.2.1'])(
  '%s is not available to other machines',
  async (route) => {
    expect(problem(await (await open()).ask(route, { peer: '203.0.113.9' }))).toEqual([401, 'bootstrap_required'])
  },
)
