/** Alerts whose result cannot be stored, or whose commit got no answer: they are sent once. */
import { expect, test } from 'bun:test'
import { alerting, MINUTE, SECOND } from '../support/alerting.ts'
import { blockUpdates, loseAnswer } from '../support/lost-answer.ts'

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
  await app.run(MINUTE + 10 * SECOND).catch(() => {})
  await app.run(MINUTE)
  expect([isLost(), app.received.length]).toEqual([true, 1])
})

test('an alert is not repeated while its result cannot be stored', async () => {
  const app = await setup()
  const unblock = await blockUpdates(app.db, 'alert_deliveries')
  for (let beat = 0; beat < 30; beat++) await app.run(5 * SECOND).catch(() => {})
  expect(app.received).toHaveLength(1)
  await unblock()
  await app.run(MINUTE)
  expect(app.received).toHaveLength(1)
})
