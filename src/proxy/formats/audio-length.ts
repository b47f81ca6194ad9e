/** How long transcribed audio is, where the answer says so. */
import { getObject, type JsonObject } from '../../lib/json.ts'

/** Servers tell it in `duration`, or in `usage`. */
export const toSeconds = ({ duration, usage }: JsonObject): number | null => {
  const seconds = duration ?? getObject(usage).seconds
  return typeof seconds === 'number' && Number.isFinite(seconds) && seconds > 0 ? seconds : null
}
