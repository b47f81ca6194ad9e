/** The socket side of the benchmark's upstream: the handshake, and responses as prebuilt frames. */
import { FrameReader, frameBytes, OPCODE } from './frames.ts'
import { machineNs } from './machine-clock.ts'
import { answerEvents, SHORT_ANSWER_EVENTS, STAMP_DIGITS, STAMP_KEY } from './payload.ts'
import type { UpstreamMode } from './upstream.ts'

/** What a session needs from its connection. */
type Wire = { send: (bytes: Uint8Array) => void; drop: () => void; end: () => void }

export type SocketSession = { push: (bytes: Buffer) => void; closed: () => void }

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const frames = answerEvents('resp_bench').map((event) => frameBytes(OPCODE.text, getData(event), false))
const shortAnswer = Buffer.concat([...frames.slice(0, SHORT_ANSWER_EVENTS - 4), ...frames.slice(-4)])
const head = Buffer.concat(frames.slice(0, 5))
const tail = Buffer.concat(frames.slice(-4))
const flood = Buffer.concat(Array.from({ length: 280 }, (_, n) => frames[10 + (n % 50)] ?? Buffer.alloc(0)))
const stamped = stampedFrame()

/** The header block of the 101 response. */
export function acceptance(requestHeaders: string, rateHeaders: readonly string[]): Uint8Array {
  const key = /\r\nsec-websocket-key: *(\S+)/i.exec(requestHeaders)?.[1] ?? ''
  const accept = new Bun.CryptoHasher('sha1').update(key + GUID).digest('base64')
  const lines = ['upgrade: websocket', 'connection: Upgrade', `sec-websocket-accept: ${accept}`, ...rateHeaders]
  return Buffer.from(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`)
}

/** Answers each text frame in the mode set at that time. Calls `onTurn` first. */
export function openSession(wire: Wire, mode: () => UpstreamMode, onTurn: () => void): SocketSession {
  let timer: Timer | undefined
  const reader = new FrameReader((opcode, payload) => {
    if (opcode === OPCODE.text) {
      onTurn()
      clearTimeout(timer)
      timer = answer(wire, mode())
    } else if (opcode === OPCODE.ping) wire.send(frameBytes(OPCODE.pong, payload, false))
    else if (opcode === OPCODE.close) {
      wire.send(frameBytes(OPCODE.close, payload.subarray(0, 2), false))
      wire.end()
    }
  })
  return { push: (bytes) => reader.push(bytes), closed: () => clearTimeout(timer) }
}

function answer(wire: Wire, mode: UpstreamMode): Timer | undefined {
  if (mode.kind === 'slow') return pace(wire, mode)
  if (mode.kind === 'flood') return floodAndDrop(wire, mode)
  wire.send(shortAnswer)
  return undefined
}

/** One event with its send time per interval. `events: 0`: until the peer closes. */
function pace(wire: Wire, { intervalMs, events }: Extract<UpstreamMode, { kind: 'slow' }>): Timer {
  wire.send(head)
  let sent = 0
  const timer = setInterval(() => {
    if (events === 0 || sent++ < events) return wire.send(stampNow())
    clearInterval(timer)
    wire.send(tail)
  }, intervalMs)
  return timer
}

/** More than the buffers of a peer that stopped reading, then closes the connection. */
function floodAndDrop(wire: Wire, { bytes, dropAfterMs }: Extract<UpstreamMode, { kind: 'flood' }>): Timer {
  wire.send(head)
  for (let sent = 0; sent < bytes; sent += flood.length) wire.send(flood)
  return setTimeout(wire.drop, dropAfterMs)
}

/** From the machine's clock, so that another process can compute the age. */
function stampNow(): Uint8Array {
  const frame = Buffer.from(stamped.bytes)
  frame.write(machineNs().toString().padStart(STAMP_DIGITS, '0'), stamped.at, 'latin1')
  return frame
}

function stampedFrame(): { bytes: Buffer; at: number } {
  const delta = JSON.parse(getData(answerEvents('resp_bench')[10] ?? new Uint8Array()).toString())
  const text = JSON.stringify({ ...delta, delta: `${STAMP_KEY}${'0'.repeat(STAMP_DIGITS)}` })
  const bytes = frameBytes(OPCODE.text, Buffer.from(text), false)
  return { bytes, at: bytes.indexOf(STAMP_KEY) + STAMP_KEY.length }
}

function getData(event: Uint8Array): Buffer {
  const bytes = Buffer.from(event)
  return bytes.subarray(bytes.indexOf('data: ') + 6, bytes.length - 2)
}
