/** The recorder of an admitted request, if a capture may want it. */
import type { CaptureRecorder } from '../../model/captures/recorder.ts'
import type { Admission } from '../turn/admit.ts'
import type { Arrival } from '../turn/turn.ts'

/**
 * Live calls are not captured: what they send describes connections between the client and ChatGPT, and is never stored.
 */
export const captureOf = (
  { env, headers, client }: Arrival,
  { route, path, kind, relay, body, transport = 'http' }: Admission,
  { id, model }: { id: string; model: string | null },
): CaptureRecorder | null => {
  if (relay?.surface === 'live') return null
  const query = relay ? (/\?.*$/s.exec(path)?.[0] ?? '') : ''
  return env.captures.record({
    id,
    method: transport === 'websocket' ? 'WebSocket' : (relay?.plan.method ?? 'POST'),
    target: route + query,
    transport,
    requestKind: kind,
    model,
    keyId: client.key?.id ?? null,
    headers,
    body: body.hold.received ?? body.bytes,
  })
}
