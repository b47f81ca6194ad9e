/** `GET /backend-api/codex/opportunistic/admission`: whether a request of this key would be admitted now. Calls no upstream. */
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { burnWindowClosed } from '../pool/selection-error.ts'
import { turnRoute } from '../relay/relay.ts'
import { requireAllowedModel, requireModelName } from '../turn/admit.ts'
import { keyNeeds } from '../turn/continuity.ts'

/** Asks the function that routes requests. Throws `rate_limit_exceeded` for an opportunistic key with no account to use. */
export const opportunisticAdmission = turnRoute(async (c) => {
  const model = modelFor(c)
  const { pool, settings, clock } = c.env
  const { key } = c.var.client
  if (key?.trafficClass !== 'opportunistic') return c.json({ admitted: true })
  const selection = pool.explain({
    model,
    tried: new Set(),
    ...keyNeeds(key),
    owner: null,
    restricted: false,
    streamCap: settings.current().proxyAccountStreamLimit,
  })
  if (selection.kind === 'none') throw burnWindowClosed(selection.failure, clock.now())
  return c.json({ admitted: true })
})

/** The model the request would use; null: any. Throws `invalid_request_error`, `model_not_found`. */
const modelFor = (c: Ctx): string | null => {
  const { key } = c.var.client
  const asked = c.req.queries('model') ?? []
  if (asked.length > 1) throw new AppError('invalid_request_error', { message: 'Send one model.', param: 'model' })
  const model = asked[0] === undefined ? null : requireModelName(asked[0])
  if (key?.enforcedModel) return key.enforcedModel
  if (key) requireAllowedModel(key, model, true)
  return model
}
