/**
 * Forwards socket events to the object passed at the upgrade. hono's own helper supports neither `drain` nor headers
 * for the 101.
 */

/** The `data` of an upgrade. */
export interface SocketPeer {
  opened(ws: Bun.ServerWebSocket<SocketPeer>): void
  received(data: string | Buffer): void
  /** The client has read what was queued. */
  drained(): void
  /** The client sent a ping. The runtime answers it, whether or not the client reads. */
  pinged(payloadBytes: number): void
  /** The client sent a pong, so it is not in the middle of a frame. */
  ponged(payloadBytes: number): void
  closed(code: number, reason: string): void
  /** One of the above threw. */
  failed(err: unknown): void
}

/** Per frame; above it the runtime closes with 1009 (decisions §3 "Turns on a socket"). */
const MAX_FRAME_BYTES = 128 * 1024 * 1024
/** Queue limit for a client that does not read; sessions stop sending long before. */
const MAX_QUEUED_BYTES = 16 * 1024 * 1024
/** The runtime pings before this, so only dead connections are closed. */
const DEAD_AFTER_SECONDS = 120

export const websocket: Bun.WebSocketHandler<SocketPeer> = {
  maxPayloadLength: MAX_FRAME_BYTES,
  backpressureLimit: MAX_QUEUED_BYTES,
  idleTimeout: DEAD_AFTER_SECONDS,
  perMessageDeflate: false,
  open: (ws) => ws.data.opened(ws),
  message: (ws, data) => ws.data.received(data),
  drain: (ws) => ws.data.drained(),
  ping: (ws, payload) => ws.data.pinged(payload.length),
  pong: (ws, payload) => ws.data.ponged(payload.length),
  close: (ws, code, reason) => ws.data.closed(code, reason),
  // Without it a throw above would end the process (Bun 1.4.5).
  error: (err, ws) => ws.data.failed(err),
}
