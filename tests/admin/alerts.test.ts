/** `/api/alerts`, its pages and the bell: who may see and change what, and that nothing secret is returned. */
import { describe, expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { alertDeliveries, type Severity } from '../../db/schema/alerts.ts'
import type { AlertEvent } from '../../src/model/alerts/events.ts'
import { applyPlan, openIncidents, toSeen } from '../../src/model/alerts/incidents.ts'
import { testApp } from '../support/app.ts'
import { type Browser, people, REMOTE } from '../support/people.ts'

const open = async () => {
  const app = await testApp()
  const crowd = people(app)
  /** Raises an alert, as the job does. */
  const raise = async (
    event: AlertEvent,
    id: string,
    { name = 'anna@example.com', severity = 'bad' as Severity } = {},
  ) => {
    const subject = { kind: 'account', id, name } as const
    const seen = toSeen({ key: `${event}:${id}`, event, severity, subject, text: `${name} is off`, path: '/accounts' })
    const doing = { now: app.clock.now(), random: app.bindings.random }
    const nothing = { begin: [], raise: [], forget: [], recover: [], repeat: [] }
    await commit(app.db, (tx) => applyPlan(tx, { ...nothing, begin: [seen] }, doing))
    const row = (await openIncidents(app.db)).find(({ key }) => key === seen.key)
    if (row) await commit(app.db, (tx) => applyPlan(tx, { ...nothing, raise: [{ row, seen }] }, doing))
    return seen.key
  }
  return { ...app, ...crowd, raise }
}

const HOOK = {
  kind: 'webhook',
  name: 'Pager',
  target: { url: 'https://203.0.113.9/in?token=marked' },
  secret: 'marked',
}
const create = (who: Browser, over: Record<string, unknown> = {}) =>
  who.ask('POST /api/alerts/channels', { json: { ...HOOK, ...over } })
// biome-ignore lint/suspicious/noExplicitAny: tests look at the members they name
const json = async (answer: Promise<Response>): Promise<any> => (await answer).json()
const page = async (who: Browser, path: string) => {
  const answer = await who.ask(`GET ${path}`, { headers: { accept: 'text/html' } })
  return { status: answer.status, text: await answer.text() }
}

describe('channels', () => {
  test('are created with defaults, listed and shown without target and secret', async () => {
    const { as, lines } = await open()
    const admin = await as('admin')
    const made = await json(create(admin))
    expect(made).toMatchObject({
      kind: 'webhook',
      server: '203.0.113.9',
      hasSecret: true,
      events: null,
      minSeverity: 'warning',
      allowPrivateAddress: false,
      isActive: true,
    })
    const shown = [
      JSON.stringify(made),
      JSON.stringify(await json(admin.ask('GET /api/alerts/channels'))),
      (await page(admin, '/settings/alerts')).text,
      (await page(admin, `/settings/alerts/${made.id}`)).text,
      lines.join('\n'),
    ]
    for (const text of shown) expect(text).not.toContain('marked')
  })

  test('of ntfy may be in a private network, webhooks only if that is ticked', async () => {
    const { as } = await open()
    const admin = await as('admin')
    const ntfy = { kind: 'ntfy', name: 'Phone', target: { url: 'http://192.168.1.9/alerts' } }
    expect((await create(admin, { ...ntfy, secret: '' })).status).toBe(200)
    const inside = { url: 'http://192.168.1.9/hook' }
    const refused = await create(admin, { target: inside })
    expect([refused.status, (await refused.json()).error.details.fields]).toEqual([
      422,
      { 'target.url': ['This address is in a private network, which is not allowed here.'] },
    ])
    expect((await create(admin, { target: inside, allowPrivateAddress: true })).status).toBe(200)
    const metadata = { target: { url: 'http://169.254.169.254/' }, allowPrivateAddress: true, name: 'Meta' }
    expect((await create(admin, metadata)).status).toBe(422)
  })

  test.each([
    [{ kind: 'smtp', target: { host: 'mail.example.com', from: 'a@b.c' } }, 'target.to'],
    [{ kind: 'gotify', target: { url: 'https://203.0.113.9' }, secret: '' }, 'secret'],
    [{ kind: 'ntfy', target: { url: 'https://203.0.113.9' } }, 'target.url'],
    [{ quietHours: { from: '22:00', to: '', timezone: 'UTC' } }, 'quietHours.to'],
    [{ quietHours: { from: '22:00', to: '07:00', timezone: 'Mars' } }, 'quietHours.timezone'],
    [{ events: ['nothing'] }, 'events.0'],
    [{ name: '' }, 'name'],
  ])('%j is rejected at %s', async (over, field) => {
    const { as } = await open()
    const answer = await create(await as('admin'), over)
    expect([answer.status, Object.keys((await answer.json()).error.details.fields)]).toEqual([422, [field]])
  })

  test.each([
    ['info', [true, true, true]],
    ['warning', [false, true, true]],
    ['bad', [false, false, true]],
  ] as const)(
    'with the minimum severity %s: the page ticks only events that the channel can get',
    async (minSeverity, ticks) => {
      const { as } = await open()
      const admin = await as('admin')
      await create(admin, { minSeverity })
      const { text } = await page(admin, '/settings/alerts')
      const rows = ['A reset credit was used', 'A key expires within 7 days', 'An account needs sign-in'].map(
        (label) => new RegExp(`<th scope="row">${label}</th>(.*?)</tr>`, 's').exec(text)?.[1] ?? '',
      )
      expect(rows.map((row) => row.includes('<svg'))).toEqual([...ticks])
    },
  )

  test('a name is used once', async () => {
    const { as } = await open()
    const admin = await as('admin')
    await create(admin)
    expect((await json(create(admin))).error.code).toBe('name_taken')
  })

  test('a password and a secret do not go to another server', async () => {
    const { as } = await open()
    const admin = await as('admin')
    const { id, version } = await json(create(admin))
    const patch = (change: object) => admin.ask(`PATCH /api/alerts/channels/${id}`, { json: change })
    const moved = await patch({ target: { url: 'https://203.0.113.10/in' } })
    expect(Object.keys((await moved.json()).error.details.fields)).toEqual(['secret'])
    expect((await patch({ target: { url: 'https://203.0.113.9/other' } })).status).toBe(200)
    expect((await patch({ target: { url: 'https://203.0.113.10/in' }, secret: 'new' })).status).toBe(200)
    expect((await json(patch({ name: 'Late', expectedVersion: version }))).error.code).toBe('edit_conflict')
    const mail = { host: 'mail.test', from: 'a@b.co', to: ['c@d.co'], user: 'a', password: 'p' }
    const made = await json(create(admin, { kind: 'smtp', name: 'Mail', target: mail, secret: '' }))
    const mailPatch = (target: object) => admin.ask(`PATCH /api/alerts/channels/${made.id}`, { json: { target } })
    expect(Object.keys((await json(mailPatch({ host: 'evil.test' }))).error.details.fields)).toEqual([
      'target.password',
    ])
    expect((await mailPatch({ to: ['e@f.co'] })).status).toBe(200)
    expect((await json(mailPatch({ host: 'new.test', password: 'q' }))).server).toBe('new.test:587')
  })

  test('an operator changes events but no target, and chooses no security events', async () => {
    const { as } = await open()
    const admin = await as('admin')
    const operator = await as('operator')
    const { id } = await json(create(admin))
    const patch = async (change: object) =>
      (await operator.ask(`PATCH /api/alerts/channels/${id}`, { json: change })).status
    expect(await patch({ events: ['key.limit'], minSeverity: 'bad' })).toBe(200)
    expect(await patch({ target: { url: 'https://203.0.113.9/mine' } })).toBe(403)
    expect(await patch({ secret: 'mine' })).toBe(403)
    expect(await patch({ allowPrivateAddress: true })).toBe(403)
    expect(await patch({ events: ['security.sign_in'] })).toBe(403)
    expect((await create(operator, { name: 'Mine' })).status).toBe(403)
    expect((await (await as('viewer')).ask('GET /api/alerts/channels')).status).toBe(403)
  })

  test('are edited by a form whose empty fields keep what is stored', async () => {
    const { as } = await open()
    const admin = await as('admin')
    const { id } = await json(create(admin))
    const fields = {
      name: 'Pager',
      'target.url': '',
      secret: '',
      events: 'key.limit',
      minSeverity: 'info',
      'quietHours.from': '22:00',
      'quietHours.to': '07:00',
      'quietHours.timezone': 'Europe/Berlin',
      isActive: 'true',
    }
    const saved = await admin.submit(`POST /api/alerts/channels/${id}`, fields)
    expect([saved.status, saved.headers.get('location')]).toEqual([
      303,
      `/settings/alerts/${id}?done=alert_channel_updated`,
    ])
    const none = { 'quietHours.from': '', 'quietHours.to': '', 'quietHours.timezone': 'UTC', events: '' }
    const [channel] = (await json(admin.ask('GET /api/alerts/channels'))).channels
    expect(channel).toMatchObject({ hasSecret: true, events: ['key.limit'], quietHours: { from: '22:00' } })
    await admin.submit(`POST /api/alerts/channels/${id}`, none)
    const [after] = (await json(admin.ask('GET /api/alerts/channels'))).channels
    expect(after).toMatchObject({ events: null, quietHours: null, hasSecret: true })
  })

  test('a failed test answers why, and is shown on the overview', async () => {
    const { as, bindings } = await open()
    bindings.guardedFetch.fetchAt = async () => new Response('internal', { status: 500 })
    const admin = await as('admin')
    const { id } = await json(create(admin))
    expect(await json(admin.ask(`POST /api/alerts/channels/${id}/test`))).toEqual({
      ok: false,
      error: 'The server answered with HTTP 500.',
    })
    const text = 'Alerts to Pager could not be sent'
    expect((await page(admin, '/dashboard')).text).toContain(text)
    expect((await page(await as('viewer'), '/dashboard')).text).not.toContain(text)
    bindings.guardedFetch.fetchAt = async () => new Response('')
    expect(await json(admin.ask(`POST /api/alerts/channels/${id}/test`))).toEqual({ ok: true, error: null })
    expect((await page(admin, '/dashboard')).text).not.toContain(text)
    const { items } = await json(admin.ask('GET /api/audit-logs'))
    expect(items.filter(({ action }: { action: string }) => action === 'alert_channel_tested')).toHaveLength(2)
  })
})

describe('alerts', () => {
  test('are listed, acknowledged once with a name, and their messages dropped', async () => {
    const { as, raise, db } = await open()
    const admin = await as('admin', { username: 'anna' })
    await create(admin)
    const key = await raise('account.needs_sign_in', 'acc_1')
    const { standing, past } = await json(admin.ask('GET /api/alerts'))
    expect([standing.length, past.length]).toEqual([1, 0])
    expect(standing[0]).toMatchObject({ key, title: 'Account needs sign-in', subject: { name: 'anna@example.com' } })
    const acknowledged = await json(admin.ask(`POST /api/alerts/${encodeURIComponent(key)}/acknowledge`))
    expect(acknowledged.acknowledgedBy).toBe('anna')
    expect((await db.select().from(alertDeliveries).all()).map(({ status }) => status)).toEqual(['dropped'])
    expect((await admin.ask('POST /api/alerts/nothing%3Ax/acknowledge')).status).toBe(404)
  })

  test('about security are only for users who may read the audit log', async () => {
    const { as, raise } = await open()
    const [admin, operator] = [await as('admin'), await as('operator')]
    const key = await raise('security.audit', 'audit', { name: 'Sluice' })
    expect((await json(admin.ask('GET /api/alerts'))).standing).toHaveLength(1)
    expect((await json(operator.ask('GET /api/alerts'))).standing).toEqual([])
    expect((await operator.ask(`POST /api/alerts/${encodeURIComponent(key)}/acknowledge`)).status).toBe(404)
    expect((await page(operator, '/bell')).text).not.toContain('is off')
  })
})

describe('the bell', () => {
  test('lists what each user may see, with names masked for those who do not manage accounts', async () => {
    const { as, raise } = await open()
    await raise('account.needs_sign_in', 'acc_1')
    await raise('key.limit', 'key_1', { name: 'laptop' })
    const bell = async (role: string) =>
      (await page(await as(role), '/keys')).text.match(/<span id="bell".*?<\/details>/s)?.[0]
    expect(await bell('admin')).toContain('2 alerts')
    expect(await bell('admin')).toContain('anna@example.com')
    const viewer = (await page(await as('viewer'), '/accounts')).text.match(/<span id="bell".*?<\/details>/s)?.[0]
    expect(viewer).toContain('1 alert')
    expect(viewer).toContain('a***@example.com is off')
    expect(viewer).not.toContain('laptop')
    expect(viewer).not.toContain('/settings/alerts')
  })

  test('is not shown to visitors who are not signed in', async () => {
    const { raise, browser } = await open()
    await raise('account.needs_sign_in', 'acc_1')
    expect((await page(browser(REMOTE), '/login')).text).not.toContain('id="bell"')
  })
})
