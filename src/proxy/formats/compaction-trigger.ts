/** The marker item that asks the upstream to compact a conversation: at most one, and last. */

import { isObject, type JsonObject } from '../../lib/json.ts'
import { invalid } from './invalid-request.ts'

export const COMPACTION_TRIGGER = { type: 'compaction_trigger' } as const

/**
 * Whether the request asks for a compaction. Throws `invalid_request_error` on `input` when the marker is there more
 * than once or not at the end (proxy surface §3.4).
 */
export const hasCompactionTrigger = (body: JsonObject): boolean =>
  Array.isArray(body.input) && checkCompactionTrigger(body.input)

/** The same for a list of items. */
export function checkCompactionTrigger(items: unknown[]): boolean {
  const first = items.findIndex((item) => isObject(item) && item.type === COMPACTION_TRIGGER.type)
  if (first < 0) return false
  if (first !== items.length - 1) throw invalid('input', 'A compaction_trigger must be there once, as the last item.')
  return true
}
