/**
 * Refuses bodies that would hold up everybody, whatever the key may do: for a minute and with gigabytes, when so many values
 * are parsed; for a second, and then in vain, when what nests so deep is taken apart or written anew.
 */
import { AppError } from '../errors.ts'
import { holdsMoreValuesThan, nestsDeeperThan } from '../lib/json-bounds.ts'

/** The longest conversation a model takes has some 200,000. So many are parsed in a second at worst (measured). */
const MOST_VALUES = 500_000

/** To be called before a body is parsed. Throws `invalid_request_error`. */
export const demandFewValues = (bytes: Uint8Array): void => {
  if (holdsMoreValuesThan(bytes, MOST_VALUES))
    throw new AppError('invalid_request_error', {
      message: `The request body has more than ${MOST_VALUES} JSON values.`,
    })
}

/** No client comes near it; the runtime's own limit is some tens of thousands (measured, Bun 1.4.5). */
const MAX_DEPTH = 1000

/** To be called wherever a body is not just handed on. Throws `invalid_request_error`. */
export const demandShallow = (json: Uint8Array): void => {
  if (nestsDeeperThan(json, MAX_DEPTH))
    throw new AppError('invalid_request_error', { message: 'The request body is nested too deeply.' })
}
