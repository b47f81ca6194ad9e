/** An encrypted value decrypts only complete, in its context, with its key. */
import { expect, test } from 'bun:test'
import { seededRandom } from '../../src/lib/random.ts'
import { createSealer, fingerprint } from '../../src/lib/seal.ts'

const random = seededRandom(1)
const key = random.bytes(32)
const sealer = createSealer(key, random)

test.each(['', 'token', 'ünï ☃ \u0000', 'x'.repeat(10_000)])('decrypts what it encrypted (%#)', (text) => {
  const sealed = sealer.seal(text, 'accounts/token/a')
  expect(sealed).toMatch(/^v1\.[0-9a-f]{8}\.[\w-]{16}\.[\w-]+$/)
  expect(sealer.open(sealed, 'accounts/token/a')).toBe(text)
})

test('the same text is encrypted differently each time', () => {
  expect(sealer.seal('a', 'c')).not.toBe(sealer.seal('a', 'c'))
})

test('another context and any changed character are rejected', () => {
  const sealed = sealer.seal('secret', 'accounts/token/a')
  expect(() => sealer.open(sealed, 'accounts/token/b')).toThrow(expect.objectContaining({ kind: 'tampered' }))
  const bodyAt = sealed.lastIndexOf('.') + 1
  for (let at = 12; at < sealed.length - 1; at++) {
    if (at === bodyAt - 1) continue
    const changed = sealed.slice(0, at) + (sealed[at] === 'A' ? 'B' : 'A') + sealed.slice(at + 1)
    expect(() => sealer.open(changed, 'accounts/token/a')).toThrow(expect.objectContaining({ kind: 'tampered' }))
  }
})

test('another key is reported as such', () => {
  const other = createSealer(random.bytes(32), random)
  expect(() => other.open(sealer.seal('a', 'c'), 'c')).toThrow('encrypted with another key')
})

test.each([
  '',
  'plain text',
  'v1.0.0.0',
  'v2.00000000.AAAAAAAAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAA',
  'v1.00000000.AAAAAAAAAAAAAAAA.',
])('%p is not an encrypted value', (text) =>
  expect(() => sealer.open(text, 'c')).toThrow(expect.objectContaining({ kind: 'malformed' })),
)

test('a key of another length is rejected, and key ids distinguish keys', () => {
  expect(() => createSealer(new Uint8Array(16), random)).toThrow('32 bytes')
  expect(fingerprint(key)).toMatch(/^[0-9a-f]{16}$/)
  expect(fingerprint(key)).toBe(fingerprint(key.slice()))
  expect(fingerprint(key)).not.toBe(fingerprint(random.bytes(32)))
})

test('bytes: complete, in their context, with their key, and nothing else', () => {
  for (const bytes of [new Uint8Array(), new Uint8Array([0, 255, 128]), random.bytes(100_000)]) {
    const sealed = sealer.sealBytes(bytes, 'captures/a')
    expect(new Uint8Array(sealer.openBytes(sealed, 'captures/a'))).toEqual(bytes)
    expect(() => sealer.openBytes(sealed, 'captures/b')).toThrow(expect.objectContaining({ kind: 'tampered' }))
  }
  const sealed = sealer.sealBytes(Buffer.from('text'), 'c')
  for (let at = 4; at < sealed.length; at++) {
    const changed = sealed.slice()
    changed[at] = (changed[at] ?? 0) ^ 1
    expect(() => sealer.openBytes(changed, 'c')).toThrow(expect.objectContaining({ kind: 'tampered' }))
  }
  const other = createSealer(random.bytes(32), random)
  expect(() => other.openBytes(sealed, 'c')).toThrow('encrypted with another key')
  for (const short of [0, 4, 31])
    expect(() => sealer.openBytes(sealed.subarray(0, short), 'c')).toThrow(
      expect.objectContaining({ kind: 'malformed' }),
    )
})
