/** What clients of the public `/v1` API may see of an upstream stream; native clients see it raw. */
import { type FailedEventOptions, responseFailedEvent } from './failed-event.ts'
import { type ResponsesEvent, upstreamFailure } from './responses-event.ts'

type PublicVerdict = 'pass' | 'drop' | 'fail'

/**
 * Decided from the event's name alone, so that a passing event is never parsed. What has none is a comment, a `[DONE]`, after
 * which SDKs read no further, or what they would break at.
 */
const publicVerdict = (type: string | null): PublicVerdict =>
  type === 'error' ? 'fail' : type === null || type.startsWith('codex.') ? 'drop' : 'pass'

/**
 * The bytes to send for one upstream event: unchanged, none (`null`), or a `response.failed` in place of a bare
 * `error`, which the public contract does not know (proxy surface §9.4). `parse` is called for `error` only.
 */
export function publicEvent(
  frame: { type: string | null; bytes: Uint8Array; parse: () => ResponsesEvent },
  opts: FailedEventOptions,
): Uint8Array | null {
  const verdict = publicVerdict(frame.type)
  if (verdict === 'pass') return frame.bytes
  return verdict === 'drop' ? null : responseFailedEvent(upstreamFailure(frame.parse()), opts)
}
