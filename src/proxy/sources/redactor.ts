/** Replaces the API key of a source in whatever the source sends back, also where it is split over chunks. */
import { REDACTED, redactSecret, spellings } from '../../lib/redact-secret.ts'
import { encodeUtf8 } from '../../lib/utf8.ts'

export interface Redactor {
  text(text: string): string
  /** For one stream. */
  stream(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array>
}

/** `key` null: nothing to remove. */
export const getRedactor = (key: string | null): Redactor => {
  const needles = spellings(key).map((text) => Buffer.from(text))
  return {
    text: (text) => redactSecret(text, key),
    stream: (body) => (needles.length === 0 ? body : redactStream(body, needles)),
  }
}

const redactStream = (body: ReadableStream<Uint8Array>, needles: readonly Buffer[]): ReadableStream<Uint8Array> => {
  const reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader()
  let held = Buffer.alloc(0)
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        for (;;) {
          const { done, value } = await reader.read()
          const { pieces, rest } = replaced(done ? held : Buffer.concat([held, value]), needles, done)
          held = rest
          for (const piece of pieces) if (piece.length > 0) controller.enqueue(new Uint8Array(piece))
          if (done) return controller.close()
          if (pieces.some(({ length }) => length > 0)) return
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}

const BLOT_BYTES = encodeUtf8(REDACTED)

/** `rest` may be the beginning of a key and is held back until more arrives. */
const replaced = (
  bytes: Buffer<ArrayBuffer>,
  needles: readonly Buffer[],
  isLast: boolean,
): { pieces: Uint8Array[]; rest: Buffer<ArrayBuffer> } => {
  const pieces: Uint8Array[] = []
  let from = 0
  for (let found = getNext(bytes, needles, from); found; found = getNext(bytes, needles, from)) {
    pieces.push(bytes.subarray(from, found.at), BLOT_BYTES)
    from = found.at + found.length
  }
  const end = isLast ? bytes.length : bytes.length - countHeldBack(bytes.subarray(from), needles)
  pieces.push(bytes.subarray(from, end))
  return { pieces, rest: Buffer.from(bytes.subarray(end)) }
}

const getNext = (bytes: Buffer, needles: readonly Buffer[], from: number): { at: number; length: number } | null => {
  let first: { at: number; length: number } | null = null
  for (const needle of needles) {
    const at = bytes.indexOf(needle, from)
    if (at !== -1 && (first === null || at < first.at)) first = { at, length: needle.length }
  }
  return first
}

/** Length of the longest end that is the beginning of a key. */
const countHeldBack = (bytes: Buffer, needles: readonly Buffer[]): number => {
  let most = 0
  for (const needle of needles)
    for (let length = Math.min(needle.length - 1, bytes.length); length > most; length--)
      if (bytes.subarray(bytes.length - length).equals(needle.subarray(0, length))) most = length
  return most
}
