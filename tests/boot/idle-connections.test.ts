/** Kept connections during a drain: closed, except those whose request may have arrived unread. */
import { expect, test } from 'bun:test'
import { closeIdleConnections } from '../../src/boot/idle-connections.ts'

const start = () => {
  let now = 0
  let timer: { everyMs: number; due: number; run: () => unknown } | null = null
  let closed = 0
  const clock = {
    monotonic: () => now,
    every: (everyMs: number, run: () => unknown) => {
      timer = { everyMs, due: now + everyMs, run }
      return () => {
        timer = null
      }
    },
  }
  const stop = closeIdleConnections({ closeIdleConnections: () => ++closed }, clock)
  const runDue = () => {
    if (!timer || timer.due > now) return
    timer.due = now + timer.everyMs
    timer.run()
  }
  const counting = (run: () => void): number => {
    const before = closed
    run()
    return closed - before
  }
  return {
    stop,
    /** Time passes while the event loop is free. Returns the number of times connections were closed. */
    pass: (ms: number) =>
      counting(() => {
        for (const end = now + ms; now < end; ) {
          now += 1
          runDue()
        }
      }),
    /** Time passes while the event loop is blocked; then the timer runs, if it is due. Returns the same. */
    block: (ms: number) =>
      counting(() => {
        now += ms
        runDue()
      }),
  }
}

test('idle connections are closed every 2 ms while the event loop is free, until it is stopped', () => {
  const { pass, stop } = start()
  expect([pass(2), pass(1), pass(1), pass(20)]).toEqual([1, 0, 1, 10])
  stop()
  expect(pass(20)).toBe(0)
})

test.each([3, 5, 8])('a beat that is late by less than a few beats closes them, after %p ms', (blockMs) => {
  const { block, pass } = start()
  expect([block(blockMs), pass(2)]).toEqual([1, 1])
})

test.each([9, 50, 3000])('a beat after a pause of %p ms closes nothing, because requests may be unread', (pauseMs) => {
  const { block, pass } = start()
  expect([block(pauseMs), pass(2)]).toEqual([0, 1])
  expect([block(pauseMs), block(pauseMs), pass(2)]).toEqual([0, 0, 1])
})
