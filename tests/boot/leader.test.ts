/** The jobs run in one process of a data folder at a time. */
import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { JOBS_LOCK, tryLock } from '../../db/lock.ts'
import { Leader } from '../../src/boot/leader.ts'
import { createLog } from '../../src/lib/log.ts'
import { ManualClock } from '../support/clock.ts'

const dir = mkdtempSync(join(tmpdir(), 'leader-'))
afterEach(() => rmSync(dir, { recursive: true, force: true }))

const processes = () => {
  const clock = new ManualClock()
  const led: string[] = []
  const lines: string[] = []
  const log = createLog({ level: 'info', format: 'text', now: () => 0, write: (line) => lines.push(line) })
  const aLeader = (name: string) => new Leader({ dir, clock, log, lead: () => led.push(name) })
  return { clock, led, lines, aLeader }
}

test('the first leads at once, the second when the first has stopped', async () => {
  const { clock, led, aLeader } = processes()
  const [first, second] = [aLeader('first'), aLeader('second')]
  first.start()
  second.start()
  await clock.advance('10s')
  expect([led, first.isLeading, second.isLeading]).toEqual([['first'], true, false])
  first.stop()
  await clock.advance('200ms')
  expect([led, first.isLeading, second.isLeading]).toEqual([['first', 'second'], false, true])
  second.stop()
  expect(clock.pending).toBe(0)
})

test('one that stops while it waits never leads', async () => {
  const { clock, led, aLeader } = processes()
  const lock = tryLock(dir, JOBS_LOCK)
  const waiting = aLeader('waiting')
  waiting.start()
  waiting.stop()
  lock?.release()
  await clock.advance('1m')
  expect(led).toEqual([])
})
