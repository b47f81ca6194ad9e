/** Decodes the content encodings of a request body, with a limit on every stage: 6 KB of zstd can contain 200 MB. */
import type { Transform } from 'node:stream'
import zlib from 'node:zlib'

export class DecodeError extends Error {
  override readonly name = 'DecodeError'

  /** `bad_encoding`: the bytes do not match the header. `cause` is the decoder's error. */
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
  /** Called with the memory a long stage uses for input and output. A throw ends the decoding. */
  charge?: (bytes: number) => void
}

/**
 * Removes `contentEncoding` from right to left (RFC 9110 §8.4). Neither the body nor any stage may exceed `maxBytes`.
 * Throws `DecodeError`, except that truncated zstd returns the part there is (Bun 1.4.5), which then fails to parse.
 * Trailing bytes after zstd, deflate or brotli, and zeros after gzip, are ignored (Bun 1.4.5). Long work happens off
 * the event loop.
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

/** No real client stacks more, and each stage may cost up to `maxBytes` of work. */
const MAX_STAGES = 4
/**
 * Up to these sizes decoding inline takes 0.1 to 3.5 ms, while the thread pool adds 0.5 ms to every body (Bun 1.4.5).
 */
const INLINE_INPUT_BYTES = 256 * 1024
const INLINE_OUTPUT_BYTES = 1024 * 1024
/** Each piece is a round trip to the thread pool; at this size a body takes no longer than in one piece (Bun 1.4.5). */
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

/** The decoded body, or null when it is too large to decode on the event loop. */
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

/** Stops the decoder when the consumer stops. */
async function* pieces(body: Uint8Array, { coding, name }: Named): AsyncGenerator<Uint8Array, void> {
  const decoder = coding.stream({ chunkSize: PIECE_BYTES })
  decoder.end(body)
  try {
    yield* decoder
  } catch (error) {
    throw badEncoding(name, error)
  }
}

/** HTTP's "deflate" is the zlib format; some clients send the raw stream (RFC 9110 §8.4.1.2, RFC 1950 §2.2). */
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
