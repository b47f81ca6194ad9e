/** Alerts from the attention list to the messages: once raised, once recovered, bundled, quiet, retried. */
import { describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { commit } from '../../db/commit.ts'
import { alertDeliveries, alertIncidents, type QuietHours } from '../../db/schema/alerts.ts'
import { alertDeliveriesJob, newSentAlerts, sendUnstored } from '../../src/jobs/alert-deliveries.ts'
import { alertJobs } from '../../src/jobs/alerts.ts'
import { acknowledge } from '../../src/model/alerts/incidents.ts'
import { append } from '../../src/model/audit/audit.ts'
import { actor, alerting, all, edges, HOUR, MINUTE, NEVER, SECOND } from '../support/alerting.ts'

const AFTER_START = 11 * MINUTE

test('an account that needs sign-in is raised after a minute, once, and recovers with its duration', async () => {
  const app = await alerting({ accounts: [{ email: 'anna@example.com' }, {}] })
  await app.addChannel()
  const { id } = app.members[0]!
  app.needSignIn(id)
  await app.run(MINUTE)
  expect(app.received).toEqual([])
  await app.run(5 * MINUTE)
  const [raised, ...others] = app.about('account.needs_sign_in')
  expect(others).toEqual([])
  expect(raised).toMatchObject({
    event: 'account.needs_sign_in',
    edge: 'raised',
    severity: 'bad',
    title: 'Account needs sign-in',
    text: 'a***@example.com needs sign-in. It is not used until you sign in again.',
    url: `https://sluice.example/accounts/new/browser?account=${id}`,
    subject: { kind: 'account', id, name: 'a***@example.com' },
    install: 'sluice.example',
  })
  app.signIn(id)
  await app.run(10 * SECOND)
  const recovered = app.about('account.needs_sign_in')[1]
  expect(recovered).toMatchObject({ edge: 'recovered', title: 'Resolved: Account needs sign-in', durationSeconds: 360 })
  expect(recovered?.text).toStartWith('Resolved after 6 minutes: ')
  await app.run(2 * MINUTE)
  expect(app.about('account.needs_sign_in')).toHaveLength(2)
  expect(JSON.stringify(app.received)).not.toContain('secret words')
})

test('what is over within a minute is not sent', async () => {
  const app = await alerting({ accounts: 2 })
  await app.addChannel()
  for (let round = 0; round < 5; round++) {
    app.needSignIn(app.members[0]!.id)
    await app.run(50 * SECOND)
    app.signIn(app.members[0]!.id)
    await app.run(10 * SECOND)
  }
  expect(app.received).toEqual([])
  expect(await app.db.select().from(alertIncidents).all()).toEqual([])
})

test('200 accounts that go and come 100 times are each raised and recovered once each time', async () => {
  const app = await alerting({ accounts: 200 })
  await app.addChannel()
  const views = app.bindings.pool.describe()
  const gone = views.map((view) => ({ ...view, status: 'reauth_required' as const, eligible: false }))
  let now = views
  const pool = { get: () => null, describe: () => now }
  const { evaluate } = alertJobs({ ...app.deps, pool, sendUnstored: async () => {} })
  const beatAfter = async (ms: number) => {
    await app.clock.advance(ms)
    await evaluate(NEVER)
    await app.deliver(NEVER)
  }
  for (let round = 0; round < 100; round++) {
    now = gone
    for (const ms of [5, 30, 35]) await beatAfter(ms * SECOND)
    now = views
    await beatAfter(5 * SECOND)
  }
  await beatAfter(MINUTE)
  const counts = Map.groupBy(app.about('account.needs_sign_in'), ({ subject, edge }) => `${subject?.id} ${edge}`)
  expect(counts.size).toBe(400)
  expect(new Set([...counts.values()].map(({ length }) => length))).toEqual(new Set([100]))
  expect(new Set(all(app.received).map(({ id }) => id)).size).toBe(all(app.received).length)
  expect(app.received.length).toBeLessThan(500)
}, 300_000)

test('more than five at once become one message, and later ones wait for room', async () => {
  const app = await alerting({ accounts: 9 })
  await app.addChannel()
  for (const { id } of app.members.slice(0, 6)) app.needSignIn(id)
  await app.run(70 * SECOND)
  expect(app.received).toHaveLength(1)
  expect(app.received[0]).toMatchObject({ event: 'bundle', title: '6 alerts', subject: null, severity: 'bad' })
  expect(app.received[0]?.text.split('\n')).toHaveLength(6)
  for (const { id } of app.members.slice(6, 8)) app.needSignIn(id)
  await app.run(70 * SECOND)
  expect(edges(app.received.slice(1))).toEqual(['raised', 'raised'])
})

describe('a receiver that fails', () => {
  test('is tried again after 5 s, 30 s, 5 min and 1 h, and then no more', async () => {
    const app = await alerting({ accounts: 2 })
    const channel = await app.addChannel({ events: ['account.needs_sign_in'] })
    const tries: number[] = []
    app.receiver.answer = async () => {
      tries.push(app.clock.now())
      return new Response('internal words', { status: 500 })
    }
    app.needSignIn(app.members[0]!.id)
    await app.run(2 * HOUR)
    const pauses = tries.slice(1).map((at, index) => (at - tries[index]!) / SECOND)
    expect(pauses).toEqual([5, 30, 300, 3600])
    const [row] = await app.db.select().from(alertDeliveries).all()
    expect(row).toMatchObject({ status: 'failed', tries: 5, lastError: 'The server answered with HTTP 500.' })
    expect(app.bindings.alerts.failingChannels).toEqual([{ id: channel.id, name: 'hook' }])
  })

  test('gets what it missed when it answers again, under the same id', async () => {
    const app = await alerting({ accounts: 2 })
    await app.addChannel()
    app.receiver.answer = async () => Response.redirect('http://169.254.169.254/', 302)
    app.needSignIn(app.members[0]!.id)
    await app.run(80 * SECOND)
    const [row] = await app.db.select().from(alertDeliveries).all()
    expect(row?.lastError).toContain('redirect')
    app.receiver.answer = async () => new Response('ok')
    await app.run(MINUTE)
    expect(app.received.map(({ id }) => id)).toEqual([row!.id])
    expect(app.bindings.alerts.failingChannels).toEqual([])
  })

  test('is given ten seconds, and the others do not wait for it longer', async () => {
    const app = await alerting({ accounts: 2 })
    await app.addChannel()
    app.needSignIn(app.members[0]!.id)
    app.receiver.answer = () => new Promise<Response>(() => {})
    await app.run(60 * SECOND)
    await app.clock.advance(5 * SECOND)
    await app.evaluate(NEVER)
    app.deps.guardedFetch.fetchAt = (_addresses, _url, { signal }) =>
      new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
    const sending = app.deliver(NEVER)
    await app.clock.advance(10 * SECOND)
    await sending
    const [row] = await app.db.select().from(alertDeliveries).all()
    expect(row).toMatchObject({ status: 'pending', tries: 1, lastError: 'No answer within 10 seconds.' })
  })
})

test('pending messages are sent by the next process', async () => {
  const app = await alerting({ accounts: 2 })
  await app.addChannel()
  app.needSignIn(app.members[0]!.id)
  app.receiver.answer = async () => new Response('', { status: 503 })
  await app.run(70 * SECOND)
  app.receiver.answer = async () => new Response('ok')
  const later = alertJobs({ ...app.deps, sendUnstored: async () => {} })
  const deliver = alertDeliveriesJob({ ...app.deps, sentAlerts: newSentAlerts() })
  await app.clock.advance(MINUTE)
  await later.evaluate(NEVER)
  await deliver(NEVER)
  expect(edges(app.received)).toEqual(['raised'])
  await app.clock.advance(2 * MINUTE)
  await later.evaluate(NEVER)
  await deliver(NEVER)
  expect(edges(app.received)).toEqual(['raised'])
})

test('a process that has just started does not end what it cannot know of yet', async () => {
  const app = await alerting({ accounts: 2 })
  await app.addChannel()
  const failing = { current: { turns: 4, message: 'upstream words' } }
  const before = alertJobs({
    ...app.deps,
    ops: { ...app.deps.ops, outage: failing as never },
    sendUnstored: async () => {},
  })
  await before.evaluate(NEVER)
  await app.clock.advance(MINUTE)
  await before.evaluate(NEVER)
  const after = alertJobs({ ...app.deps, sendUnstored: async () => {} })
  await after.evaluate(NEVER)
  await app.deliver(NEVER)
  expect(edges(app.about('requests.failing'))).toEqual(['raised'])
  expect(app.about('requests.failing')[0]?.text).toBe('The last 4 requests failed')
  await app.clock.advance(AFTER_START)
  await after.evaluate(NEVER)
  await app.deliver(NEVER)
  expect(edges(app.about('requests.failing'))).toEqual(['raised', 'recovered'])
})

test('the pauses between attempts go on where the last process stopped', async () => {
  const app = await alerting({ accounts: 2 })
  await app.addChannel({ events: ['account.needs_sign_in'] })
  const tries: number[] = []
  app.receiver.answer = async () => {
    tries.push(app.clock.now())
    return new Response('', { status: 503 })
  }
  app.needSignIn(app.members[0]!.id)
  for (let beats = 0; beats < 1000 && tries.length < 5; beats++) {
    await app.clock.advance(5 * SECOND)
    await app.evaluate(NEVER)
    await alertDeliveriesJob({ ...app.deps, sentAlerts: newSentAlerts() })(NEVER) // a new process each time
  }
  expect(tries.slice(1).map((at, index) => (at - tries[index]!) / SECOND)).toEqual([5, 30, 300, 3600])
  await app.clock.advance(2 * HOUR)
  await alertDeliveriesJob(app.deps)(NEVER)
  expect(tries).toHaveLength(5)
  expect(await app.db.select().from(alertDeliveries).all()).toMatchObject([{ status: 'failed', tries: 5 }])
})

test('an acknowledged alert is not repeated, and its recovery is still sent', async () => {
  const app = await alerting({ accounts: 3 })
  await app.addChannel({ repeatDaily: true })
  const [first, second] = app.members
  app.needSignIn(first!.id)
  app.needSignIn(second!.id)
  await app.run(70 * SECOND)
  const key = `account.needs_sign_in:${first!.id}`
  await commit(app.db, (tx) => acknowledge(tx, key, actor(app.clock.now())))
  await app.clock.advance(24 * HOUR)
  await app.beat()
  await app.run(MINUTE)
  const repeats = app.about('account.needs_sign_in').slice(2)
  expect(repeats.map(({ subject, text }) => [subject?.id, text.slice(0, 29)])).toEqual([
    [second!.id, 'Still active after 24 hours: '],
  ])
  app.signIn(first!.id)
  await app.run(10 * SECOND)
  expect(app.about('account.needs_sign_in').at(-1)).toMatchObject({ edge: 'recovered', subject: { id: first!.id } })
})

test('quiet hours hold messages back until they end, across midnight', async () => {
  const app = await alerting({ accounts: 2 })
  const hour = (offset: number) => new Date(app.clock.now() + offset * HOUR).toISOString().slice(11, 16)
  const quietHours: QuietHours = { from: hour(0), to: hour(8), timezone: 'UTC' }
  await app.addChannel({ quietHours })
  app.needSignIn(app.members[0]!.id)
  await app.run(10 * MINUTE)
  expect(app.received).toEqual([])
  app.signIn(app.members[0]!.id)
  await app.run(MINUTE)
  await app.clock.advance(8 * HOUR)
  await app.beat()
  expect(edges(app.received)).toEqual(['raised', 'recovered'])
})

describe('which channel gets what', () => {
  test('by events, severity and whether it is on', async () => {
    const app = await alerting({ accounts: 2 })
    await app.addChannel({ name: 'keys', events: ['key.limit'] })
    await app.addChannel({ name: 'off', isActive: false })
    await app.addChannel({ name: 'named', showEmails: true, events: ['account.needs_sign_in'], minSeverity: 'bad' })
    app.needSignIn(app.members[0]!.id)
    await app.run(70 * SECOND)
    expect(app.received).toHaveLength(1)
    expect(app.received[0]?.subject?.name).not.toContain('***')
  })

  test('security events only if they were chosen by a user who may read the audit log', async () => {
    const app = await alerting({ accounts: 1 })
    await app.addChannel({ name: 'all' })
    await app.addChannel({ name: 'chosen', events: ['security.role'] })
    await app.beat()
    const changed = { target: 'usr_1', details: { from: 'viewer', to: 'admin' } }
    const at = app.clock.now()
    await commit(app.db, (tx) => append(tx, { ...actor(at), name: 'ada' }, 'user_role_changed', changed))
    await app.beat()
    await app.beat()
    expect(app.received.map(({ event, text }) => [event, text])).toEqual([
      ['security.role', 'ada changed the role of usr_1 from viewer to admin'],
    ])
    const denied = app.addChannel({ name: 'denied', events: ['security.role'] }, false)
    expect(
      await denied.then(
        () => null,
        (err) => err.code,
      ),
    ).toBe('permission_required')
  })
})

test('a sign-in from a new network is raised, one from a known network is not', async () => {
  const app = await alerting({ accounts: 1 })
  await app.addChannel({ events: ['security.sign_in'] })
  await app.beat()
  const signIn = async (address: string) => {
    const who = { id: 'usr_1', name: 'ada', method: 'password', address, at: app.clock.now() }
    await commit(app.db, (tx) => append(tx, who, 'login_success', { target: 'usr_1' }))
    await app.beat()
    return app.received.length
  }
  expect(await signIn('198.51.100.7')).toBe(0)
  expect(await signIn('198.51.100.99')).toBe(0)
  expect(await signIn('192.0.2.1')).toBe(1)
  expect(app.received[0]?.text).toBe('ada signed in from 192.0.2.1, a network they have not used before')
  expect(await signIn('192.0.2.200')).toBe(1)
})

test('a broken audit chain is raised', async () => {
  const app = await alerting({ accounts: 1 })
  await app.addChannel({ events: ['security.audit'] })
  app.sqlite.run("UPDATE audit_logs SET actor = 'someone else' WHERE id = 1")
  await app.checkAuditLog(NEVER)
  await app.run(70 * SECOND)
  expect(app.received.map(({ event, severity }) => [event, severity])).toEqual([['security.audit', 'bad']])
  expect(app.bindings.alerts.isAuditBroken).toBe(true)
})

test('a database that cannot be written is reported although nothing can be stored', async () => {
  const app = await alerting({ accounts: 1 })
  await app.addChannel()
  const ledger = { healthy: false, unwrittenTurns: 3 }
  const { evaluate } = alertJobs({ ...app.deps, ledger, sendUnstored: sendUnstored(app.deps) })
  const tryFor = async (seconds: number) => {
    for (let passed = 0; passed < seconds; passed += 5) {
      await evaluate(NEVER)?.then(
        () => null,
        () => null,
      )
      await app.clock.advance(5 * SECOND)
    }
  }
  app.sqlite.run("CREATE TRIGGER full BEFORE INSERT ON alert_incidents BEGIN SELECT RAISE(ABORT, 'disk full'); END")
  await tryFor(120)
  expect(app.received.map(({ event, edge }) => [event, edge])).toEqual([['ledger.failing', 'raised']])
  app.sqlite.run('DROP TRIGGER full')
  ledger.healthy = true
  await tryFor(30)
  expect(app.received.map(({ event, edge }) => [event, edge])).toEqual([
    ['ledger.failing', 'raised'],
    ['ledger.failing', 'recovered'],
  ])
  expect(await app.db.select().from(alertDeliveries).all()).toEqual([])
})

test('Uptime Kuma gets a heartbeat each minute, down while an alert is standing', async () => {
  const app = await alerting({ accounts: 2 })
  const urls: URL[] = []
  app.deps.guardedFetch.fetchAt = async (_addresses, url) => {
    urls.push(new URL(url))
    return new Response('{"ok":true}')
  }
  await app.addChannel({
    kind: 'uptime_kuma',
    target: { url: 'https://kuma.test/api/push/tOkEn?status=up&msg=OK&ping=' },
  })
  await app.run(2 * MINUTE)
  expect(urls.map((url) => url.searchParams.get('status'))).toEqual(['up', 'up'])
  expect(urls[0]?.pathname).toBe('/api/push/tOkEn')
  app.needSignIn(app.members[0]!.id)
  await app.run(80 * SECOND)
  expect(urls.at(-1)?.searchParams.get('status')).toBe('down')
  expect(urls.at(-1)?.searchParams.get('msg')).toContain('needs sign-in')
  app.signIn(app.members[0]!.id)
  await app.run(5 * SECOND)
  expect(urls.at(-1)?.searchParams.get('status')).toBe('up')
  expect(await app.db.select().from(alertDeliveries).all()).toEqual([])
})

test('an alert that is gone with its channel leaves nothing behind', async () => {
  const app = await alerting({ accounts: 2 })
  const channel = await app.addChannel()
  app.needSignIn(app.members[0]!.id)
  await app.run(70 * SECOND)
  app.sqlite.run(`DELETE FROM alert_channels WHERE id = '${channel.id}'`)
  const left = await app.db.select().from(alertDeliveries).where(eq(alertDeliveries.channelId, channel.id)).all()
  expect(left).toEqual([])
})
