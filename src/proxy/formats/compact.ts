/** Turns a unary compact request into a Responses request, and the response into a compact reply. */
import { AppError } from '../../errors.ts'
import { getObject, getObjects, getText, isObject, type JsonObject } from '../../lib/json.ts'
import { isKnownId } from './accepted-items.ts'
import { COMPACTION_TRIGGER, checkCompactionTrigger } from './compaction-trigger.ts'
import { clientItems, withParts } from './input-items.ts'
import { upstreamFailure } from './responses-event.ts'
import { type NormalisedRequest, normaliseResponses } from './v1-responses.ts'

interface CompactRequest extends NormalisedRequest {
  /** Messages of the request that the reply repeats before the compaction item. */
  retained: JsonObject[]
}

/** A compaction produces no answer, so members that shape one are dropped. */
const LEFT_OUT = ['text', 'tools', 'tool_choice', 'client_metadata'] as const

/**
 * The equivalent Responses request with a final `compaction_trigger`, for an upstream without a compact route. Throws
 * what `normaliseResponses` throws.
 */
export function compactToResponses(body: JsonObject): CompactRequest {
  const { body: normal, dropped } = normaliseResponses(body)
  const shaping = LEFT_OUT.filter((name) => body[name] != null)
  for (const name of LEFT_OUT) delete normal[name] // `normal` is our own copy
  const items = getObjects(normal.input)
  return {
    body: {
      ...normal,
      input: checkCompactionTrigger(items) ? items : [...items, COMPACTION_TRIGGER],
      parallel_tool_calls: false,
      include: ['reasoning.encrypted_content'],
    },
    dropped: [...dropped, ...shaping],
    retained: retainedMessages(body),
  }
}

/**
 * The retained messages, then exactly one compaction item. The client replays `output` as its whole history and cannot
 * read the compaction item, so without those messages the user's exact words would be lost. The upstream's compact
 * route also puts them first (recorded with client 0.118). Throws `upstream_error` when the response failed or holds no
 * compaction.
 */
export function compactFromResponse(response: unknown, retained: JsonObject[]): JsonObject {
  const source = getObject(response)
  if (source.status === 'failed') throw upstreamFailure(source)
  const item = getObjects(source.output).findLast((one) => one.type === 'compaction' && getText(one.encrypted_content))
  if (!item) throw new AppError('upstream_error', { message: 'ChatGPT did not compact the conversation.' })
  return {
    id: source.id,
    object: 'response.compaction',
    ...present(source, 'created_at', 'status'),
    output: [...retained, compactionItem(item)],
    ...present(source, 'usage', 'service_tier'),
  }
}

function compactionItem(item: JsonObject): JsonObject {
  return {
    type: 'compaction',
    ...(item.id != null && isKnownId(item) && { id: item.id }),
    encrypted_content: item.encrypted_content,
    ...present(item, 'status'),
  }
}

const RETAINED_ROLES: ReadonlySet<unknown> = new Set(['user', 'developer', 'system'])

function retainedMessages(body: JsonObject): JsonObject[] {
  return clientItems(body)
    .filter(isObject)
    .filter((item) => RETAINED_ROLES.has(item.role) && (item.type == null || item.type === 'message'))
    .map((item) => withParts({ ...item, type: 'message' }))
}

const present = (source: JsonObject, ...names: string[]): JsonObject =>
  Object.fromEntries(names.filter((name) => source[name] != null).map((name) => [name, source[name]]))
