/** Jobs run on time, never overlap, and their failures are logged. */
import { expect, test } from 'bun:test'
import { seededRandom } from '../../src/lib/random.ts'
import { Schedule } from '../../src/lib/schedule.ts'
import { ManualClock } from '../support/clock.ts'

const aSchedule = () => {
  const clock = new ManualClock(0)
  const errors: string[] = []
  const schedule = new Schedule({
    clock,
    random: seededRandom(1),
    onError: (job, error) => errors.push(`${job}: ${error}`),
  })
  return { clock, errors, schedule }
}

test('runs each period after start, at start when asked', async () => {
  const { clock, schedule } = aSchedule()
  const runs: string[] = []
  schedule.add('slow', 1000, () => void runs.push(`slow@${clock.now()}`))
  schedule.add('eager', 600, () => void runs.push(`eager@${clock.now()}`), { runAtStart: true })
  await clock.advance('5s')
  expect(runs).toEqual([])
  schedule.start()
  await clock.advance(1200)
  expect(runs).toEqual(['eager@5000', 'eager@5600', 'slow@6000', 'eager@6200'])
  await schedule.stop()
  expect(clock.pending).toBe(0)
})

test('a long run is not overlapped; the pause starts at its end', async () => {
  const { clock, schedule } = aSchedule()
  const starts: number[] = []
  schedule.add('long', 100, async () => {
    starts.push(clock.now())
    await clock.sleep(250)
  })
  schedule.start()
  await clock.advance(1000)
  expect(starts).toEqual([100, 450, 800])
})

test('a failure is reported, and the job continues', async () => {
  const { clock, errors, schedule } = aSchedule()
  let runs = 0
  schedule.add('bad', 100, () => {
    runs++
    if (runs === 1) throw new Error('sync')
    return runs === 2 ? Promise.reject(new Error('async')) : Promise.resolve()
  })
  schedule.start()
  await clock.advance(200)
  expect(errors).toEqual(['bad: Error: sync', 'bad: Error: async'])
  await clock.advance(100)
  expect([runs, errors.length]).toEqual([3, 2])
})

test('runNow joins the current run and works before start', async () => {
  const { clock, errors, schedule } = aSchedule()
  let runs = 0
  schedule.add('job', 100, async () => {
    runs++
    await clock.sleep(10)
    throw new Error('no')
  })
  const both = Promise.all([schedule.runNow('job'), schedule.runNow('job')])
  await clock.advance(10)
  await both
  expect(runs).toBe(1)
  expect(errors).toEqual(['job: Error: no'])
  await expect(schedule.runNow('other')).rejects.toThrow('no job called other')
  expect(() => schedule.add('job', 1, () => {})).toThrow('already')
})

test('runAgain waits for the current run, and several wait for one', async () => {
  const { clock, schedule } = aSchedule()
  const starts: number[] = []
  schedule.add('job', 1000, async () => {
    starts.push(clock.now())
    await clock.sleep(100)
  })
  const all = Promise.all([schedule.runNow('job'), schedule.runAgain('job'), schedule.runAgain('job')])
  await clock.advance(500)
  await all
  expect(starts).toEqual([0, 100])
})

test('stop aborts the run, waits for its end, and nothing starts again', async () => {
  const { clock, errors, schedule } = aSchedule()
  const steps: string[] = []
  schedule.add(
    'job',
    100,
    async (signal) => {
      steps.push('start')
      await clock.sleep(10_000, signal).finally(() => steps.push('cleaned up'))
    },
    { runAtStart: true },
  )
  schedule.start()
  await schedule.stop()
  expect(steps).toEqual(['start', 'cleaned up'])
  await schedule.runNow('job')
  await clock.advance('1m')
  expect(steps).toHaveLength(2)
  expect(errors).toEqual([])
  expect(clock.pending).toBe(0)
})

test('jitter spreads the pauses within its fraction', async () => {
  const { clock, schedule } = aSchedule()
  const starts: number[] = []
  schedule.add('job', 1000, () => void starts.push(clock.now()), { jitter: 0.2 })
  schedule.start()
  await clock.advance('40s')
  const pauses = starts.map((start, i) => start - (starts[i - 1] ?? 0))
  expect(Math.min(...pauses)).toBeGreaterThanOrEqual(800)
  expect(Math.max(...pauses)).toBeLessThanOrEqual(1200)
  expect(new Set(pauses).size).toBeGreaterThan(10)
})

test('it says whether it runs', async () => {
  const schedule = new Schedule({ clock: new ManualClock(), random: seededRandom(1), onError: () => {} })
  const states = [schedule.isRunning]
  schedule.start()
  states.push(schedule.isRunning)
  await schedule.stop()
  expect([...states, schedule.isRunning]).toEqual([false, true, false])
})
