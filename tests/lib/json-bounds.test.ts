/** The depth of JSON and its values, counted in bytes. */
import { expect, test } from 'bun:test'
import { holdsMoreValuesThan, nestsDeeperThan } from '../../src/lib/json-bounds.ts'

/** The least limit the text keeps. */
const leastLimit = (exceeds: (bytes: Uint8Array, limit: number) => boolean, json: string): number => {
  const bytes = new TextEncoder().encode(json)
  let limit = 0
  while (exceeds(bytes, limit)) limit++
  return limit
}

test.each([
  ['7', 0],
  ['{}', 1],
  ['[[],[[]],[]]', 3],
  ['{"a":[{"b":1}],"c":2}', 3],
  ['"[[[{{{"', 0],
  ['["\\"[[", "\\\\", [1]]', 2],
  ['["\\\\\\"[", "x\\\\"]', 1],
  ['{"[":"{","é🙂[":"]"}', 1],
])('%s nests %d deep', (json, depth) => {
  expect(() => JSON.parse(json)).not.toThrow()
  expect(leastLimit(nestsDeeperThan, json)).toBe(depth)
})

test('a million brackets are counted quickly, and only up to the limit', () => {
  expect(nestsDeeperThan(new TextEncoder().encode('['.repeat(1_000_000)), 1000)).toBe(true)
  for (const text of ['"unfinished', '"\\', '"\\"', '["\\"[[', '"'])
    expect(nestsDeeperThan(new TextEncoder().encode(text), 1)).toBe(false)
})

test.each([
  ['7', 0],
  ['{}', 1],
  ['[1,2,3]', 3],
  ['{"a":[{"b":1}],"c":2}', 4],
  ['",[{,[{"', 0],
  ['["\\",,", "\\\\", [1]]', 4],
  ['["\\\\\\",", "x\\\\"]', 2],
  ['{",":",","é🙂[":"]"}', 2],
])('%s: %d commas and brackets that count', (json, values) => {
  expect(() => JSON.parse(json)).not.toThrow()
  expect(leastLimit(holdsMoreValuesThan, json)).toBe(values)
})

test.each(['"unfinished,,,,', '"\\', '[[[[', ',,,,,'])('invalid JSON is accepted: %s', (text) => {
  expect(holdsMoreValuesThan(new TextEncoder().encode(text), 3)).toBe(!text.startsWith('"'))
})
