/** Refuses bodies that nest so deep that taking them apart or writing them anew would fail, after holding up everybody for a second. */
import { AppError } from '../errors.ts'
import { nestsDeeperThan } from '../lib/json-depth.ts'

/** No client comes near it; the runtime's own limit is some tens of thousands (measured, Bun 1.4.5). */
const MAX_DEPTH = 1000

/** To be called wherever a body is not just handed on. Throws `invalid_request_error`. */
export const demandShallow = (json: Uint8Array): void => {
  if (nestsDeeperThan(json, MAX_DEPTH))
    throw new AppError('invalid_request_error', { message: 'The request body is nested too deeply.' })
}
