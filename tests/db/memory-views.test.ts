/** A memory view that can't be read does not block others and is retried until it works. */
import { expect, test } from 'bun:test'
import type { Topic } from '../../db/commit.ts'
import { MemoryViews } from '../../db/memory-views.ts'
import { createLog } from '../../src/lib/log.ts'
import { testApp } from '../support/app.ts'
import { ManualClock } from '../support/clock.ts'

const setUp = () => {
  const clock = new ManualClock()
  const lines: string[] = []
  const log = createLog({ level: 'info', format: 'text', now: () => 0, write: (line) => void lines.push(line) })
  const read: string[] = []
  const broken = new Set<string>()
  const view = (name: string, ...topics: Topic[]) => ({
    name,
    topics,
    reload: async () => {
      if (broken.has(name)) throw new Error(`${name} is broken`)
      read.push(name)
    },
  })
  const views = new MemoryViews([view('one', 'keys'), view('two', 'keys', 'accounts'), view('three', 'catalog')], {
    clock,
    log,
  })
  return { clock, log, views, read, broken, lines }
}

test('a view is read when one of its topics changed, in the given order', async () => {
  const { views, read, clock } = setUp()
  await views.changed(new Set(['accounts', 'keys']))
  expect(read).toEqual(['one', 'two'])
  expect(clock.pending).toBe(0)
})

test('a change during a reload is not a failure to be retried', async () => {
  const { views, read, clock } = setUp()
  await Promise.all([
    views.changed(new Set(['keys'])),
    views.changed(new Set(['catalog'])),
    views.changed(new Set(['keys'])),
  ])
  expect(new Set(read)).toEqual(new Set(['one', 'two', 'three']))
  expect(clock.pending).toBe(0)
})

test('a failing view is reported, does not stop the others, and recovers automatically', async () => {
  const { views, read, broken, clock, lines } = setUp()
  broken.add('one')
  await views.changed(new Set(['keys']))
  expect(read).toEqual(['two'])
  await clock.advance('3s')
  expect(read).toEqual(['two'])
  expect(lines.filter((line) => line.includes('one is broken'))).toHaveLength(1)
  broken.clear()
  await clock.advance('1s')
  expect(read).toEqual(['two', 'one'])
  await clock.advance('5s')
  expect(read).toEqual(['two', 'one'])
  expect(clock.pending).toBe(0)
})

test('the stop waits for a view that is being read, and no other is read after it', async () => {
  const done = Promise.withResolvers<void>()
  const read: string[] = []
  const slow = async () => {
    await done.promise
    read.push('slow')
  }
  const { log, clock } = setUp()
  const views = new MemoryViews(
    [
      { name: 'slow', topics: ['keys'], reload: slow },
      { name: 'next', topics: ['keys'], reload: async () => void read.push('next') },
    ],
    { clock, log },
  )
  void views.changed(new Set(['keys']))
  await Promise.resolve()
  const stopped = views.stop()
  done.resolve()
  await stopped
  await Bun.sleep(1)
  expect(read).toEqual(['slow'])
})

test('nothing is read after the stop', async () => {
  const { views, read, broken, clock } = setUp()
  broken.add('one')
  await views.changed(new Set(['keys']))
  await views.stop()
  broken.clear()
  await clock.advance('5s')
  expect(read).toEqual(['two'])
  expect(clock.pending).toBe(0)
})

test('keys changed while the ledger could not be written are read when it can', async () => {
  const app = await testApp({ accounts: 0 })
  app.sqlite.run("CREATE TRIGGER full BEFORE INSERT ON account_usage BEGIN SELECT RAISE(ABORT, 'disk full'); END")
  const account = await app.addAccount()
  const windows = { fiveHour: null, weekly: null, monthly: null }
  app.bindings.ledger.usage(account.id, { at: app.clock.now(), planType: null, credits: null, windows })
  const { key } = await app.key()
  expect(app.bindings.keys.find(key)).toBeNull()
  app.sqlite.run('DROP TRIGGER full')
  await app.clock.advance('2s')
  expect(app.bindings.keys.find(key)).not.toBeNull()
})
