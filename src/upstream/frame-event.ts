/** A text frame of a socket as the server-sent event it would be over HTTP. */
import { isObject, parseJson } from '../lib/json.ts'
import type { SseEvent } from '../lib/sse.ts'

const TYPE_PREFIX = Buffer.from('{"type":"')
const QUOTE = 34
const LF = 10
const CR = 13

export class FrameEvent implements SseEvent {
  readonly type: string | null
  readonly count = 1
  readonly #frame: Buffer
  #bytes: Uint8Array | null = null

  /** `frame`: the text as received, in UTF-8 if bytes. */
  constructor(frame: Buffer | string) {
    this.#frame = typeof frame === 'string' ? Buffer.from(frame) : frame
    this.type = typeOf(this.#frame)
  }

  get bytes(): Uint8Array {
    this.#bytes ??= asEvent(this.type, this.#frame)
    return this.#bytes
  }

  get length(): number {
    return this.bytes.length
  }

  get data(): string {
    return this.#frame.toString()
  }
}

/** The upstream writes `type` first and unescaped; anything else is parsed. */
const typeOf = (frame: Buffer): string | null => {
  const from = TYPE_PREFIX.length
  if (frame.length > from && frame.compare(TYPE_PREFIX, 0, from, 0, from) === 0) {
    const type = frame.toString('latin1', from, frame.indexOf(QUOTE, from))
    if (/^[\w.-]+$/.test(type)) return type
  }
  const value = parseJson(frame.toString())
  return isObject(value) && typeof value.type === 'string' ? value.type : null
}

/**
 * Framed as over HTTP. Uses its own memory, never the runtime's shared pool: code that joins events treats two in one
 * buffer as neighbours.
 */
const asEvent = (type: string | null, frame: Buffer): Uint8Array => {
  const isOneLine = !frame.includes(LF) && !frame.includes(CR)
  const data = isOneLine ? frame : Buffer.from(frame.toString().split(LINE_END).join('\ndata: '))
  const head = Buffer.from(type === null || LINE_END.test(type) ? 'data: ' : `event: ${type}\ndata: `)
  const bytes = new Uint8Array(head.length + data.length + 2).fill(LF, -2)
  bytes.set(head)
  bytes.set(data, head.length)
  return bytes
}

const LINE_END = /\r\n|\r|\n/
