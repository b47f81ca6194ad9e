/** By which an edit tells what it was made from: somebody else's change in between is then not lost but refused. */
import { z } from 'zod'
import { AppError } from '../errors.ts'

export const ExpectedVersion = z
  .string()
  .max(64)
  .optional()
  .describe('The `version` that was read: a change made in between is then not lost but refused.')

/** Another one for every change of `shown`; rows have no counter of their own. */
export const versionOf = (shown: readonly unknown[]): string =>
  new Bun.CryptoHasher('sha256').update(JSON.stringify(shown)).digest('hex').slice(0, 16)

/** Throws `edit_conflict`. Who expects nothing writes over whatever is there. */
export const demandVersion = (expected: string | undefined, version: string): void => {
  if (expected !== undefined && expected !== version) throw new AppError('edit_conflict')
}
