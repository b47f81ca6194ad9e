/** The values of JSON, counted in bytes. */
import { expect, test } from 'bun:test'
import { holdsMoreValuesThan } from '../../src/lib/json-values.ts'

const valuesOf = (json: string): number => {
  const bytes = new TextEncoder().encode(json)
  let limit = 0
  while (holdsMoreValuesThan(bytes, limit)) limit++
  return limit
}

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
  expect(valuesOf(json)).toBe(values)
})

test.each(['"unfinished,,,,', '"\\', '[[[[', ',,,,,'])('what is no JSON is no trouble: %s', (text) => {
  expect(holdsMoreValuesThan(new TextEncoder().encode(text), 3)).toBe(!text.startsWith('"'))
})
