/** WebSocket frames as bytes (RFC 6455 §5.2), for the raw client and the raw upstream: no fragments, no extensions. */

export const OPCODE = { text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

const FIN = 0x80
const MASKED = 0x80

/** A whole frame. The mask of a masked one is zero, which leaves the payload unchanged. */
export function frameBytes(opcode: number, payload: Uint8Array, isMasked: boolean): Buffer {
  const { length } = payload
  const head =
    length < 126 ? [length] : length < 65_536 ? [126, length >> 8, length & 255] : [127, ...bigEndian(length)]
  head[0] = (head[0] ?? 0) | (isMasked ? MASKED : 0)
  return Buffer.concat([Buffer.from([FIN | opcode, ...head, ...(isMasked ? [0, 0, 0, 0] : [])]), payload])
}

/** Splits the input into frames and calls `onFrame` with each. The payload is valid during the call only. */
export class FrameReader {
  #rest: Buffer | null = null
  readonly #onFrame: (opcode: number, payload: Buffer) => void

  constructor(onFrame: (opcode: number, payload: Buffer) => void) {
    this.#onFrame = onFrame
  }

  push(chunk: Buffer): void {
    const bytes = this.#rest ? Buffer.concat([this.#rest, chunk]) : chunk
    let from = 0
    for (let end = endOfFrame(bytes, from); end !== -1 && end <= bytes.length; end = endOfFrame(bytes, from)) {
      this.#onFrame((bytes[from] ?? 0) & 15, getPayload(bytes.subarray(from, end)))
      from = end
    }
    this.#rest = from === bytes.length ? null : Buffer.from(bytes.subarray(from))
  }
}

/** -1 while the frame's header is incomplete. */
function endOfFrame(bytes: Buffer, from: number): number {
  if (bytes.length < from + 2) return -1
  const head = headLength(bytes[from + 1] ?? 0)
  return bytes.length < from + head ? -1 : from + head + payloadLength(bytes, from)
}

function headLength(second: number): number {
  const short = second & 127
  return 2 + (short === 126 ? 2 : short === 127 ? 8 : 0) + (second & MASKED ? 4 : 0)
}

function payloadLength(bytes: Buffer, from: number): number {
  const short = (bytes[from + 1] ?? 0) & 127
  if (short === 126) return bytes.readUInt16BE(from + 2)
  return short === 127 ? Number(bytes.readBigUInt64BE(from + 2)) : short
}

/** Unmasks in place. */
function getPayload(frame: Buffer): Buffer {
  const second = frame[1] ?? 0
  const head = headLength(second)
  const payload = frame.subarray(head)
  if (!(second & MASKED)) return payload
  const mask = frame.subarray(head - 4, head)
  for (let n = 0; n < payload.length; n++) payload[n] = (payload[n] ?? 0) ^ (mask[n & 3] ?? 0)
  return payload
}

function bigEndian(length: number): number[] {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(BigInt(length))
  return [...bytes]
}
