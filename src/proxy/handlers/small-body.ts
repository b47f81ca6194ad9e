/** Reads the JSON body of a route that serves no turn. */
import type { Ctx } from '../../boot/bindings.ts'
import { IDLE_SECONDS } from '../../lib/idle-limit.ts'
import type { JsonObject } from '../../lib/json.ts'
import { OTHER_BODY_BYTES, readBody, requireShallow } from '../ingress/raw-body.ts'

/**
 * A body can be sent slowly, so the gate is checked again after reading it. Throws what `readBody`, the gate
 * and `requireShallow` throw.
 */
export const readSmallBody = async (c: Ctx): Promise<JsonObject> => {
  const limits = { env: c.env, maxBytes: OTHER_BODY_BYTES, tooLargeStatus: 413 } as const
  const { bytes, json, hold } = await readBody(c.req.raw, limits)
  hold.release()
  c.env.server?.timeout(c.req.raw, IDLE_SECONDS)
  await c.get('passAgain')(c)
  requireShallow(bytes)
  return json
}
