/** The unary compact call said as a Responses call, and its result said as a compact reply. */
import { AppError } from '../../errors.ts'
import { isObject, type JsonObject, objectOf, objectsOf, textOf } from '../../lib/json.ts'
import { COMPACTION_TRIGGER, checkCompactionTrigger } from './compaction-trigger.ts'
import { clientItems, withParts } from './input-items.ts'
import { upstreamFailure } from './responses-event.ts'
import { isKnownId } from './taken-back.ts'
import { type NormalisedRequest, normaliseResponses } from './v1-responses.ts'

interface CompactRequest extends NormalisedRequest {
  /** Messages of the request that live on in the reply, before the compaction item. */
  retained: JsonObject[]
}

/** A compaction writes no answer, so what shapes an answer is left out (proxy surface §3.4). */
const LEFT_OUT = ['text', 'tools', 'tool_choice', 'client_metadata'] as const

/**
 * The Responses request with a terminal `compaction_trigger` that stands for a compact request, used where the
 * upstream has no compact route. Throws what `normaliseResponses` throws.
 */
export function compactToResponses(body: JsonObject): CompactRequest {
  const { body: normal, dropped } = normaliseResponses(body)
  const shaping = LEFT_OUT.filter((name) => body[name] != null)
  for (const name of LEFT_OUT) delete normal[name] // ours: normaliseResponses made it
  const items = objectsOf(normal.input)
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
 * The compact reply for a finished response: the retained messages, then exactly one compaction item. The summary
 * inside the item is unreadable to the client, which replays `output` as its whole history: the service's own compact
 * route answers with those messages in front (recorded with client 0.118), and a reply of the item alone would lose
 * what the user said word for word. Throws `upstream_error` when the response failed or holds no compaction.
 */
export function compactFromResponse(response: unknown, retained: JsonObject[]): JsonObject {
  const source = objectOf(response)
  if (source.status === 'failed') throw upstreamFailure(source)
  const item = objectsOf(source.output).findLast((one) => one.type === 'compaction' && textOf(one.encrypted_content))
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
