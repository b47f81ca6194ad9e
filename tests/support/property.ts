/** Property tests with a repeatable seed: `SEED=123 bun test …` runs the same cases again. */
import fc from 'fast-check'

const given = Number.parseInt(process.env.SEED ?? '', 10)

/** The seed of this run: from the environment, else random. */
export const SEED = Number.isNaN(given) ? Math.floor(Math.random() * 0x7fff_ffff) : given

/** `PROPERTY_RUNS=10000 bun test …`: the large numbers of `bun run soak`. */
const wanted = Number.parseInt(process.env.PROPERTY_RUNS ?? '', 10)

/** Asserts a fast-check property; a failure names the seed that repeats it. */
export const holds = <Ts>(property: fc.IRawProperty<Ts>, runs = 200): void => {
  withSeed(() => fc.assert(property, { seed: SEED, numRuns: Number.isNaN(wanted) ? runs : wanted }))
}

/** The same for a property that is awaited. */
export const holdsAwaited = async <Ts>(property: fc.IAsyncProperty<Ts>, runs = 200): Promise<void> => {
  try {
    await fc.assert(property, { seed: SEED, numRuns: Number.isNaN(wanted) ? runs : wanted })
  } catch (err) {
    console.error(`Repeat with SEED=${SEED}`)
    throw err
  }
}

/** Runs a test body that draws from `random`; a failure names the seed that repeats it. */
export const withRandom = (body: (random: () => number) => void): void => {
  withSeed(() => body(seededRandom(SEED)))
}

/** Numbers in [0,1) from a seed (mulberry32: small, fast, evenly spread). */
export const seededRandom = (seed: number): (() => number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000
  }
}

const withSeed = (body: () => void): void => {
  try {
    body()
  } catch (err) {
    console.error(`Repeat with SEED=${SEED}`)
    throw err
  }
}
