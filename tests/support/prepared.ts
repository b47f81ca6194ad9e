/**
 * The database of a test app after its set-up, to start others from: importing an account and storing settings takes
 * several times as long as copying the result.
 */
import type { Random } from '../../src/lib/random.ts'

export interface Prepared {
  pages: Uint8Array
  accountIds: string[]
  /** Repeats what the set-up drew, so that an app has the same random numbers with and without it. */
  redraw: (random: Random) => void
}

/** PostgreSQL has no pages to copy. */
export const canPrepare = process.env.SLUICE_TEST_DB !== 'postgres'

/** The same random numbers, and a function that repeats the draws so far. */
export const recordDraws = (random: Random): { random: Random; getRedraw: () => (other: Random) => void } => {
  const draws: ((other: Random) => unknown)[] = []
  const draw = <T>(one: (other: Random) => T): T => {
    draws.push(one)
    return one(random)
  }
  return {
    random: {
      float: () => draw((other) => other.float()),
      bytes: (n) => draw((other) => other.bytes(n)),
      id: (prefix) => draw((other) => other.id(prefix)),
      orderedId: (prefix, nowMs) => draw((other) => other.orderedId(prefix, nowMs)),
      token: (byteCount) => draw((other) => other.token(byteCount)),
    },
    getRedraw: () => {
      const count = draws.length
      return (other) => {
        for (const one of draws.slice(1, count)) one(other) // the first is the key of the sealer, which every app draws
      }
    },
  }
}
