/** Refuses bodies of so many values that parsing them would stop all streams for a minute and take gigabytes, whatever the key may do. */
import { AppError } from '../errors.ts'
import { holdsMoreValuesThan } from '../lib/json-values.ts'

/** The longest conversation a model takes has some 200,000. So many are parsed in a second at worst (measured). */
const MOST_VALUES = 500_000

/** To be called before a body is parsed. Throws `invalid_request_error`. */
export const demandFewValues = (bytes: Uint8Array): void => {
  if (holdsMoreValuesThan(bytes, MOST_VALUES))
    throw new AppError('invalid_request_error', { message: `The request body has more than ${MOST_VALUES} values.` })
}
