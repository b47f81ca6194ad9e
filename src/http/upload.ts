/** Reads a request body that may arrive slowly: only a client that stops sending is cut off. */
import type { Bindings } from '../bindings.ts'
import { AppError } from '../errors.ts'

/** A client that sends nothing for this long has stopped. */
const SILENT_SECONDS = 30
/**
 * Up to here the runtime collects the body by itself: in pieces a body of this size costs 15 to 40 µs more (measured). It
 * reports no progress then, so the whole body gets 30 s and three more for each KiB.
 */
const PLAIN_READ_BYTES = 64 * 1024
const SECONDS_PER_KIB = 3

export type UploadEnv = Pick<Bindings, 'clock' | 'pulse' | 'server'>

interface Upload {
  env: UploadEnv
  request: Request
  /** Called with the size so far as the body arrives. What it throws ends the upload. */
  arrived: (bytes: number) => void
}

/**
 * The whole body. The runtime would cut off a body slower than 16 KiB/s at the end of its idle limit, so that limit is lifted;
 * the caller sets it again. Throws `upload_timeout`, `invalid_request_error` for a body that ends early, and what `arrived`
 * throws.
 */
export const readUpload = async (upload: Upload): Promise<Uint8Array<ArrayBuffer>> => {
  const { env, request, arrived } = upload
  const declared = Number(request.headers.get('content-length') ?? Number.NaN)
  if (!(declared <= PLAIN_READ_BYTES)) return readInPieces(upload, declared)
  env.server?.timeout(request, SILENT_SECONDS + Math.ceil(declared / 1024) * SECONDS_PER_KIB)
  // The runtime enforces the declared length: a body that ends early rejects here.
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
    reader.cancel().catch(() => {}) // it has ended already
    body.discard()
    throw cause instanceof AppError ? cause : endedEarly(cause)
  } finally {
    silence.stop()
  }
  if (silence.isOver) throw new AppError('upload_timeout')
  return body.bytes()
}

/** Cancels the reader, which ends its pending read, once nothing has been heard for too long. */
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
      reader.cancel().catch(() => {}) // it has ended already
    },
    stop: () => pulse.unwatch(watch),
  }
  pulse.watch(watch)
  return watch
}

/** A declared size is reserved only once this much has arrived. The system provides the memory as it is written (measured). */
const FIRST_BYTES = 1024 * 1024

/** One buffer and not a list of pieces: to join them, a large body would be in memory twice. */
class BodyBuffer {
  readonly #declared: number
  #buffer: ArrayBuffer
  #length = 0

  /** `declared`: NaN where the client did not say. */
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

  /** Frees the memory now and not with the next collection. */
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
