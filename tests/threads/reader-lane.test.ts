/** The queue of the reader: waiting times, order, and deadlines, with a thread that answers on command. */
import { describe, expect, test } from 'bun:test'
import type { AppError } from '../../src/errors.ts'
import { createLog } from '../../src/lib/log.ts'
import { createReader, type Reader } from '../../src/threads/reader.ts'
import { CLOSE_MS, DEADLINE_MS, MAX_WAITING, START_MS, WAIT_MS } from '../../src/threads/reader-lane.ts'
import type { FromWorker, ToWorker } from '../../src/threads/reader-worker.ts'
import { ManualClock } from '../support/clock.ts'

/** A thread in which nothing ends by itself. */
class FakeWorker extends EventTarget {
  readonly asked: Extract<ToWorker, { kind: 'call' }>[] = []
  isTerminated = false
  /** A running query keeps it from closing the database. */
  isBusy = false

  postMessage(message: ToWorker): void {
    if (message.kind === 'call') this.asked.push(message)
    if (message.kind === 'close' && !this.isBusy) queueMicrotask(() => this.closed())
  }

  closed(): void {
    this.dispatchEvent(new MessageEvent<FromWorker>('message', { data: { kind: 'closed' } }))
  }

  terminate(): void {
    this.isTerminated = true
  }

  ready(): void {
    this.dispatchEvent(new MessageEvent<FromWorker>('message', { data: { kind: 'ready' } }))
  }

  /** The running query has ended. */
  close(): void {
    this.dispatchEvent(new Event('close'))
  }

  answer(value: unknown = null): void {
    const id = this.asked.at(-1)?.id ?? 0
    this.dispatchEvent(new MessageEvent<FromWorker>('message', { data: { id, value } }))
  }
}

/** A thread is ready immediately, unless it waits for the test. */
const setUp = ({ startsLate = false } = {}) => {
  const clock = new ManualClock()
  const workers: FakeWorker[] = []
  const newWorker = () => {
    const worker = new FakeWorker()
    workers.push(worker)
    if (!startsLate) queueMicrotask(() => worker.ready())
    return worker as unknown as Worker // as: the members the lane uses
  }
  const log = createLog({ level: 'error', format: 'text', now: () => 0, write: () => {} })
  const reader = createReader({ path: '', clock, log, newWorker })
  /** The requested history identifies the calls. */
  const ask = (who: string, name: string) =>
    reader
      .for(who)
      .accountHistory(name, null)
      .then(
        () => 'answered',
        (err: AppError) => err.code,
      )
  const asked = () => workers.flatMap((worker) => worker.asked.map(({ args }) => String(args[0])))
  return { clock, workers, reader, ask, asked }
}

const leave = async (reader: Reader, clock: ManualClock) => {
  const stopping = reader.stop()
  await clock.advance(0)
  await stopping
  expect(clock.pending).toBe(0)
}

test('one read at a time, clients in turns: many reads of one do not block the others', async () => {
  const { reader, clock, workers, ask, asked } = setUp()
  const all = ['g1', 'g2', 'g3', 'g4'].map((name) => ask('guest', name))
  all.push(ask('ada', 'a1'), ask('ada', 'a2'), ask('eve', 'e1'))
  for (let n = 0; n < 7; n++) {
    expect(asked()).toHaveLength(n + 1)
    workers[0]?.answer()
  }
  expect(asked()).toEqual(['g1', 'a1', 'e1', 'g2', 'a2', 'g3', 'g4'])
  expect(await Promise.all(all)).toEqual(all.map(() => 'answered'))
  await leave(reader, clock)
})

test('the deadline of a read begins when it starts, not when it waits', async () => {
  const { reader, clock, workers, ask } = setUp()
  const first = ask('ada', '1')
  const second = ask('eve', '2')
  await clock.advance(DEADLINE_MS - 1)
  workers[0]?.answer()
  await clock.advance(DEADLINE_MS - 1)
  workers[0]?.answer()
  expect(await Promise.all([first, second])).toEqual(['answered', 'answered'])
  await leave(reader, clock)
})

describe('the start of a thread', () => {
  test('does not count against the read that waits for it, whose deadline begins after it', async () => {
    const { reader, clock, workers, ask } = setUp({ startsLate: true })
    const first = ask('ada', '1')
    await clock.advance(START_MS - 1)
    workers[0]?.ready()
    await clock.advance(DEADLINE_MS - 1)
    workers[0]?.answer()
    expect(await first).toBe('answered')
    await leave(reader, clock)
  })

  test('does not lengthen the deadline of the read that waited for it', async () => {
    const { reader, clock, workers, ask } = setUp({ startsLate: true })
    const slow = ask('ada', 'slow')
    await clock.advance(1000)
    workers[0]?.ready()
    await clock.advance(DEADLINE_MS)
    expect([await slow, workers[0]?.isTerminated]).toEqual(['busy', true])
    await leave(reader, clock)
  })

  test('has a time limit, and the next read starts another', async () => {
    const { reader, clock, workers, ask } = setUp({ startsLate: true })
    const first = ask('ada', '1')
    await clock.advance(START_MS)
    expect([await first, workers[0]?.isTerminated]).toEqual(['busy', true])
    const second = ask('eve', '2')
    workers[1]?.answer()
    expect(await second).toBe('answered')
    await leave(reader, clock)
  })
})

