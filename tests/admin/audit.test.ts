/** `GET /api/audit-logs`: permissions, each filter, and stable pagination while rows arrive. */
import { expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { type AuditEvent, append } from '../../src/model/audit/audit.ts'
import { type AuditPage, AuditQuery } from '../../src/model/audit/audit-log.ts'
import { verifyAuditLog } from '../../src/model/audit/audit-verify.ts'
import { testApp } from '../support/app.ts'
import { people, problem, REMOTE } from '../support/people.ts'
import { runRetention } from '../support/retention.ts'

interface Note {
  event?: AuditEvent
  actor?: string
  target?: string | null
  details?: Record<string, unknown> | null
  at?: number
}

const setUp = async () => {
  const app = await testApp({ accounts: 0 })
  const crowd = people(app)
  const admin = await crowd.as('admin', { username: 'root' })
  const note = ({
    event = 'logout',
    actor = 'usr_a',
    target = null,
    details = null,
    at = app.clock.now(),
  }: Note = {}) =>
    commit(app.db, (tx) =>
      append(tx, { id: actor, name: 'anna', role: 'viewer', method: 'password', address: '192.0.2.9', at }, event, {
        target,
        details,
      }),
    )
  const page = async (search = ''): Promise<AuditPage> =>
    (await (await admin.ask(`GET /api/audit-logs${search}`)).json()) as AuditPage // as: its own type
  const actions = async (search: string) => (await page(search)).items.map(({ action }) => action)
  return { app, crowd, admin, note, page, actions }
}

test('requires audit:read, which Operator, Viewer and Guest lack', async () => {
  const { crowd, admin } = await setUp()
  await crowd.addRole('auditor', { 'audit:read': 'all' })
  const ask = 'GET /api/audit-logs'
  for (const role of ['operator', 'viewer'])
    expect(await (await (await crowd.as(role)).ask(ask)).json()).toMatchObject({
      error: { code: 'permission_required', param: 'audit:read' },
    })
  expect((await (await crowd.as('auditor')).ask(ask)).status).toBe(200)
  expect((await admin.ask(ask)).status).toBe(200)
  expect(await problem(await (await crowd.guest()).ask(ask))).toEqual([403, 'permission_required'])
  expect(await problem(await crowd.browser(REMOTE).ask(ask))).toEqual([403, 'permission_required'])
})

test('shows actor, target, address, method and severity, newest first', async () => {
  const { note, page } = await setUp()
  await note({ event: 'logout' })
  await note({ event: 'user_disabled', target: 'usr_b', details: { why: 'left' } })
  const { items, nextCursor } = await page()
  expect(nextCursor).toBeNull()
  expect(items.map(({ action }) => action)).toEqual(['user_disabled', 'logout'])
  expect(items[0]).toEqual({
    id: 2,
    timestamp: '2026-01-01T00:00:00.000Z',
    action: 'user_disabled',
    severity: 'warning',
    actor: { userId: 'usr_a', username: 'anna', roleSlug: 'viewer', authMethod: 'password' },
    target: { type: 'user', id: 'usr_b' },
    actorIp: '192.0.2.9',
    details: { why: 'left' },
  })
  expect(items[1]?.target).toBeNull()
})

test.each([
  ['?action=login_failed', ['login_failed']],
  ['?actor_user_id=usr_b', ['passkey_added']],
  ['?target_type=passkey', ['passkey_added']],
  ['?target_type=user', ['login_failed']],
  ['?target_type=address', ['firewall_entry_added']],
  ['?target_id=192.0.2.0/24', ['firewall_entry_added']],
  ['?severity=info', ['logout']],
  ['?reason=bad_code', ['login_failed']],
  ['?since=2026-01-01T02:00:00Z', ['passkey_added', 'firewall_entry_added']],
  ['?until=2026-01-01T02:00:00Z', ['login_failed', 'logout']],
  ['?since=2026-01-01T01:00:00Z&until=2026-01-01T02:00:00Z', ['login_failed']],
  ['?severity=warning&actor_user_id=usr_a', ['firewall_entry_added', 'login_failed']],
  ['?action=nothing_like_it', []],
])('%s', async (search, expected) => {
  const { app, note, actions } = await setUp()
  const at = (hour: number) => app.clock.now() + hour * 3_600_000
  await note({ event: 'logout', at: at(0) })
  await note({ event: 'login_failed', target: 'usr_c', details: { reason: 'bad_code' }, at: at(1) })
  await note({ event: 'firewall_entry_added', target: '192.0.2.0/24', at: at(2) })
  await note({ event: 'passkey_added', actor: 'usr_b', target: 'pky_d', at: at(3) })
  expect(await actions(search)).toEqual(expected as string[])
})

test.each([
  ['user', 'usr_1'],
  ['role', 'role_admin'],
  ['provider', 'idp_1'],
  ['passkey', 'pky_1'],
  ['session', 'ses_1'],
  ['account', 'acc_1'],
  ['api_key', 'key_1'],
] as const)('an id is shown with its kind: %s', async (type, target) => {
  const { note, page, actions } = await setUp()
  await note({ event: 'logout', target })
  await note({ event: 'firewall_entry_added', target: '192.0.2.0/24' })
  expect((await page()).items.map(({ target }) => target?.type)).toEqual(['address', type])
  expect(await actions(`?target_type=${type}`)).toEqual(['logout'])
  expect(await actions('?target_type=address')).toEqual(['firewall_entry_added'])
})

test('the target of a backup is named as a backup, not as an address', async () => {
  const { note, page, actions } = await setUp()
  await note({ event: 'backup_created', target: 'sluice-20260101-000000-manual.db' })
  await note({ event: 'firewall_entry_added', target: '192.0.2.0/24' })
  expect((await page()).items.map(({ target }) => target?.type)).toEqual(['address', 'backup'])
  expect(await actions('?target_type=backup')).toEqual(['backup_created'])
  expect(await actions('?target_type=address')).toEqual(['firewall_entry_added'])
})

test('pages neither repeat nor omit a row while rows are added', async () => {
  const { note, page } = await setUp()
  for (let n = 0; n < 7; n++) await note()
  const seen: number[] = []
  let next: string | null = ''
  while (next !== null) {
    const { items, nextCursor }: AuditPage = await page(`?limit=3${next && `&cursor=${next}`}`)
    seen.push(...items.map(({ id }) => id))
    next = nextCursor
    await note()
  }
  expect(seen).toEqual([7, 6, 5, 4, 3, 2, 1])
})

test.each([
  '?limit=0',
  '?limit=201',
  '?limit=x',
  '?cursor=abc',
  '?since=yesterday',
  '?severity=bad',
  '?reason=A-b',
  '?target_type=x',
])('%s is rejected', async (search) => {
  const { admin } = await setUp()
  expect(await problem(await admin.ask(`GET /api/audit-logs${search}`))).toEqual([422, 'validation_error'])
})

test('returns fifty rows by default', () => {
  expect(AuditQuery.parse({}).limit).toBe(50)
})

test('the retention job deletes whole days, only when it is set, and the rest can still be verified', async () => {
  const { app, note } = await setUp()
  const day = 86_400_000
  const run = () => runRetention(app)
  const rows = async () => (await people(app).audit()).map(({ event }) => event)
  for (let n = 0; n < 4; n++) await note({ at: app.clock.now() + n * day })
  await app.clock.advance(4 * day + 3_600_000)
  await run()
  expect(await rows()).toHaveLength(4)
  await app.change({ auditRetentionDays: 2 })
  await run()
  await run()
  expect(await rows()).toEqual(['logout', 'logout', 'audit_purged'])
  expect(await verifyAuditLog(app.db)).toMatchObject({ isWhole: true, purgedThroughId: 2 })
})
