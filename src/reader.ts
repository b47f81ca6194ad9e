/** Where reads go that can take long: to threads of their own, so that no stream waits for a report. */
import { READ_LANES } from './model/read-lanes.ts'
import type { ReadArgs, ReadName, Reads } from './model/reads.ts'
import { type LaneDeps, ReaderLane } from './reader-lane.ts'

/** Each read of `model/reads.ts` by its name. They throw `busy` when the answer takes over two seconds, or too much waits. */
export type Answers = {
  [Name in ReadName]: (...args: ReadArgs<Name>) => Promise<ReturnType<Reads[Name]>>
}

export interface Reader extends Answers {
  /** The same, in the name of `who`: callers take turns. Without it the service itself asks. */
  for(who: string): Answers
  /** Ends the threads; what is under way fails with `busy`. */
  stop(): void
}

/** `newWorker`: for tests, another worker that speaks the same protocol. */
type ReaderDeps = Omit<LaneDeps, 'newWorker'> & Partial<Pick<LaneDeps, 'newWorker'>>

/**
 * The reader of a running server. A thread starts with the first call, and again after a deadline or a crash. What reads
 * whole tables has one of its own, so that the pages do not wait for it.
 */
export const createReader = (deps: ReaderDeps): Reader => {
  const lanes = { quick: new ReaderLane({ newWorker, ...deps }), slow: new ReaderLane({ newWorker, ...deps }) }
  const stop = () => {
    lanes.quick.stop()
    lanes.slow.stop()
  }
  return readerOf((who, name, args) => lanes[READ_LANES[name]].ask(who, name, args), stop)
}

type Ask = (who: string, name: ReadName, args: ReadArgs<ReadName>) => Promise<unknown>

/** A reader that has `ask` find the answers. */
export const readerOf = (ask: Ask, stop: () => void): Reader => {
  const names = Object.keys(READ_LANES) as ReadName[] // as: Object.keys forgets the literal types
  const answersFor = (who: string): Answers => {
    const calls = names.map((name) => [name, (...args: ReadArgs<ReadName>) => ask(who, name, args)])
    return Object.fromEntries(calls) as Answers // as: `read` pairs each name with its own types
  }
  return { ...answersFor('service'), for: answersFor, stop }
}

/** The address must be written like this for the compiled binary to find its entry. */
const newWorker = (): Worker => new Worker(new URL('./reader-worker.ts', import.meta.url).href, { ref: false })
