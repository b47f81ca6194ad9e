/** The health probes. */
import { expect, test } from 'bun:test'
import { live, ready, startup } from '../../src/admin/health.ts'
import type { Bindings } from '../../src/boot/bindings.ts'
import { fewRoutes } from '../support/few-routes.ts'

const open = (lifecycle: { draining: boolean }, healthy: boolean) =>
  fewRoutes(
    (app) => {
      app.get('/health', ...live)
      app.get('/health/live', ...live)
      app.get('/health/ready', ...ready)
      app.get('/health/startup', ...startup)
    },
    { lifecycle, ledger: { healthy } } as unknown as Partial<Bindings>, // as: the two facts a probe reads
  )

test('is available to everyone, from anywhere', async () => {
  const { ask } = open({ draining: false }, true)
  for (const path of ['/health', '/health/live', '/health/startup'])
    expect(await ask(`GET ${path}`, { peer: '192.0.2.7' })).toEqual({ status: 200, body: { status: 'ok' } })
  expect((await ask('GET /health/ready', { peer: '192.0.2.7' })).status).toBe(200)
})

test.each([
  [{ draining: true }, true, { draining: 'yes', ledger: 'ok' }],
  [{ draining: false }, false, { draining: 'no', ledger: 'failing' }],
])('not ready while %p with a working ledger: %p; still alive', async (lifecycle, healthy, checks) => {
  const { ask } = open(lifecycle, healthy)
  expect(await ask('GET /health/ready')).toEqual({ status: 503, body: { status: 'unavailable', checks } })
  expect((await ask('GET /health/live')).status).toBe(200)
})
