/** When the checkpoint thread runs, what happens when it fails, and that the real one works. */
import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { canReadPagesBehind, pagesBehind } from '../db/checkpoint.ts'
import { systemClock } from '../src/lib/clock.ts'
import { createLog } from '../src/lib/log.ts'
import { Checkpointer } from '../src/threads/checkpointer.ts'
import { ManualClock } from './support/clock.ts'
import { type LoggedDb, loggedDb } from './support/db.ts'

const CAN_TELL = canReadPagesBehind(new Database())

/** A thread that responds on command. */
class FakeWorker extends EventTarget {
  readonly asked: string[] = []
  isTerminated = false

  postMessage(path: string): void {
    this.asked.push(path)
  }

  terminate(): void {
    this.isTerminated = true
  }

  answer(failure: string | null = null): void {
    this.dispatchEvent(new MessageEvent('message', { data: failure }))
  }

  /** Like Bun: with an error only if there was one. */
  end(message?: string): void {
    if (message !== undefined) this.dispatchEvent(new ErrorEvent('error', { message }))
    this.dispatchEvent(new Event('close'))
  }
}

const setUp = () => {
  const clock = new ManualClock()
  const workers: FakeWorker[] = []
  const lines: string[] = []
  const file = { isNamed: true, pages: 1000 }
  const starts = { fail: false }
  const checkpointer = new Checkpointer({
    path: '/data/sluice.db',
    pagesBehind: () => file.pages,
    isNamed: () => file.isNamed,
    clock,
    log: createLog({ level: 'warn', format: 'text', now: () => 0, write: (line) => lines.push(line) }),
    newWorker: () => {
      if (starts.fail) throw new Error('no thread to be had')
      const worker = new FakeWorker()
      workers.push(worker)
      return worker as unknown as Worker // as: the members used here
    },
  })
  const asked = () => workers.flatMap((worker) => worker.asked).length
  return { clock, workers, lines, file, starts, checkpointer, asked }
}

test('a checkpoint runs after a thousand pages, and an idle server has no thread', () => {
  const { checkpointer, workers, file } = setUp()
  file.pages = 999
  checkpointer.written()
  expect(workers).toEqual([])
  for (let batch = 0; batch < 2; batch++) {
    file.pages = 1000
    checkpointer.written()
    file.pages = 0
    workers[0]?.answer()
    checkpointer.written()
  }
  expect(workers.map(({ asked }) => asked)).toEqual([['/data/sluice.db', '/data/sluice.db']])
})

test('only one checkpoint runs at a time: pages written during it are for the next', () => {
  const { checkpointer, workers, asked } = setUp()
  checkpointer.written()
  checkpointer.written()
  expect(asked()).toBe(1)
  workers[0]?.answer()
  checkpointer.written()
  expect(asked()).toBe(2)
})

test('a removed or replaced file is not checkpointed', () => {
  const { checkpointer, file, asked } = setUp()
  file.isNamed = false
  checkpointer.written()
  expect(asked()).toBe(0)
  file.isNamed = true
  checkpointer.written()
  expect(asked()).toBe(1)
})

test('a failure is logged once, and again only after a success', () => {
  const { checkpointer, workers, lines } = setUp()
  for (const failure of ['disk I/O error', 'disk I/O error', null, 'disk I/O error']) {
    checkpointer.written()
    workers[0]?.answer(failure)
  }
  expect(lines).toHaveLength(2)
  expect(lines[0]).toContain('disk I/O error')
})

test.each(['it cannot be loaded', undefined])('a thread that ends (%p) is replaced, and logged once', (message) => {
  const { checkpointer, workers, lines } = setUp()
  for (let threads = 0; threads < 3; threads++) {
    checkpointer.written()
    workers.at(-1)?.end(message)
  }
  expect(workers.map(({ asked }) => asked.length)).toEqual([1, 1, 1])
  expect(lines).toEqual([expect.stringContaining(message ?? 'it ended')])
  checkpointer.written()
  workers.at(-1)?.answer()
  workers.at(-1)?.end()
  expect(lines).toHaveLength(1)
})

test('without a thread the ledger continues, and a thread is tried each time', async () => {
  const { checkpointer, starts, lines, asked } = setUp()
  starts.fail = true
  checkpointer.written()
  checkpointer.written()
  expect(lines).toEqual([expect.stringContaining('no thread to be had')])
  starts.fail = false
  checkpointer.written()
  expect(asked()).toBe(1)
})

test('a stop waits for a running checkpoint, for at most a second', async () => {
  const { checkpointer, workers, clock } = setUp()
  checkpointer.written()
  let hasStopped = false
  const stopping = checkpointer.stop().then(() => {
    hasStopped = true
  })
  await clock.advance(900)
  expect([hasStopped, workers[0]?.isTerminated]).toEqual([false, false])
  workers[0]?.answer()
  await stopping
  expect([workers[0]?.isTerminated, clock.pending]).toEqual([true, 0])

  const late = setUp()
  late.checkpointer.written()
  const stopped = late.checkpointer.stop()
  await late.clock.advance(1000)
  await stopped
  expect(late.workers[0]?.isTerminated).toBe(true)
  late.workers[0]?.end()
  late.checkpointer.written()
  expect([late.asked(), late.lines]).toEqual([1, []])
})

describe.skipIf(!CAN_TELL)('the real thread', () => {
  let logged: LoggedDb
  let lines: string[]

  beforeEach(() => {
    logged = loggedDb()
    logged.sqlite.run('INSERT INTO t (text) VALUES (hex(randomblob(3000000)))')
    lines = []
  })

  afterEach(() => logged.remove())

  const getCheckpointer = (file: string) =>
    new Checkpointer({
      path: file,
      pagesBehind: () => pagesBehind(logged.sqlite),
      isNamed: () => true,
      clock: systemClock,
      log: createLog({ level: 'warn', format: 'text', now: () => 0, write: (line) => lines.push(line) }),
    })

  test('writes committed pages into the file', async () => {
    expect(statSync(logged.path).size).toBeLessThan(5_000_000)
    const checkpointer = getCheckpointer(logged.path)
    checkpointer.written()
    await checkpointer.stop()
    expect(statSync(logged.path).size).toBeGreaterThan(5_000_000)
    expect(lines).toEqual([])
  })

  test('reports why it cannot, and creates no file', async () => {
    const elsewhere = join(logged.dir, 'none.db')
    const checkpointer = getCheckpointer(elsewhere)
    checkpointer.written()
    await checkpointer.stop()
    expect(lines).toEqual([expect.stringContaining('unable to open database file')])
    expect(existsSync(elsewhere)).toBe(false)
  })

  test('keeps an idle process alive until it has stopped', async () => {
    const script = `
      import { Checkpointer } from '../src/threads/checkpointer.ts'
      import { systemClock } from '../src/lib/clock.ts'
      const path = process.argv.at(-1)
      const checkpointer = new Checkpointer({ path, pagesBehind: () => 1000, isNamed: () => true, clock: systemClock })
      checkpointer.written()
      void checkpointer.stop().then(() => console.log('stopped'))`
    const cwd = import.meta.dir
    const child = Bun.spawn([process.execPath, '-e', script, logged.path], {
      cwd,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    expect(await new Response(child.stdout).text()).toBe('stopped\n')
    expect(pagesBehind(logged.sqlite)).toBe(0)
  })
})
