/** The input item that requests a compaction: at most one, and last. */
import { getObject, isObject } from '../../lib/json.ts'
import { invalid } from './invalid-request.ts'

export const COMPACTION_TRIGGER = { type: 'compaction_trigger' } as const

/**
 * Whether the items request a compaction. Throws `invalid_request_error` on `input` when the trigger is repeated or not
 * last.
 */
export function checkCompactionTrigger(items: unknown[]): boolean {
  const first = items.findIndex((item) => isObject(item) && item.type === COMPACTION_TRIGGER.type)
  if (first < 0) return false
  if (first !== items.length - 1) throw invalid('input', 'Send exactly one compaction_trigger, as the last item.')
  return true
}

/** Whether `input` ends with the trigger; the rest is not checked. */
export const endsInTrigger = (input: unknown): boolean =>
  Array.isArray(input) && getObject(input.at(-1)).type === COMPACTION_TRIGGER.type
