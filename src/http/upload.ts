/** Reads a request body that may arrive slowly; only a client that stops sending is cut off. */
import type { Bindings } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'

/** A client that sends nothing for this long has stalled. */
const SILENT_SECONDS = 30
/**
 * Up to this size the runtime collects the body itself; reading in pieces costs 15 to 40 µs more (Bun 1.4.5). As it
 * reports no progress, the whole body gets 30 s plus three per KiB.
 */
const PLAIN_READ_BYTES = 64 * 1024
const SECONDS_PER_KIB = 3

export type UploadEnv = Pick<Bindings, 'clock' | 'pulse' | 'server'>

interface Upload {
  env: UploadEnv
  request: Request
  /** Called with the size so far. A throw ends the upload. */
  arrived: (bytes: number) => void
}

/**
 * Reads the whole body. Lifts the connection's idle limit, which would cut off bodies slower than 16 KiB/s; the caller
 * restores it. Throws `upload_timeout`, `invalid_request_error` for a body that ends early, and what `arrived` throws.
 */
export const readUpload = async (upload: Upload): Promise<Uint8Array<ArrayBuffer>> => {
  const { env, request, arrived } = upload
  const declared = Number(request.headers.get('content-length') ?? Number.NaN)
  if (!(declared <= PLAIN_READ_BYTES)) return readInPieces(upload, declared)
  env.server?.timeout(request, SILENT_SECONDS + Math.ceil(declared / 1024) * SECONDS_PER_KIB)
  // The runtime enforces the declared length: a short body rejects here.
  const bytes = await request.bytes().catch(endedEarly)
  arrived(bytes.length)
  return bytes
}

const readInPieces = async ({ env, request, arrived }: Upload, declared: number): Promise<Uint8Array<ArrayBuffer>> => {
  env.server?.timeout(request, 0)
  const reader = request.body?.getReader()
  if (!reader) return new Uint8Array()
  const silence = watchSilence(env, reader)
  const body = new BodyBuffer(declared)
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      silence.heard()
      arrived(body.length + part.value.length)
      body.append(part.value)
    }
  } catch (cause) {
    reader.cancel().catch(() => {}) // it may have ended already
    body.discard()
    throw cause instanceof AppError ? cause : endedEarly(cause)
  } finally {
    silence.stop()
  }
  if (silence.isOver) throw new AppError('upload_timeout')
  return body.bytes()
}

/** After too long a silence, cancels the reader, which ends its pending read. */
const watchSilence = ({ clock, pulse }: UploadEnv, reader: ReadableStreamDefaultReader<Uint8Array>) => {
  let heardAt = clock.monotonic()
  const watch = {
    isOver: false,
    heard: () => {
      heardAt = clock.monotonic()
    },
    beat: (now: number) => {
      if (now - heardAt < SILENT_SECONDS * 1000 || watch.isOver) return
      watch.isOver = true
      reader.cancel().catch(() => {}) // it may have ended already
    },
    stop: () => pulse.unwatch(watch),
  }
  pulse.watch(watch)
  return watch
}

/**
 * The declared size is reserved only after this much has arrived. The system allocates memory as it is written (Bun
 * 1.4.5).
 */
const FIRST_BYTES = 1024 * 1024

/** One buffer instead of a list of chunks: joining them would keep a large body in memory twice. */
class BodyBuffer {
  readonly #declared: number
  #buffer: ArrayBuffer
  #length = 0

  /** `declared`: NaN when unknown. */
  constructor(declared: number) {
    this.#declared = declared || 0
    this.#buffer = new ArrayBuffer(Math.min(this.#declared || FIRST_BYTES, FIRST_BYTES))
  }

  get length(): number {
    return this.#length
  }

  append(part: Uint8Array): void {
    const needed = this.#length + part.length
    if (needed > this.#buffer.byteLength)
      this.#buffer = this.#buffer.transfer(Math.max(needed, this.#declared || this.#buffer.byteLength * 2))
    new Uint8Array(this.#buffer, this.#length).set(part)
    this.#length = needed
  }

  /** Frees the memory immediately instead of at the next garbage collection. */
  discard(): void {
    this.#buffer = this.#buffer.transfer(0)
    this.#length = 0
  }

  bytes(): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#buffer, 0, this.#length)
  }
}

const endedEarly = (cause: unknown): never => {
  throw new AppError('invalid_request_error', { message: 'The request body ended before it was complete.', cause })
}
