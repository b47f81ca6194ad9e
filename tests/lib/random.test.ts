/** Identifiers and tokens have the documented format; a seed repeats its sequence. */
import { describe, expect, test } from 'bun:test'
import { seededRandom, systemRandom } from '../../src/lib/random.ts'

describe.each([
  ['systemRandom', systemRandom],
  ['seededRandom', seededRandom(1)],
])('%s', (_name, random) => {
  test('ids are a prefix and 22 letters and digits, and differ', () => {
    const ids = Array.from({ length: 2000 }, () => random.id('acc'))
    for (const id of ids) expect(id).toMatch(/^acc_[0-9A-Za-z]{22}$/)
    expect(new Set(ids).size).toBe(2000)
    const letters = new Set(ids.flatMap((id) => [...id.slice(4)]))
    expect(letters.size).toBe(62)
  })

  test('tokens are base64url of the requested number of bytes', () => {
    expect(random.token(32)).toMatch(/^[\w-]{43}$/)
    expect(Buffer.from(random.token(5), 'base64url')).toHaveLength(5)
    expect(random.bytes(7)).toHaveLength(7)
  })

  test('floats spread evenly over [0, 1)', () => {
    const floats = Array.from({ length: 4000 }, () => random.float())
    const mean = floats.reduce((sum, float) => sum + float, 0) / floats.length
    expect(Math.min(...floats)).toBeGreaterThanOrEqual(0)
    expect(Math.max(...floats)).toBeLessThan(1)
    expect(mean).toBeCloseTo(0.5, 1)
  })
})

test('the same seed gives the same sequence, another seed another', () => {
  const draw = (seed: number) => {
    const random = seededRandom(seed)
    return [random.float(), random.id('x'), random.token(9), ...random.bytes(5)]
  }
  expect(draw(7)).toEqual(draw(7))
  expect(draw(7)).not.toEqual(draw(8))
})
