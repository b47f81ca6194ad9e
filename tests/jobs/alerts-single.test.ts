/** Events that are over when they happen: one message each, no recovery, and nothing in the bell. */
import { describe, expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { alertDeliveries } from '../../db/schema/alerts.ts'
import type { AlertEvent } from '../../src/model/alerts/events.ts'
import { acknowledge, openIncidents, pastIncidents, raiseOccurrence } from '../../src/model/alerts/incidents.ts'
import { StandingAlerts } from '../../src/model/alerts/standing.ts'
import { append } from '../../src/model/audit/audit.ts'
import { PRESETS } from '../../src/model/users/permissions.ts'
import { actor, alerting, edges, HOUR, MINUTE } from '../support/alerting.ts'

type World = Awaited<ReturnType<typeof alerting>>

const signIn = (app: World, address: string) => {
  const who = { id: 'usr_1', name: 'ada', method: 'password', address, at: app.clock.now() }
  return commit(app.db, (tx) => append(tx, who, 'login_success', { target: 'usr_1' }))
}

const HAPPENINGS: Partial<Record<AlertEvent, (app: World) => Promise<unknown>>> = {
  'security.sign_in': async (app) => {
    await signIn(app, '198.51.100.7')
    await signIn(app, '192.0.2.1')
  },
  'security.role': (app) =>
    commit(app.db, (tx) =>
      append(tx, { ...actor(app.clock.now()), name: 'ada' }, 'user_role_changed', {
        target: 'usr_1',
        details: { from: 'viewer', to: 'admin' },
      }),
    ),
  'credit.redeemed': (app) =>
    commit(app.db, (tx) =>
      append(tx, { ...actor(app.clock.now()), name: 'ada' }, 'reset_credit_redeemed', {
        target: app.members[0]!.id,
        details: { code: 'reset' },
      }),
    ),
  'statement.odd': async (app) => {
    const { id } = app.members[0]!
    const odd = {
      event: 'statement.odd',
      subject: { kind: 'account', id, name: 'anna@example.com' },
      severity: 'warning',
      text: 'The weekly meter of anna@example.com moved by 9 % without requests.',
      path: `/accounts/${id}?tab=statement`,
      at: app.clock.now(),
    } as const
    await commit(app.db, (tx) => raiseOccurrence(tx, odd, app.deps.random))
  },
}

describe.each(Object.entries(HAPPENINGS) as [AlertEvent, (app: World) => Promise<unknown>][])(
  // as: its entries
  '%s',
  (event, happen) => {
    const open = async () => {
      const app = await alerting({ accounts: 2 })
      await app.addChannel({ events: [event], repeatDaily: true, minSeverity: 'info' })
      await app.beat() // the audit log until now is not news
      await happen(app)
      return app
    }

    test('is one message without delay, without recovery and without repeats', async () => {
      const app = await open()
      await app.beat()
      expect(app.received.map(({ event: sent, edge }) => [sent, edge])).toEqual([[event, 'raised']])
      await app.run(2 * MINUTE)
      await app.clock.advance(25 * HOUR)
      await app.run(MINUTE)
      expect(app.received).toHaveLength(1)
    })

    test('is not in the bell, keeps no heartbeat down, and is listed as past', async () => {
      const app = await open()
      await app.addChannel({
        kind: 'uptime_kuma',
        name: 'kuma',
        target: { url: 'https://kuma.test/api/push/x' },
        events: [event],
      })
      const beats: string[] = []
      app.deps.guardedFetch.fetchAt = async (_addresses, url) => {
        beats.push(new URL(url).searchParams.get('status') ?? '')
        return new Response('{"ok":true}')
      }
      await app.run(2 * MINUTE)
      expect((await StandingAlerts.open(app.db)).for(PRESETS.admin)).toEqual([])
      expect(await openIncidents(app.db)).toEqual([])
      expect(new Set(beats.filter((status) => status !== ''))).toEqual(new Set(['up']))
      const past = await pastIncidents(app.db, 10)
      expect(past.map((one) => one.event)).toEqual([event])
      const acknowledged = commit(app.db, (tx) => acknowledge(tx, past[0]!.key, actor(app.clock.now())))
      expect(
        await acknowledged.then(
          () => null,
          ({ code }) => code,
        ),
      ).toBe('not_found')
    })

    test('is sent again when it happens again, also to a channel that failed before', async () => {
      const app = await open()
      app.receiver.answer = async () => new Response('', { status: 500 })
      await app.beat()
      expect(app.received).toEqual([])
      app.receiver.answer = async () => new Response('ok')
      await app.run(10_000)
      if (event === 'security.sign_in') await signIn(app, '203.0.113.5')
      else await happen(app)
      await app.run(10_000)
      expect(edges(app.received)).toEqual(['raised', 'raised'])
      const rows = await app.db.select().from(alertDeliveries).all()
      expect(rows.map(({ status, tries }) => [status, tries])).toEqual([
        ['sent', 2],
        ['sent', 1],
      ])
    })
  },
)

test('thirty at once are one message', async () => {
  const app = await alerting({ accounts: 1 })
  await app.addChannel({ events: ['security.role'] })
  await app.beat()
  for (let n = 0; n < 30; n++) await HAPPENINGS['security.role']?.(app)
  await app.run(2 * MINUTE)
  expect(app.received).toHaveLength(1)
  expect(app.received[0]).toMatchObject({ event: 'bundle', title: '30 alerts' })
})

test('the account of an oddity is masked', async () => {
  const app = await alerting({ accounts: 2 })
  await app.addChannel()
  await HAPPENINGS['statement.odd']?.(app)
  await app.run(2 * MINUTE)
  expect(app.received).toMatchObject([{ event: 'statement.odd', subject: { name: 'a***@example.com' } }])
})
