/** The jobs run in one process of a data folder at a time. */
import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { folderLocks, JOBS_LOCK, tryLock } from '../../db/lock.ts'
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
  const aLeader = (name: string) =>
    new Leader({ locks: folderLocks(dir), clock, log, lead: async () => led.push(name), resign: async () => {} })
  return { clock, led, lines, aLeader }
}

test('the first leads at once, the second when the first has stopped', async () => {
  const { clock, led, aLeader } = processes()
  const [first, second] = [aLeader('first'), aLeader('second')]
  await first.start()
  await second.start()
  await clock.advance('10s')
  expect([led, first.isLeading, second.isLeading]).toEqual([['first'], true, false])
  first.stop()
  await clock.advance('200ms')
  expect([led, first.isLeading, second.isLeading]).toEqual([['first', 'second'], false, true])
  second.stop()
  expect(clock.pending).toBe(0)
})

test('one that cannot start the jobs gives up the lock and tries again', async () => {
  const { clock, led, aLeader } = processes()
  let tries = 0
  const { lines } = processes()
  const log = createLog({ level: 'info', format: 'text', now: () => 0, write: (line) => lines.push(line) })
  const lead = async () => {
    if (++tries < 3) throw new Error('the database is away')
  }
  const leader = new Leader({ locks: folderLocks(dir), clock, log, lead, resign: async () => led.push('resigned') })
  await leader.start()
  expect([leader.isLeading, led]).toEqual([false, ['resigned']])
  const other = tryLock(dir, JOBS_LOCK)
  expect(other).not.toBeNull()
  other?.release()
  await clock.advance('3s')
  expect([leader.isLeading, tries, lines]).toEqual([true, 3, [expect.stringContaining('could not be started')]])
  leader.stop()
  await aLeader('next').start()
  expect(led).toEqual(['resigned', 'resigned', 'next'])
})

test('one that stops while it waits never leads', async () => {
  const { clock, led, aLeader } = processes()
  const lock = tryLock(dir, JOBS_LOCK)
  const waiting = aLeader('waiting')
  await waiting.start()
  waiting.stop()
  lock?.release()
  await clock.advance('1m')
  expect(led).toEqual([])
})
