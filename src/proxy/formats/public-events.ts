/** What clients of the public `/v1` API may see of an upstream stream; native clients see it raw. */
import { type FailedEventOptions, responseFailedEvent } from './failed-event.ts'
import { type ResponsesEvent, upstreamFailure } from './responses-event.ts'

/**
 * The bytes to send for one upstream event: unchanged, none (`null`), or a `response.failed` in place of a bare
 * `error`, which the public contract does not know (proxy surface §9.4). `parse` is called for `error` only. What has no
 * name is a comment, a `[DONE]`, after which SDKs read no further, or what they would break at.
 */
export function publicEvent(
  { type, bytes, parse }: { type: string | null; bytes: Uint8Array; parse: () => ResponsesEvent },
  opts: FailedEventOptions,
): Uint8Array | null {
  if (type === 'error') return responseFailedEvent(upstreamFailure(parse()), opts)
  return type === null || type.startsWith('codex.') ? null : bytes
}