test('a thread that closes by itself ends its read immediately, and blocks no other', async () => {
  const { reader, clock, workers, ask } = setUp()
  const first = ask('ada', '1')
  workers[0]?.close()
  expect(await first).toBe('busy')
  const second = ask('ada', '2')
  workers[1]?.answer()
  expect(await second).toBe('answered')
  await leave(reader, clock)
})

test('no read waits forever', async () => {
  const { reader, clock, workers, ask } = setUp()
  const waits = Array.from({ length: 9 }, (_, n) => ask(`somebody ${n}`, 'x'))
  for (let waited = 0; waited < WAIT_MS; waited += DEADLINE_MS - 1) {
    await clock.advance(DEADLINE_MS - 1)
    workers[0]?.answer()
  }
  expect(await waits.at(-1)).toBe('busy')
  await leave(reader, clock)
})

describe('the queue is bounded', () => {
  test('for one client, without affecting others', async () => {
    const { reader, clock, ask } = setUp()
    const guests = Array.from({ length: 30 }, () => ask('guest', 'x'))
    expect(await guests[17]).toBe('busy')
    const ada = ask('ada', 'x')
    expect(await Promise.race([ada, clock.advance(0).then(() => 'waits')])).toBe('waits')
    await leave(reader, clock)
  })

  test('for all together', async () => {
    const { reader, clock, ask } = setUp()
    const calls = Array.from({ length: MAX_WAITING + 2 }, (_, n) => ask(`somebody ${n}`, 'x'))
    expect(await calls.at(-1)).toBe('busy')
    await leave(reader, clock)
  })
})

describe('a read that was given up', () => {
  test('blocks its client until its thread ended, and no other', async () => {
    const { reader, clock, workers, ask, asked } = setUp()
    const slow = ask('guest', 'slow')
    await clock.advance(DEADLINE_MS)
    expect([await slow, workers[0]?.isTerminated]).toEqual(['busy', true])
    void ask('guest', 'again')
    void ask('ada', 'hers')
    expect(asked()).toEqual(['slow', 'hers'])
    workers[1]?.answer()
    expect(asked()).toEqual(['slow', 'hers'])
    workers[0]?.close()
    expect(asked()).toEqual(['slow', 'hers', 'again'])
    await leave(reader, clock)
  })

  test('is one of at most three threads that continue without a reader', async () => {
    const { reader, clock, workers, ask } = setUp()
    for (const who of ['ada', 'eve', 'bob']) {
      const call = ask(who, 'slow')
      await clock.advance(DEADLINE_MS)
      expect(await call).toBe('busy')
    }
    void ask('ida', 'x')
    expect(workers).toHaveLength(3)
    workers[1]?.close()
    expect(workers).toHaveLength(4)
    await leave(reader, clock)
  })
})

describe('a stop', () => {
  const stopWhileReading = async () => {
    const world = setUp()
    const call = world.ask('ada', 'x')
    await world.clock.advance(0)
    const [worker] = world.workers
    worker!.isBusy = true
    let isStopped = false
    const stopping = world.reader.stop().then(() => {
      isStopped = true
    })
    expect(await call).toBe('busy')
    return { ...world, worker: worker!, stopping, isStopped: () => isStopped }
  }

  test('rejects a running read, and waits until its thread has closed the database', async () => {
    const { clock, worker, stopping, isStopped } = await stopWhileReading()
    await clock.advance(CLOSE_MS - 1)
    expect([isStopped(), worker.isTerminated]).toEqual([false, false])
    worker.closed()
    await stopping
    expect([worker.isTerminated, clock.pending]).toEqual([true, 0])
  })

  test('does not wait longer than a second for a query', async () => {
    const { clock, worker, stopping } = await stopWhileReading()
    await clock.advance(CLOSE_MS)
    await stopping
    expect(worker.isTerminated).toBe(true)
  })

  test('does not wait for a thread that ends by itself, nor for one that was never started', async () => {
    const { clock, worker, stopping } = await stopWhileReading()
    worker.close()
    await stopping
    await leave(setUp().reader, clock)
  })
})

test('reads of whole tables have their own thread', async () => {
  const { reader, clock, workers, ask } = setUp()
  const sizes = reader.tableSizes()
  const page = ask('ada', 'x')
  workers[1]?.answer()
  expect(await page).toBe('answered')
  workers[0]?.answer('sizes')
  expect((await sizes) as unknown).toBe('sizes') // as: the response the thread was given
  await leave(reader, clock)
})
