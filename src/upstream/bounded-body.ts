/** Reads upstream bodies up to a limit, and is the only place that decompresses them (`dial.ts` disables it in fetch). */
import { AppError } from '../errors.ts'
import type { Clock } from '../lib/clock.ts'
import { DecodeError, decodeBody } from '../lib/decode-body.ts'
import { decodeUtf8 } from '../lib/utf8.ts'

const MIB = 1024 * 1024
/** Far longer than any ChatGPT error. */
const MAX_ERROR_BYTES = 64 * 1024
const MAX_ERROR_MS = 5000

/**
 * The first 64 KiB of an error body as text; empty if compressed. Never rejects: if the body breaks off, the part
 * received is enough. With a `clock` the wait is limited to 5 s; otherwise the caller's signal ends it.
 */
export const errorText = async (response: Response, clock?: Pick<Clock, 'after'>): Promise<string> => {
  if (isCompressed(response)) {
    void response.body?.cancel().catch(() => {}) // an unread body keeps its connection (Bun 1.4.5)
    return ''
  }
  const body = new FirstBytes(MAX_ERROR_BYTES)
  const cancel = clock?.after(MAX_ERROR_MS, () => body.stop())
  await body.readFrom(response).catch(() => {})
  cancel?.()
  return decodeUtf8(body.bytes)
}

/** The whole body as text, at most `maxBytes` also after decompression. Throws `upstream_error`, and what reading throws. */
export const wholeText = async (response: Response, maxBytes: number): Promise<string> => {
  const body = new FirstBytes(maxBytes)
  if (!(await body.readFrom(response))) throw tooLarge(maxBytes)
  if (!isCompressed(response)) return decodeUtf8(body.bytes)
  try {
    return decodeUtf8(await decodeBody(body.bytes, response.headers.get('content-encoding'), { maxBytes }))
  } catch (cause) {
    if (cause instanceof DecodeError && cause.kind === 'body_too_large') throw tooLarge(maxBytes)
    throw new AppError('upstream_error', { message: 'The response from ChatGPT could not be decoded.', cause })
  }
}

/** Whether it was sent compressed, although every request asks for no encoding. */
export const isCompressed = ({ headers }: Pick<Response, 'headers'>): boolean => {
  const encoding = headers.get('content-encoding')?.trim().toLowerCase() ?? ''
  return encoding !== '' && encoding !== 'identity'
}

const tooLarge = (maxBytes: number): AppError =>
  new AppError('upstream_error', { message: `The response from ChatGPT is larger than ${maxBytes / MIB} MiB.` })

class FirstBytes {
  readonly #max: number
  readonly #parts: Uint8Array[] = []
  #length = 0
  #reader: ReadableStreamDefaultReader<Uint8Array> | null = null

  constructor(max: number) {
    this.#max = max
  }

  /** What was received, up to the limit. */
  get bytes(): Uint8Array {
    return Buffer.concat(this.#parts, Math.min(this.#length, this.#max))
  }

  /** False when the body exceeds the limit; the rest is cancelled. */
  async readFrom({ body }: Response): Promise<boolean> {
    if (!body) return true
    const reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader()
    this.#reader = reader
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      this.#parts.push(chunk.value)
      this.#length += chunk.value.length
      if (this.#length <= this.#max) continue
      this.stop()
      return false
    }
    return true
  }

  /** Cancels the rest, ending a pending read. */
  stop(): void {
    void this.#reader?.cancel().catch(() => {}) // it may be closed already
  }
}
