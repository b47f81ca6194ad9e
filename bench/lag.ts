/** How long a process blocks its own event loop, excluding time in which other processes had the cores. */
import { openSync, readSync } from 'node:fs'

export interface Lag {
  /** Samples of the clock: how often a block could be detected. */
  looks: number
  /** The longest time between two samples, minus the pause between them. */
  longestMs: number
  /** The same without the time in which the thread was runnable but had no core: what the process itself causes. */
  ownMs: number
  /** The longest CPU time of a block. The rest of `ownMs` is waiting for the disk. */
  coreMs: number
  /** Samples with more than 25 ms of its own. */
  overTarget: number
}

export const LAG_TARGET_MS = 25
const PAUSE_MS = 2

/**
 * Samples continuously. Each call returns the lag since the previous one. For the main thread of a process, on Linux.
 */
export function watchLag(): () => Lag {
  const file = openSync(`/proc/self/task/${process.pid}/schedstat`, 'r')
  const buffer = Buffer.alloc(100)
  const look = () => {
    const [core = 0, waited = 0] = buffer
      .toString('utf8', 0, readSync(file, buffer, 0, 100, 0))
      .split(' ')
      .map(Number)
    return { now: performance.now(), core: core / 1e6, waited: waited / 1e6 }
  }
  const none = (): Lag => ({ looks: 0, longestMs: 0, ownMs: 0, coreMs: 0, overTarget: 0 })
  let lag = none()
  let last = look()
  setInterval(() => {
    const next = look()
    const longestMs = next.now - last.now - PAUSE_MS
    const ownMs = longestMs - (next.waited - last.waited)
    lag.looks++
    lag.longestMs = Math.max(lag.longestMs, longestMs)
    lag.ownMs = Math.max(lag.ownMs, ownMs)
    lag.coreMs = Math.max(lag.coreMs, next.core - last.core)
    if (ownMs > LAG_TARGET_MS) lag.overTarget++
    last = next
  }, PAUSE_MS)
  return () => {
    const told = lag
    lag = none()
    return told
  }
}
