/** The health probes. */
import { expect, test } from 'bun:test'
import { createDb, type Engine } from '../../db/commit.ts'
import { live, ready, startup } from '../../src/admin/health.ts'
import type { Bindings } from '../../src/boot/bindings.ts'
import { fewRoutes } from '../support/few-routes.ts'

const open = (
  lifecycle: { draining: boolean },
  ledger: { healthy: boolean; hasRoom?: boolean },
  engine: Engine = 'sqlite',
) =>
  fewRoutes(
    (app) => {
      app.get('/health', ...live)
      app.get('/health/live', ...live)
      app.get('/health/ready', ...ready)
      app.get('/health/startup', ...startup)
    },
    // as: what a probe reads
    {
      lifecycle,
      ledger,
      db: createDb({ writer: null, engine, onListenerError: () => {} }),
    } as unknown as Partial<Bindings>,
  )

test('is available to everyone, from anywhere', async () => {
  const { ask } = await open({ draining: false }, { healthy: true })
  for (const path of ['/health', '/health/live', '/health/startup'])
    expect(await ask(`GET ${path}`, { peer: '192.0.2.7' })).toEqual({ status: 200, body: { status: 'ok' } })
  expect((await ask('GET /health/ready', { peer: '192.0.2.7' })).status).toBe(200)
})

test.each([
  [{ draining: true }, true, { draining: 'yes', ledger: 'ok' }],
  [{ draining: false }, false, { draining: 'no', ledger: 'failing' }],
])('not ready while %p with a working ledger: %p; still alive', async (lifecycle, healthy, checks) => {
  const { ask } = await open(lifecycle, { healthy })
  expect(await ask('GET /health/ready')).toEqual({ status: 503, body: { status: 'unavailable', checks } })
  expect((await ask('GET /health/live')).status).toBe(200)
})

test.each([
  [true, 200],
  [false, 503],
])('without PostgreSQL a node is ready while memory has room for the log (%p): %p', async (hasRoom, status) => {
  const { ask } = await open({ draining: false }, { healthy: false, hasRoom }, 'postgres')
  expect(await ask('GET /health/ready')).toMatchObject({ status, body: { checks: { ledger: 'failing' } } })
  const draining = await open({ draining: true }, { healthy: false, hasRoom }, 'postgres')
  expect((await draining.ask('GET /health/ready')).status).toBe(503)
})
