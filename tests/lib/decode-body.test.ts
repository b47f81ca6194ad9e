/** Stacked encodings are decoded in order, bombs stop at the limit, and broken bodies differ from unknown encodings. */
import { describe, expect, test } from 'bun:test'
import zlib from 'node:zlib'
import { DecodeError, decodeBody } from '../../src/lib/decode-body.ts'

const MIB = 1024 * 1024
const text = Buffer.from('{"input":"hello hello hello"}')

const encoders: Record<string, (body: Uint8Array) => Buffer> = {
  gzip: zlib.gzipSync,
  'X-GZip': zlib.gzipSync,
  deflate: zlib.deflateSync,
  br: zlib.brotliCompressSync,
  zstd: zlib.zstdCompressSync,
}

const getKind = async (decoding: Promise<Uint8Array>) => {
  const error = await decoding.then(
    () => null,
    (reason) => reason,
  )
  return error instanceof DecodeError ? error.kind : error
}

describe.each(Object.entries(encoders))('%s', (name, encode) => {
  const big = Buffer.alloc(3 * MIB, 'abcdefgh')

  test('small and large bodies are decoded completely', async () => {
    expect(Buffer.from(await decodeBody(encode(text), name, { maxBytes: MIB }))).toEqual(text)
    expect(Buffer.from(await decodeBody(encode(big), name, { maxBytes: 4 * MIB })).equals(big)).toBe(true)
  })

  test('the limit is exact for small and large bodies', async () => {
    expect(await decodeBody(encode(Buffer.alloc(500)), name, { maxBytes: 500 })).toHaveLength(500)
    expect(await getKind(decodeBody(encode(Buffer.alloc(501)), name, { maxBytes: 500 }))).toBe('body_too_large')
    expect(await decodeBody(encode(big), name, { maxBytes: big.length })).toHaveLength(big.length)
    expect(await getKind(decodeBody(encode(big), name, { maxBytes: big.length - 1 }))).toBe('body_too_large')
  })

  test('unrelated bytes, and truncated ones except for zstd, are an invalid encoding', async () => {
    const whole = encode(text)
    for (const cut of name === 'zstd' ? [] : [1, 4, whole.length - 5, whole.length])
      expect(await getKind(decodeBody(whole.subarray(0, -cut), name, { maxBytes: MIB }))).toBe('bad_encoding')
    expect(await getKind(decodeBody(Buffer.from('"plain JSON", not compressed'), name, { maxBytes: MIB }))).toBe(
      'bad_encoding',
    )
  })
})

test('no encoding and identity pass the body on', async () => {
  for (const header of [null, '', 'identity', ' Identity , identity'])
    expect(await decodeBody(text, header, { maxBytes: 100 })).toBe(text)
  expect(await getKind(decodeBody(text, null, { maxBytes: text.length - 1 }))).toBe('body_too_large')
})

test('stacked encodings are decoded from right to left', async () => {
  const stacked = zlib.zstdCompressSync(zlib.gzipSync(text))
  expect(Buffer.from(await decodeBody(stacked, 'gzip, identity, zstd', { maxBytes: MIB }))).toEqual(text)
  expect(await getKind(decodeBody(stacked, 'zstd, gzip', { maxBytes: MIB }))).toBe('bad_encoding')
})

test('every stage is limited, not only the last', async () => {
  const bomb = zlib.gzipSync(zlib.gzipSync(Buffer.alloc(30 * MIB)))
  expect(bomb.length).toBeLessThan(10_000)
  expect(await getKind(decodeBody(bomb, 'gzip, gzip', { maxBytes: 8 * MIB }))).toBe('body_too_large')
  const inner = zlib.gzipSync(Buffer.alloc(10 * MIB), { level: 0 })
  expect(await getKind(decodeBody(zlib.zstdCompressSync(inner), 'gzip, zstd', { maxBytes: MIB }))).toBe(
    'body_too_large',
  )
})

test('an unknown encoding and too many stages are rejected before decoding', async () => {
  expect(await getKind(decodeBody(text, 'compress', { maxBytes: MIB }))).toBe('unsupported_encoding')
  expect(await getKind(decodeBody(text, 'gzip, snappy', { maxBytes: MIB }))).toBe('unsupported_encoding')
  expect(await getKind(decodeBody(text, 'gzip, gzip, gzip, gzip, gzip', { maxBytes: MIB }))).toBe(
    'unsupported_encoding',
  )
})

test('deflate also reads the raw stream some clients send', async () => {
  expect(Buffer.from(await decodeBody(zlib.deflateRawSync(text), 'deflate', { maxBytes: MIB }))).toEqual(text)
})
