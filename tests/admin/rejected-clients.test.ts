/** Rejected clients in the log, the API, the overview and the metrics. */
import { describe, expect, test } from 'bun:test'
import type { RejectedPage } from '../../src/model/log/rejected-clients.ts'
import type { Logs } from '../../views/logs/page.tsx'
import type { Overview } from '../../views/overview.tsx'
import { codexBody, getAnswer, type TestApp, testApp } from '../support/app.ts'
import { type Browser, people, problem } from '../support/people.ts'

const KEY_AUTH = { settings: { apiKeyAuthEnabled: true } }
const SECRET = 'sk-clb-this-is-nobodys-key-0123456789'
const MINUTE_MS = 60_000

type Asker = Pick<Browser, 'ask'>

const read = async <T>({ ask }: Asker, path: string): Promise<T> => (await (await ask(`GET ${path}`)).json()) as T // as: the route's own value

const getText = async ({ ask }: Asker, path: string) =>
  (await ask(`GET ${path}`, { headers: { accept: 'text/html' } })).text()

const reject = async (app: TestApp, times: number, { key = SECRET as string | null, peer = '192.168.1.20' } = {}) => {
  const headers: Record<string, string> = key === null ? {} : { authorization: `Bearer ${key}` }
  for (let n = 0; n < times; n++) await app.ask('GET /v1/models', { headers, peer })
  await app.bindings.ledger.flush()
}

describe('the list of rejected clients', () => {
  test('is newest first, in pages, and filtered by reason, time and text', async () => {
    const app = await testApp(KEY_AUTH)
    await reject(app, 3)
    await app.clock.advance(5 * MINUTE_MS)
    const since = new Date(app.clock.now()).toISOString()
    await reject(app, 2, { key: null, peer: '192.168.1.21' })
    await reject(app, 1, { peer: '192.168.1.22' })
    const seen = async (query: string) =>
      (await read<RejectedPage>(app, `/api/rejected-clients?${query}`)).items.map(({ clientIp, count }) => [
        clientIp,
        count,
      ])
    expect(await seen('')).toEqual([
      ['192.168.1.22', 1],
      ['192.168.1.21', 2],
      ['192.168.1.20', 3],
    ])
    expect(await seen('reason=missing_key')).toEqual([['192.168.1.21', 2]])
    expect(await seen(`until=${since}&search=.20`)).toEqual([['192.168.1.20', 3]])
    expect(await seen(`since=${since}`)).toHaveLength(2)
    expect(await seen('search=100%25')).toEqual([])
    const first = await read<RejectedPage>(app, '/api/rejected-clients?limit=2')
    const second = await read<RejectedPage>(app, `/api/rejected-clients?limit=2&cursor=${first.nextCursor}`)
    expect([...first.items, ...second.items].map(({ count }) => count)).toEqual([1, 2, 3])
    expect(second.nextCursor).toBeNull()
    expect(first.items[0]).toMatchObject({ reason: 'unknown_key', keyStart: 'sk-clb-t', route: '/v1/models' })
    expect((await app.ask('GET /api/rejected-clients?reason=made_up')).status).toBe(422)
  })

  test('shows addresses, keys and user agents to users who can see them in the log', async () => {
    const app = await testApp(KEY_AUTH)
    await reject(app, 1)
    const { row } = await app.key({ name: 'ci-runner' })
    await app.ask(`PATCH /api/api-keys/${row.id}`, { json: { isActive: false } })
    const { as } = people(app)
    for (const [role, sees] of [
      ['admin', true],
      ['viewer', false],
    ] as const) {
      const text = JSON.stringify(await read(await as(role), '/api/rejected-clients'))
      expect([role, text.includes('192.168.1.20'), text.includes('sk-clb-t')]).toEqual([role, sees, sees])
      const page = await getText(await as(role), '/logs?status=rejected')
      expect([role, page.includes('192.168.1.20'), page.includes('unknown key')]).toEqual([role, sees, true])
    }
    expect(await problem(await (await as('viewer')).ask(`GET /api/rejected-clients?apiKeyId=${row.id}`))).toEqual([
      403,
      'permission_required',
    ])
    expect(await read(await as('viewer'), '/api/rejected-clients?search=192.168')).toMatchObject({ items: [] })
  })
})

