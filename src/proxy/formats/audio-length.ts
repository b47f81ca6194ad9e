/** How long transcribed audio is, where the answer says so. */
import { type JsonObject, objectOf } from '../../lib/json.ts'

/** Servers tell it in `duration`, or in `usage`. */
export const secondsOf = ({ duration, usage }: JsonObject): number | null => {
  const seconds = duration ?? objectOf(usage).seconds
  return typeof seconds === 'number' && Number.isFinite(seconds) && seconds > 0 ? seconds : null
}
