/** Alerts whose result cannot be stored, or whose commit got no answer: they are sent once. */
import { expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { alertDeliveries } from '../../db/schema/alerts.ts'
import { alertDeliveriesJob } from '../../src/jobs/alert-deliveries.ts'
import { recordOutcome } from '../../src/model/alerts/deliveries.ts'
import { alerting, MINUTE, NEVER, SECOND } from '../support/alerting.ts'
import { advanceClockDuring } from '../support/app.ts'
import { blockUpdates, loseAnswer, loseDatabase } from '../support/lost-answer.ts'

const setup = async () => {
  const app = await alerting({ accounts: 2 })
  await app.addChannel({ events: ['account.needs_sign_in'] })
  app.needSignIn(app.members[0]!.id)
  return app
}

test.each([
  ['and it was stored', true],
  ['and it was not stored', false],
])('an alert is sent once if the answer to the commit of its result is lost, %s', async (_, isStored) => {
  const app = await setup()
  const isLost = loseAnswer(app.db, { sql: /update "alert_deliveries"/, isStored })
  await advanceClockDuring(app, app.run(MINUTE + 10 * SECOND))
  await app.run(MINUTE)
  expect([isLost(), app.received.length]).toEqual([true, 1])
})

test('an alert is not repeated while its result cannot be stored', async () => {
  const app = await setup()
  const unblock = await blockUpdates(app.db, 'alert_deliveries')
  for (let beat = 0; beat < 30; beat++) await advanceClockDuring(app, app.run(5 * SECOND)).catch(() => {})
  expect(app.received).toHaveLength(1)
  await unblock()
  await app.run(MINUTE)
  expect(app.received).toHaveLength(1)
})

test('an alert is sent once if PostgreSQL is lost before its result is stored, which also ends the jobs', async () => {
  const app = await setup()
  let restore = () => {}
  app.receiver.answer = async () => {
    restore = loseDatabase(app.db)
    return new Response('ok')
  }
  await advanceClockDuring(app, app.run(MINUTE + 10 * SECOND)).catch(() => {})
  expect(app.received).toHaveLength(1)
  restore()
  await alertDeliveriesJob(app.deps)(NEVER)
  await alertDeliveriesJob(app.deps)(NEVER)
  expect(app.received).toHaveLength(1)
})

test('a failed attempt that is stored late does not undo the attempt of another node', async () => {
  const app = await setup()
  app.receiver.answer = async () => new Response('', { status: 503 })
  const rows = () => app.db.select().from(alertDeliveries).all()
  for (let beat = 0; beat < 20 && (await rows()).length === 0; beat++) {
    await app.clock.advance(5 * SECOND)
    await app.evaluate(NEVER)
  }
  const deliveries = await rows()
  expect(deliveries).toMatchObject([{ tries: 0 }])
  await app.deliver(NEVER)
  const after = await rows()
  expect(after).toMatchObject([{ tries: 1 }])
  const late = { deliveries, error: 'too late', now: app.clock.now() + MINUTE }
  await commit(app.db, (tx) => recordOutcome(tx, deliveries[0]!.channelId, late))
  expect(await rows()).toEqual(after)
})
