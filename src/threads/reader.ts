/** Runs potentially slow reads in separate threads, so that no stream waits for a report. */
import { READ_LANES } from '../model/read-lanes.ts'
import type { ReadArgs, ReadName, Reads } from '../model/reads.ts'
import { type LaneDeps, ReaderLane } from './reader-lane.ts'

/** All reads of `model/reads.ts` by name. They throw `busy` when an answer takes over two seconds, or too many wait. */
export type Answers = {
  [Name in ReadName]: (...args: ReadArgs<Name>) => ReturnType<Reads[Name]>
}

export interface Reader extends Answers {
  /** The same for caller `who`: callers take turns. Without it, Sluice itself is the caller. */
  for(who: string): Answers
  /** Ends the threads. Running reads fail with `busy`. Resolves when the database is closed. */
  stop(): Promise<unknown>
}

/** `newWorker`: for tests, another worker with the same protocol. */
type ReaderDeps = Omit<LaneDeps, 'newWorker'> & Partial<Pick<LaneDeps, 'newWorker'>>

/**
 * A thread starts with the first call, and again after a time limit or crash. Reads of whole tables have their own
 * thread, so that pages do not wait for them.
 */
export const createReader = (deps: ReaderDeps): Reader => {
  const lanes = { quick: new ReaderLane({ newWorker, ...deps }), slow: new ReaderLane({ newWorker, ...deps }) }
  const stop = () => Promise.all([lanes.quick.stop(), lanes.slow.stop()])
  return toReader((who, name, args) => lanes[READ_LANES[name]].ask(who, name, args), stop)
}

type Ask = (who: string, name: ReadName, args: ReadArgs<ReadName>) => Promise<unknown>

/** A reader that gets its answers from `ask`. */
export const toReader = (ask: Ask, stop: () => Promise<unknown>): Reader => {
  const names = Object.keys(READ_LANES) as ReadName[] // as: Object.keys loses the literal types
  const answersFor = (who: string): Answers => {
    const calls = names.map((name) => [name, (...args: ReadArgs<ReadName>) => ask(who, name, args)])
    return Object.fromEntries(calls) as Answers // as: `read` pairs each name with its own types
  }
  return { ...answersFor('service'), for: answersFor, stop }
}

/** The URL must be written like this for the compiled executable to find its entry. */
const newWorker = (): Worker => new Worker(new URL('./reader-worker.ts', import.meta.url).href, { ref: false })
