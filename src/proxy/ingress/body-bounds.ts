/**
 * Rejects bodies that would block the event loop: very many JSON values take a minute and gigabytes to parse, very deep
 * nesting takes a second and then fails.
 */
import { AppError } from '../../errors.ts'
import { holdsMoreValuesThan, nestsDeeperThan } from '../../lib/json-bounds.ts'

/** The longest conversation a model accepts has about 200,000. This many take at most a second to parse (Bun 1.4.5). */
const MAX_VALUES = 500_000

/** Call before parsing a body. Throws `invalid_request_error`. */
export const requireFewValues = (bytes: Uint8Array): void => {
  if (holdsMoreValuesThan(bytes, MAX_VALUES))
    throw new AppError('invalid_request_error', {
      message: `The request body has more than ${MAX_VALUES} JSON values.`,
    })
}

/** Far above any client; the runtime's own limit is tens of thousands (Bun 1.4.5). */
const MAX_DEPTH = 1000

/** Call before a body is rewritten. Throws `invalid_request_error`. */
export const requireShallow = (json: Uint8Array): void => {
  if (nestsDeeperThan(json, MAX_DEPTH))
    throw new AppError('invalid_request_error', { message: 'The request body is nested too deeply.' })
}
