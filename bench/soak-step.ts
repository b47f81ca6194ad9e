/** What a soak step gets, and how it reports that it passed, failed or was skipped. */

/** `scale` is 1 in a full run and smaller in a quick one; counts are multiplied by it. */
export type SoakContext = { seed: number; scale: number; useBinary: boolean }

/** Returns its report when it passed. Throws when it failed, and `Skipped` when it could not run. */
export type SoakStep = (context: SoakContext) => Promise<string> | string

/** What the step needs does not exist. */
export class Skipped extends Error {
  override readonly name = 'Skipped'
}
