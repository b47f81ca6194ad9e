/** Undoes the content encodings of a whole request body, with a cap on every stage: 6 KB of zstd can hold 200 MB. */
import type { Transform } from 'node:stream'
import zlib from 'node:zlib'

export class DecodeError extends Error {
  override readonly name = 'DecodeError'

  /** `bad_encoding`: the bytes are not what the header says. `cause` is the decoder's own error. */
  constructor(
    readonly kind: 'unsupported_encoding' | 'body_too_large' | 'bad_encoding',
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options)
  }
}

interface DecodeLimits {
  maxBytes: number
  /** Told what a long stage has in memory, its input and its output so far, as that grows. What it throws ends the work. */
  charge?: (bytes: number) => void
}

/**
 * `body` after removing `contentEncoding` from right to left (RFC 9110 §8.4). Neither the body nor any stage may exceed
 * `maxBytes`; exactly that many are allowed. Throws `DecodeError`, but of zstd that was cut short the runtime gives what there
 * is (measured): whoever parses it finds that it has no end. Foreign bytes behind the end of zstd, deflate or brotli are left
 * out, as zeros behind gzip are (measured). Work that takes long happens off the event loop.
 */
export async function decodeBody(
  body: Uint8Array,
  contentEncoding: string | null,
  { maxBytes, charge = () => {} }: DecodeLimits,
): Promise<Uint8Array> {
  if (body.length > maxBytes) throw tooLarge(maxBytes)
  let decoded = body
  for (const coding of codings(contentEncoding).reverse())
    decoded = await decodeStage(decoded, coding, { maxBytes, charge })
  return decoded
}

interface Coding {
  sync: (body: Uint8Array, options: { maxOutputLength: number }) => Uint8Array
  stream: (options: { chunkSize: number }) => Transform
}

const GZIP: Coding = { sync: zlib.gunzipSync, stream: zlib.createGunzip }
const ZLIB: Coding = { sync: zlib.inflateSync, stream: zlib.createInflate }
const RAW_DEFLATE: Coding = { sync: zlib.inflateRawSync, stream: zlib.createInflateRaw }
const BROTLI: Coding = { sync: zlib.brotliDecompressSync, stream: zlib.createBrotliDecompress }
const ZSTD: Coding = { sync: zlib.zstdDecompressSync, stream: zlib.createZstdDecompress }

const CODINGS = new Map<string, (body: Uint8Array) => Coding>([
  ['gzip', () => GZIP],
  ['x-gzip', () => GZIP],
  ['deflate', (body) => (looksLikeZlib(body) ? ZLIB : RAW_DEFLATE)],
  ['br', () => BROTLI],
  ['zstd', () => ZSTD],
])

/** Nobody stacks more in earnest, and each stage may cost a full `maxBytes` of work. */
const MAX_STAGES = 4
/** Up to these sizes decoding in place takes 0.1 to 3.5 ms; the thread pool adds 0.5 ms to every body. Measured. */
const INLINE_INPUT_BYTES = 256 * 1024
const INLINE_OUTPUT_BYTES = 1024 * 1024
/** Each piece is a trip to the thread pool; in pieces of this size a whole body takes as long as in one. Measured. */
const PIECE_BYTES = 1024 * 1024

function codings(header: string | null): string[] {
  if (header === null) return []
  const names = header.split(',').map((name) => name.trim().toLowerCase())
  const stages = names.filter((name) => name !== 'identity' && name !== '')
  if (stages.length > MAX_STAGES || stages.some((name) => !CODINGS.has(name))) {
    throw new DecodeError('unsupported_encoding', 'The content encoding is not supported.')
  }
  return stages
}

async function decodeStage(body: Uint8Array, name: string, limits: Required<DecodeLimits>): Promise<Uint8Array> {
  const coding = CODINGS.get(name)!(body)
  return decodeInline(body, { coding, name, maxBytes: limits.maxBytes }) ?? decodePieces(body, { coding, name }, limits)
}

/** The decoded body, or null when it is too big to hold up the event loop for. */
function decodeInline(body: Uint8Array, { coding, name, maxBytes }: Named & { maxBytes: number }): Uint8Array | null {
  if (body.length > INLINE_INPUT_BYTES) return null
  try {
    return coding.sync(body, { maxOutputLength: Math.min(maxBytes, INLINE_OUTPUT_BYTES) })
  } catch (error) {
    if (!isOverCap(error)) throw badEncoding(name, error)
    if (maxBytes > INLINE_OUTPUT_BYTES) return null
    throw tooLarge(maxBytes)
  }
}

async function decodePieces(
  body: Uint8Array,
  named: Named,
  { maxBytes, charge }: Required<DecodeLimits>,
): Promise<Uint8Array> {
  const parts: Uint8Array[] = []
  let total = 0
  for await (const piece of pieces(body, named)) {
    total += piece.length
    if (total > maxBytes) throw tooLarge(maxBytes)
    charge(body.length + total)
    parts.push(piece)
  }
  return Buffer.concat(parts)
}

interface Named {
  coding: Coding
  name: string
}

/** Whoever stops asking for more stops the decoder. */
async function* pieces(body: Uint8Array, { coding, name }: Named): AsyncGenerator<Uint8Array, void> {
  const decoder = coding.stream({ chunkSize: PIECE_BYTES })
  decoder.end(body)
  try {
    yield* decoder
  } catch (error) {
    throw badEncoding(name, error)
  }
}

/** HTTP's "deflate" is the zlib format; some clients send the bare stream (RFC 9110 §8.4.1.2, RFC 1950 §2.2). */
function looksLikeZlib(body: Uint8Array): boolean {
  return body.length >= 2 && (body[0]! & 0x0f) === 8 && ((body[0]! << 8) | body[1]!) % 31 === 0
}

function isOverCap(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE'
}

function tooLarge(maxBytes: number): DecodeError {
  return new DecodeError('body_too_large', `The body is larger than ${maxBytes} bytes.`)
}

function badEncoding(name: string, cause?: unknown): DecodeError {
  return new DecodeError('bad_encoding', `The body is not valid ${name}.`, { cause })
}
