/** What a soak step is given and how it says that it passed, failed or could not run. */

/** `scale` is 1 in a full run and small in a quick one; counts are multiplied by it. */
export type SoakContext = { seed: number; scale: number; useBinary: boolean }

/** Returns what it has to say when it passed; throws when it failed, and `Skipped` when it could not run. */
export type SoakStep = (context: SoakContext) => Promise<string> | string

/** The thing to be soaked is not there. */
export class Skipped extends Error {
  override readonly name = 'Skipped'
}
