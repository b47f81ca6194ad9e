/** The guarantees of the real clock, which the manual clock has too. */
import { describe, expect, test } from 'bun:test'
import { systemClock } from '../../src/lib/clock.ts'
import { ManualClock } from '../support/clock.ts'

describe('systemClock', () => {
  test('returns integer time and a steady monotonic time', () => {
    expect(Number.isInteger(systemClock.now())).toBe(true)
    const first = systemClock.monotonic()
    expect(systemClock.monotonic()).toBeGreaterThanOrEqual(first)
  })

  test('sleep ends after its time, and rejects with the reason of an abort', async () => {
    const start = systemClock.monotonic()
    await systemClock.sleep(3)
    expect(systemClock.monotonic() - start).toBeGreaterThanOrEqual(2)
    const abort = new AbortController()
    const sleeping = systemClock.sleep(60_000, abort.signal)
    abort.abort(new Error('enough'))
    await expect(sleeping).rejects.toThrow('enough')
    await expect(systemClock.sleep(1, AbortSignal.abort(new Error('before')))).rejects.toThrow('before')
  })

  test('after and every run until cancelled', async () => {
    const runs: string[] = []
    systemClock.after(1, () => runs.push('once'))
    systemClock.after(1, () => runs.push('never'))()
    const enough = Promise.withResolvers<void>()
    const stop = systemClock.every(1, () => {
      runs.push('tick')
      if (runs.filter((run) => run === 'tick').length === 2) enough.resolve()
    })
    await enough.promise
    stop()
    const after = runs.length
    await systemClock.sleep(4)
    expect(runs).toHaveLength(after)
    expect(runs).toContain('once')
    expect(runs).not.toContain('never')
  })

  test('a wait beyond 24 days does not fire immediately', async () => {
    let fired = 0
    const stops = [systemClock.after(2 ** 31, () => fired++), systemClock.every(2 ** 31, () => fired++)]
    await systemClock.sleep(3)
    for (const stop of stops) stop()
    expect(fired).toBe(0)
  })

  test('after and every do not keep a process alive, sleep does', async () => {
    const path = new URL('../../src/lib/clock.ts', import.meta.url).pathname
    const script = `
      const { systemClock } = await import(${JSON.stringify(path)})
      systemClock.after(60_000, () => {}); systemClock.every(60_000, () => {})
      systemClock.sleep(5).then(() => console.log('slept'))`
    const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe' })
    expect(await new Response(child.stdout).text()).toBe('slept\n')
    expect(await child.exited).toBe(0)
  })
})

describe('ManualClock', () => {
  test('fires due timers in order and settles promises between them', async () => {
    const clock = new ManualClock()
    const seen: string[] = []
    const note = (what: string) => seen.push(`${what}@${clock.monotonic()}`)
    clock.after(20, () => note('later'))
    clock.after(10, () => {
      note('first')
      void Promise.resolve().then(() => clock.after(5, () => note('set by a promise')))
    })
    clock.after(10, () => note('second'))
    await clock.advance(30)
    expect(seen).toEqual(['first@10', 'second@10', 'set by a promise@15', 'later@20'])
    expect(clock.monotonic()).toBe(30)
    expect(clock.pending).toBe(0)
  })

  test('every repeats, cancel stops, and time is as set', async () => {
    const clock = new ManualClock(1000)
    let ticks = 0
    const stop = clock.every(1000, () => ticks++)
    await clock.advance('2s')
    expect(ticks).toBe(2)
    stop()
    await clock.advance('1m')
    expect(ticks).toBe(2)
    expect(clock.now()).toBe(63_000)
    await expect(clock.advance('soon' as '1s')).rejects.toThrow('duration')
  })

  test('sleep resolves at its time and rejects on abort without leaving a timer', async () => {
    const clock = new ManualClock()
    const abort = new AbortController()
    const sleeping = clock.sleep(1000, abort.signal)
    abort.abort(new Error('enough'))
    await expect(sleeping).rejects.toThrow('enough')
    expect(clock.pending).toBe(0)
    let woke = false
    void clock.sleep(500).then(() => {
      woke = true
    })
    await clock.advance(499)
    expect(woke).toBe(false)
    await clock.advance(1)
    expect(woke).toBe(true)
  })

  test('a timer that throws fails the test that advances', async () => {
    const clock = new ManualClock()
    clock.after(1, () => {
      throw new Error('in timer')
    })
    await expect(clock.advance(1)).rejects.toThrow('in timer')
  })
})