describe('the log page', () => {
  test('shows them with the filter "Rejected", and requests without it', async () => {
    const app = await testApp(KEY_AUTH)
    const { key } = await app.key({ name: 'laptop' })
    await getAnswer(app, 'POST /v1/responses', { json: codexBody(), headers: { authorization: `Bearer ${key}` } })
    await reject(app, 12)
    const rejected = await read<Logs>(app, '/logs?status=rejected')
    expect(rejected).toMatchObject({
      requests: [],
      rejected: [{ count: 12, reason: 'unknown_key' }],
      links: { tail: null },
    })
    expect(await read<Logs>(app, '/logs')).toMatchObject({ requests: [{ apiKeyName: 'laptop' }], rejected: null })
    expect(await read<Logs>(app, '/logs?status=rejected&range=1h&model=gpt-5.5')).toMatchObject({ rejected: [] })
    expect(await read<Logs>(app, '/logs?status=rejected&code=invalid_api_key')).toMatchObject({ rejected: [] })
    const page = await getText(app, '/logs?status=rejected')
    expect(page).toContain('<b>Rejected: unknown key</b>')
    expect(page).toContain('sk-clb-t…')
    expect(page).not.toContain(SECRET)
    expect(await getText(app, '/logs')).toContain('<option value="rejected">Rejected</option>')
  })

  test('links to older ones', async () => {
    const app = await testApp(KEY_AUTH)
    for (let n = 0; n < 3; n++) await reject(app, 1, { peer: `192.168.1.${n}` })
    const { rejected, links } = await read<Logs>(app, '/logs?status=rejected&limit=2')
    expect(rejected).toHaveLength(2)
    expect(await read<Logs>(app, links.older ?? '')).toMatchObject({ rejected: [{ clientIp: '192.168.1.0' }] })
  })
})

describe('the overview', () => {
  const texts = async (who: Asker) => (await read<Overview>(who, '/dashboard')).now.attention.map(({ text }) => text)

  test.each([
    [10, []],
    [42, ['42 requests with an unknown key from 192.168.1.20 in the last hour']],
  ])('after %p in the last hour', async (times, expected) => {
    const app = await testApp(KEY_AUTH)
    await reject(app, times)
    expect((await texts(app)).filter((text) => text.includes('last hour'))).toEqual(expected)
    await app.clock.advance(62 * MINUTE_MS)
    await texts(app) // old data is shown while it is read again
    expect((await texts(app)).filter((text) => text.includes('last hour'))).toEqual([])
  })

  test('shows the most frequent of several kinds, and no address to a viewer', async () => {
    const app = await testApp(KEY_AUTH)
    await reject(app, 8, { key: null, peer: '203.0.113.9' })
    await reject(app, 4)
    const { as } = people(app)
    const rest = 'in the last hour, and 4 other rejected requests'
    expect(await texts(await as('admin'))).toContain(`8 requests without a key from 203.0.113.9 ${rest}`)
    expect(await texts(await as('viewer'))).toContain(`8 requests without a key ${rest}`)
  })
})

describe('requests without a key from the key test', () => {
  const PROBE = { 'x-sluice-probe': '1' }

  test.each(['/v1/models', '/backend-api/codex/models'])('are not logged: %s', async (path) => {
    const app = await testApp(KEY_AUTH)
    const probe = await app.ask(`GET ${path}`, { headers: PROBE, peer: '192.168.1.20' })
    expect(probe.status).toBe(401)
    expect(await read(app, '/api/rejected-clients')).toMatchObject({ items: [] })
    await app.ask(`GET ${path}`, { peer: '192.168.1.20' })
    await app.bindings.ledger.flush()
    expect(await read(app, '/api/rejected-clients')).toMatchObject({ items: [{ reason: 'missing_key', count: 1 }] })
  })

  test('are not logged while other machines need a key', async () => {
    const app = await testApp()
    const probe = await app.ask('GET /v1/models', { headers: PROBE, peer: '192.168.1.20' })
    expect(probe.status).toBe(401)
    await app.bindings.ledger.flush()
    expect(await read(app, '/api/rejected-clients')).toMatchObject({ items: [] })
  })

  test('do not hide a wrong key that comes with the same header', async () => {
    const app = await testApp(KEY_AUTH)
    const headers = { ...PROBE, authorization: `Bearer ${SECRET}` }
    await app.ask('GET /v1/models', { headers, peer: '192.168.1.20' })
    await app.bindings.ledger.flush()
    expect(await read(app, '/api/rejected-clients')).toMatchObject({ items: [{ reason: 'unknown_key' }] })
  })
})

test('metrics count them by reason, and have every reason from the start', async () => {
  const app = await testApp(KEY_AUTH)
  await reject(app, 3)
  await reject(app, 1, { key: null })
  const lines = (await (await app.ask('GET /metrics')).text())
    .split('\n')
    .filter((line) => line.startsWith('sluice_rejected_requests_total'))
  expect(lines).toHaveLength(7)
  expect(lines).toContain('sluice_rejected_requests_total{reason="unknown_key"} 3')
  expect(lines).toContain('sluice_rejected_requests_total{reason="missing_key"} 1')
  expect(lines).toContain('sluice_rejected_requests_total{reason="firewall"} 0')
})
