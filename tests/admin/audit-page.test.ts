/** The audit log page: filters in its URL, stable pagination, and the state of its chain. */
import { expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { commit } from '../../db/commit.ts'
import { auditLogs } from '../../db/schema/system.ts'
import { append } from '../../src/model/audit/audit.ts'
import { testApp } from '../support/app.ts'
import { type Browser, people } from '../support/people.ts'

const open = async (rows = 0) => {
  const app = await testApp({ accounts: 0 })
  const actor = { id: 'cli', method: null, address: null, at: app.clock.now() }
  await commit(app.db, async (tx) => {
    for (let n = 0; n < rows; n++) await append(tx, actor, 'settings_updated', { target: `key_${n}`, details: { n } })
  })
  return { app, ...people(app) }
}

// biome-ignore lint/suspicious/noExplicitAny: tests look at the members they name
const value = async (who: Browser, path: string): Promise<any> => (await who.ask(`GET ${path}`)).json()
const html = async (who: Browser, path: string) =>
  (await who.ask(`GET ${path}`, { headers: { accept: 'text/html' } })).text()

test('requires the permission to read the audit log', async () => {
  const { as } = await open()
  expect((await (await as('operator')).ask('GET /audit')).status).toBe(403)
  expect((await (await as('admin')).ask('GET /audit')).status).toBe(200)
})

test('is part of the settings, and marked so in the navigation', async () => {
  const text = await html(await (await open()).as('admin'), '/audit')
  expect(text).toContain('<title>Audit log · Sluice</title>')
  expect(text).toMatch(/<a href="\/settings"[^>]* aria-current="page"/)
})

test('an empty form filters nothing, and links keep a filter', async () => {
  const { as } = await open(60)
  const admin = await as('admin')
  const empty = await value(admin, '/audit?action=&actor_user_id=&target_type=&severity=&since=&until=')
  expect([empty.items.length, empty.links.clear]).toEqual([30, null])
  const first = await value(admin, '/audit?actor_user_id=cli&limit=20')
  expect(first.links.clear).toBe('/audit?limit=20')
  expect(first.links.older).toStartWith('/audit?actor_user_id=cli&limit=20&cursor=')
  const second = await value(admin, first.links.older)
  expect(second.items.map(({ id }: { id: number }) => id)).toEqual(Array.from({ length: 20 }, (_, i) => 40 - i))
  expect(second.links.newest).toBe('/audit?actor_user_id=cli&limit=20')
})

test('an entry shows what happened, the actor, the target, and its details', async () => {
  const { as } = await open(1)
  const text = await html(await as('admin'), '/audit?action=settings_updated')
  expect(text).toContain('Settings updated')
  expect(text).toContain('/audit?target_id=key_0')
  expect(text).toContain('&quot;n&quot;: 0')
  expect(text).toMatch(/<option value="settings_updated" selected/)
  expect(text).toMatch(/ \d\d:\d\d:\d\d UTC<\/time>/)
})

test('actors that are not users have readable names, and no sign-in method that repeats the name', async () => {
  const { app, as } = await open()
  const actors = [
    ['cli', 'cli', 'Command line', ''],
    ['system', null, 'Sluice', ''],
    ['guest', 'guest', 'Guest', ''],
    ['bootstrap', 'local_bootstrap', 'First setup', 'before the first password'],
    ['bootstrap', 'trusted_header', 'First setup', 'trusted header'],
  ] as const
  for (const [n, [id, method]] of actors.entries())
    await commit(app.db, (tx) => append(tx, { id, method, address: null, at: app.clock.now() + n }, 'login_success'))
  const text = await html(await as('admin'), '/audit?action=login_success')
  const entries = [...text.matchAll(/<p class="audit-who">(.*?)<span class="hint">(.*?)<\/span>/gs)]
  expect(
    entries
      .map(([, who, how]) => [who, how])
      .toReversed()
      .slice(0, actors.length),
  ).toEqual(actors.map(([, , name, how]) => [name, how]))
  expect(text).toContain('<strong>Signed in</strong>')
  expect(text).toContain('<option value="cli">Command line</option>')
})

test('a target is shown by its name while it exists, and by its id afterwards', async () => {
  const { as } = await open()
  const admin = await as('admin')
  const made = await admin.ask('POST /api/api-keys/', { json: { name: 'laptop' } })
  const { id } = (await made.json()) as { id: string }
  expect(await html(admin, '/audit')).toMatch(new RegExp(`target_id=${id}"[^>]*>laptop<`))
  expect((await admin.ask(`DELETE /api/api-keys/${id}`)).ok).toBe(true)
  expect((await value(admin, `/audit?target_id=${id}`)).items[0].targetName).toBeNull()
  expect(await html(admin, `/audit?target_id=${id}`)).toContain(`>${id}<`)
})

test('accounts, roles and users are shown by name, and a name hidden elsewhere is hidden here too', async () => {
  const app = await testApp({ accounts: [{ email: 'ada@example.test' }] })
  const { as, add, addRole } = people(app)
  const account = app.members[0]!.id
  const key = (await app.key({ name: 'laptop' })).row.id
  const role = await addRole('auditor', { 'dashboard:read': 'all', 'audit:read': 'all' })
  const viewer = (await add()).row
  const actor = { id: 'cli', method: null, address: null, at: app.clock.now() }
  await commit(app.db, async (tx) => {
    for (const target of [account, key, role, viewer.id]) await append(tx, actor, 'settings_updated', { target })
  })
  const names = async (who: Browser) => {
    const { items } = await value(who, '/audit?action=settings_updated')
    return items.map(({ targetName }: { targetName: string | null }) => targetName).toReversed()
  }
  expect(await names(await as('admin'))).toEqual(['ada@example.test', 'laptop', 'auditor', viewer.username])
  expect(await names(await as('auditor'))).toEqual(['a***@example.test', null, 'auditor', viewer.username])
})

test('an invalid filter is rejected', async () => {
  const { as } = await open()
  expect((await (await as('admin')).ask('GET /audit?cursor=nonsense')).status).toBe(422)
  expect((await (await as('admin')).ask('GET /audit?severity=loud')).status).toBe(422)
})

test('the page says that the log is intact, or where it is not', async () => {
  const { app, as } = await open(3)
  const admin = await as('admin')
  expect((await value(admin, '/audit')).chain).toEqual({ isWhole: true, rows: 3, unchained: 0, purgedThroughId: null })
  app.sqlite.run("UPDATE audit_logs SET actor = 'nobody' WHERE id = 2")
  expect((await value(admin, '/audit')).chain).toEqual({ isWhole: false, rowId: 2, problem: 'its content was changed' })
  expect(await html(admin, '/audit')).toContain('tampered with at entry 2')
  expect((await app.db.select().from(auditLogs).where(eq(auditLogs.id, 2)).get())?.actor).toBe('nobody')
})

test('a long log is verified only on request', async () => {
  const { as } = await open(1001)
  const admin = await as('admin')
  const { chain, links } = await value(admin, '/audit')
  expect(chain).toEqual({ isWhole: null, rows: 1001 })
  expect((await value(admin, links.verify)).chain).toMatchObject({ isWhole: true, rows: 1001 })
})
