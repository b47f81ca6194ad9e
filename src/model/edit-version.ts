/** Optimistic locking: an edit names the version it started from and is rejected if the resource has changed since. */
import { z } from 'zod'
import { AppError } from '../errors.ts'

export const ExpectedVersion = z
  .string()
  .max(64)
  .optional()
  .describe('The `version` you read. If it has changed since, the request gets `edit_conflict`.')

/** A hash of `shown`; rows have no version counter. */
export const getVersion = (shown: readonly unknown[]): string =>
  new Bun.CryptoHasher('sha256').update(JSON.stringify(shown)).digest('hex').slice(0, 16)

/** Throws `edit_conflict`. Without `expected` the edit always wins. */
export const requireVersion = (expected: string | undefined, version: string): void => {
  if (expected !== undefined && expected !== version) throw new AppError('edit_conflict')
}
