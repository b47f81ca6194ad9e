/** Gives a request the instructions the upstream insists on, without inventing any where the client wrote some. */
import { isObject } from '../../lib/json.ts'

/** Said only when the client gave neither instructions nor a developer message. */
export const NEUTRAL_INSTRUCTIONS = 'You are a helpful assistant.'

/**
 * The `instructions` to send: the client's own, then the texts of system messages, one per line. `undefined`
 * means the developer messages in `input` are instruction enough, as the native client shows by sending none.
 */
export function instructionsFor(own: string, systemTexts: string[], input: unknown[]): string | undefined {
  const joined = [own, ...systemTexts].filter((text) => text !== '').join('\n')
  if (joined !== '') return joined
  return input.some((item) => isObject(item) && item.role === 'developer') ? undefined : NEUTRAL_INSTRUCTIONS
}
