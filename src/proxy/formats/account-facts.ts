/** Removes facts about the upstream account from an event, so that a client does not mistake them for its own. */
import { getPlace } from '../../lib/bytes.ts'
import { getObject, isObject, type JsonObject } from '../../lib/json.ts'
import type { SseEvent } from '../../lib/sse.ts'
import { eventJson } from '../../lib/sse-payload.ts'
import { FrameEvent } from '../../upstream/frame-event.ts'

/**
 * The native client reports a different model as high-risk activity, refetches its catalog after every response with a
 * different tag, and tells its user to upgrade the plan (Codex CLI 0.169).
 */
const ACCOUNT_HEADERS: ReadonlySet<string> = new Set([
  'openai-model',
  'x-openai-model',
  'x-models-etag',
  'x-codex-plan-type',
])
const PLAN = 'plan_type'
const KEYS = [Buffer.from('"headers"'), Buffer.from(`"${PLAN}"`)]

/** Whether `bytes` may contain account facts. Checked without parsing, so text quoting these keys matches too. */
export const mentionsAccountFacts = (bytes: Uint8Array): boolean => KEYS.some((key) => getPlace(bytes, key) !== -1)

/** Returns the same object when there is nothing to remove. */
export const withoutAccountFacts = (event: SseEvent): SseEvent => {
  if (event.type === null || event.type.endsWith('.delta') || !mentionsAccountFacts(event.bytes)) return event
  const source = eventJson(event.bytes)
  if (!isObject(source)) return event
  const cleaned = event.type.startsWith('codex.') ? withoutPlan(withoutHeaders(source)) : withoutFacts(source)
  return cleaned === source ? event : new FrameEvent(JSON.stringify(cleaned))
}

/**
 * For an event or its response object. Only the known places are searched, because a tool may have a parameter of the
 * same name.
 */
export const withoutFacts = (source: JsonObject): JsonObject => {
  const told = withoutHeaders(source)
  const { [PLAN]: plan, ...rest } = told
  let cleaned = plan === undefined ? told : rest
  for (const [name, clean] of NESTED) {
    const nested = cleaned[name]
    if (!isObject(nested)) continue
    const kept = clean(nested)
    if (kept !== nested) cleaned = { ...cleaned, [name]: kept }
  }
  return cleaned
}

const withoutHeaders = (source: JsonObject): JsonObject => {
  const all = Object.entries(getObject(source.headers))
  const kept = all.filter(([name]) => !ACCOUNT_HEADERS.has(name.toLowerCase()))
  return kept.length === all.length ? source : { ...source, headers: Object.fromEntries(kept) }
}

/** At any depth. */
const withoutPlan = (source: JsonObject): JsonObject =>
  JSON.stringify(source).includes(`"${PLAN}":`)
    ? JSON.parse(JSON.stringify(source, (name, value) => (name === PLAN ? undefined : value)))
    : source

const NESTED: readonly (readonly [string, (nested: JsonObject) => JsonObject])[] = [
  ['response', withoutFacts],
  ['error', withoutPlan],
]
