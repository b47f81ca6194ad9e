/** When the thread that carries the write-ahead log over is asked, what happens when it fails, and that the real one does it. */
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase } from '../db/open.ts'
import { Checkpointer } from '../src/checkpointer.ts'
import { systemClock } from '../src/lib/clock.ts'
import { createLog } from '../src/lib/log.ts'
import { ManualClock } from './support/clock.ts'

/** A thread that answers when it is told to. */
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

  close(): void {
    this.dispatchEvent(new Event('close'))
  }
}

const setUp = () => {
  const clock = new ManualClock()
  const workers: FakeWorker[] = []
  const lines: string[] = []
  const file = { isNamed: true }
  const checkpointer = new Checkpointer({
    path: '/data/sluice.db',
    isNamed: () => file.isNamed,
    clock,
    log: createLog({ level: 'warn', format: 'text', now: () => 0, write: (line) => lines.push(line) }),
    newWorker: () => {
      const worker = new FakeWorker()
      workers.push(worker)
      return worker as unknown as Worker // as: what is used of one
    },
  })
  const asked = () => workers.flatMap((worker) => worker.asked).length
  return { clock, workers, lines, file, checkpointer, asked }
}

test('it is asked about every thousand pages, a batch having some besides its turns, and a server that rests has no thread', () => {
  const { checkpointer, workers, asked } = setUp()
  for (let batch = 0; batch < 9; batch++) checkpointer.written(90)
  expect(workers).toEqual([])
  checkpointer.written(90)
  expect(workers[0]?.asked).toEqual(['/data/sluice.db'])
  workers[0]?.answer()
  for (let batch = 0; batch < 47; batch++) checkpointer.written(1)
  expect(asked()).toBe(1)
  checkpointer.written(1)
  expect(asked()).toBe(2)
  expect(workers).toHaveLength(1)
})

test('one checkpoint at a time: what comes in meanwhile is for the next', () => {
  const { checkpointer, workers, asked } = setUp()
  checkpointer.written(1000)
  checkpointer.written(1000)
  expect(asked()).toBe(1)
  workers[0]?.answer()
  checkpointer.written(1)
  expect(asked()).toBe(2)
})

test('a file that was removed or replaced is left alone', () => {
  const { checkpointer, file, asked } = setUp()
  file.isNamed = false
  checkpointer.written(1000)
  expect(asked()).toBe(0)
  file.isNamed = true
  checkpointer.written(1)
  expect(asked()).toBe(1)
})

test('a failure is told once, and again only after it worked', () => {
  const { checkpointer, workers, lines } = setUp()
  for (const failure of ['disk I/O error', 'disk I/O error', null, 'disk I/O error']) {
    checkpointer.written(1000)
    workers[0]?.answer(failure)
  }
  expect(lines).toHaveLength(2)
  expect(lines[0]).toContain('disk I/O error')
})

test('a thread that ended is followed by another', () => {
  const { checkpointer, workers } = setUp()
  checkpointer.written(1000)
  workers[0]?.close()
  checkpointer.written(1000)
  expect(workers.map(({ asked }) => asked.length)).toEqual([1, 1])
})

test('a stop waits for what is under way, and for a second at most', async () => {
  const { checkpointer, workers, clock } = setUp()
  checkpointer.written(1000)
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
  late.checkpointer.written(1000)
  const stopped = late.checkpointer.stop()
  await late.clock.advance(1000)
  await stopped
  expect(late.workers[0]?.isTerminated).toBe(true)
})

test('the real thread writes what was committed into the file', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-checkpointer-'))
  const path = join(dir, 'sluice.db')
  const { sqlite } = openDatabase(path)
  const lines: string[] = []
  const log = createLog({ level: 'warn', format: 'text', now: () => 0, write: (line) => lines.push(line) })
  const checkpointer = new Checkpointer({ path, isNamed: () => true, clock: systemClock, log })
  sqlite.run('PRAGMA wal_autocheckpoint = 0')
  sqlite.run('CREATE TABLE t (text TEXT)')
  sqlite.run('INSERT INTO t VALUES (hex(randomblob(50000)))')
  expect(statSync(path).size).toBeLessThan(100_000)
  checkpointer.written(1000)
  await checkpointer.stop()
  expect(statSync(path).size).toBeGreaterThan(100_000)
  expect(lines).toEqual([])
  sqlite.close()
  rmSync(dir, { recursive: true })
})
