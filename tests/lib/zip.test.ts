/** ZIP archives: those of common tools are read; damaged, oversized and encrypted ones are rejected with the reason. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { isZip, readZip, type ZipBudget, ZipError, type ZipLimits } from '../../src/lib/zip.ts'
import { getZip } from '../support/zip.ts'

const LIMITS = { bytes: 1000, wants: () => true }
const getBudget = (more: Partial<ZipBudget> = {}): ZipBudget => ({ files: 10, bytes: 100_000, ...more })
const read = (bytes: Uint8Array, more: Partial<ZipLimits> = {}) =>
  readZip(bytes, { ...LIMITS, budget: getBudget(), ...more })

describe('reading', () => {
  test('stored and deflated files in directory order, without folders', async () => {
    const bytes = getZip([
      { name: 'a/', text: '' },
      { name: 'a/auth.json', text: '{"a":1}'.repeat(50) },
      { name: 'ü.json', text: 'plain', method: 'stored' },
    ])
    expect(isZip(bytes)).toBe(true)
    expect(await read(bytes)).toEqual([
      { name: 'a/auth.json', text: '{"a":1}'.repeat(50) },
      { name: 'ü.json', text: 'plain' },
    ])
  })

  test('only the requested files, even if all would be too many', async () => {
    const bytes = getZip(Array.from({ length: 12 }, (_, n) => ({ name: n === 3 ? 'x.json' : `${n}.txt`, text: 'y' })))
    expect(await read(bytes, { wants: (name) => name.endsWith('.json') })).toEqual([{ name: 'x.json', text: 'y' }])
    expect(read(bytes)).rejects.toThrow('contains more than 10 files')
  })

  test('an archive with a comment, and an empty one', async () => {
    expect(await read(getZip([{ name: 'a', text: 'b' }], 'a comment'))).toEqual([{ name: 'a', text: 'b' }])
    expect(await read(getZip([]))).toEqual([])
    expect(isZip(getZip([]))).toBe(true)
    expect(isZip(new TextEncoder().encode('{"tokens":{}}'))).toBe(false)
  })
})

describe('refusing', () => {
  test('a file that unpacks to more than its limit, whatever size it states', async () => {
    const bomb = getZip([{ name: 'bomb.json', text: '0'.repeat(5_000_000) }])
    expect(bomb.length).toBeLessThan(10_000)
    expect(read(bomb, { bytes: 100_000 })).rejects.toThrow('contains a file that is too large (bomb.json)')
    const stored = getZip([{ name: 'big', text: '0'.repeat(2000), method: 'stored' }])
    expect(read(stored)).rejects.toThrow('contains a file that is too large (big)')
  })

  test('more files or bytes than a limit shared by several archives', async () => {
    const bytes = getZip(['a', 'b', 'c'].map((name) => ({ name, text: 'x'.repeat(900) })))
    const budget = getBudget({ files: 5 })
    expect(await read(bytes, { budget })).toHaveLength(3)
    expect(budget).toEqual({ files: 2, bytes: 100_000 - 2700 })
    expect(read(bytes, { budget })).rejects.toThrow('contains more than 2 files')
    expect(read(bytes, { budget: getBudget({ bytes: 1500 }) })).rejects.toThrow('unpacks to more than is allowed')
  })

  test('unreadable files count towards the limit', async () => {
    const budget = getBudget({ bytes: 1500 })
    const bomb = getZip([{ name: 'bomb', text: '0'.repeat(5000) }])
    await read(bomb, { budget }).catch(() => {})
    await read(bomb, { budget }).catch(() => {})
    expect(read(getZip([{ name: 'a', text: 'b' }]), { budget })).rejects.toThrow('unpacks to more than is allowed')
  })

  test('entries that share their packed bytes', async () => {
    const bytes = getZip([
      { name: 'a', text: 'x'.repeat(900) },
      { name: 'b', text: 'y'.repeat(900) },
    ])
    const view = new DataView(bytes.buffer)
    const second = Buffer.from(bytes).lastIndexOf(Buffer.from('PK\x01\x02', 'latin1'))
    view.setUint32(second + 42, 0, true)
    expect(read(bytes)).rejects.toThrow('is damaged')
  })

  test('an encrypted archive', () => {
    const bytes = getZip([{ name: 'a', text: 'b', flags: 1 }])
    expect(read(bytes)).rejects.toThrow('is encrypted (a)')
  })

  test('a truncated archive', () => {
    const bytes = getZip([{ name: 'a', text: 'b' }])
    expect(read(bytes.subarray(0, bytes.length - 10))).rejects.toThrow('is not a complete ZIP archive')
  })

  test('any other content: read, or rejected with a reason', async () => {
    const good = getZip([{ name: 'auth.json', text: '{"tokens":{}}'.repeat(9) }])
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat({ max: good.length - 1 }), fc.nat({ max: 255 })), { minLength: 1, maxLength: 6 }),
        async (changes) => {
          const bytes = good.slice()
          for (const [at, value] of changes) bytes[at] = value
          await read(bytes).catch((err: unknown) => expect(err).toBeInstanceOf(ZipError))
        },
      ),
      { numRuns: 300, seed: 11 },
    )
  })
})
