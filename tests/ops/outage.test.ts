/** Which requests indicate an outage, and for how long. */
import { expect, test } from 'bun:test'
import { MINUTE_MS } from '../../src/lib/durations.ts'
import { OutageWatch } from '../../src/ops/outage.ts'
import { ManualClock } from '../support/clock.ts'

type Row = Parameters<OutageWatch['count']>[0]['row']

const ok: Row = { kind: 'normal', status: 'ok' }
const broken: Row = { kind: 'normal', status: 'error', errorMessage: 'Overloaded.' }

const setUp = () => {
  const clock = new ManualClock()
  const watch = new OutageWatch(clock)
  const fail = (row: Row = broken, times = 1) => {
    for (let n = 0; n < times; n++) watch.count({ row, isServiceFault: true })
  }
  const pass = (row: Row) => watch.count({ row, isServiceFault: false })
  return { clock, watch, fail, pass }
}

test('three failures in a row are reported with the newest, and the first success ends it', () => {
  const { watch, fail, pass } = setUp()
  fail(broken, 2)
  expect(watch.current).toBeNull()
  fail({ ...broken, errorMessage: 'ChatGPT rejected the request.' })
  expect(watch.current).toEqual({ turns: 3, message: 'ChatGPT rejected the request.' })
  pass(ok)
  expect(watch.current).toBeNull()
  fail(broken, 2)
  expect(watch.current).toBeNull()
})

test('cancelled and invalid requests, and prewarms, count for neither', () => {
  const { watch, fail, pass } = setUp()
  fail(broken, 2)
  for (const status of ['error', 'cancelled'] as const) pass({ ...broken, status })
  pass({ ...ok, kind: 'prewarm' })
  fail({ ...broken, kind: 'prewarm' })
  expect(watch.current).toBeNull()
  fail()
  expect(watch.current?.turns).toBe(3)
})

test('failures of a quarter of an hour ago are ignored', async () => {
  const { clock, watch, fail } = setUp()
  fail(broken, 3)
  await clock.advance(15 * MINUTE_MS - 1)
  expect(watch.current?.turns).toBe(3)
  await clock.advance(1)
  expect(watch.current).toBeNull()
  fail(broken, 2)
  expect(watch.current).toBeNull()
  fail()
  expect(watch.current?.turns).toBe(3)
})

test('setting the clock back ends the report', async () => {
  const { clock, watch, fail } = setUp()
  await clock.advance(15 * MINUTE_MS)
  fail(broken, 3)
  clock.set(-24 * 60 * MINUTE_MS)
  expect(watch.current?.turns).toBe(3)
  await clock.advance(15 * MINUTE_MS)
  expect(watch.current).toBeNull()
})

test('pages are truncated', () => {
  const { watch, fail } = setUp()
  fail({ ...broken, errorMessage: 'x'.repeat(201) }, 3)
  expect(watch.current?.message).toBe(`${'x'.repeat(200)}…`)
})
