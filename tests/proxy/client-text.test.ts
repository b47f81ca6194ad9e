/** Serializing a parsed body keeps the client's text if that would change it. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { getClientTexts, writeJson } from '../../src/proxy/ingress/rewrite.ts'
import { holds } from '../support/property.ts'

const rewritten = (text: string, change: (json: Record<string, unknown>) => unknown = (json) => ({ ...json })) => {
  const bytes = new TextEncoder().encode(text)
  const json = JSON.parse(text)
  return writeJson(change(json), getClientTexts(bytes, json))
}

test.each([
  '{"a":{"b":1,"2":2}}',
  '{"a":[{"x":[{"z":1, "0":2}]}]}',
  '{"a":{"n":12345678901234567890}}',
  '{"a":[1e400, -1E999]}',
  '{"a":{"n":0.12345678901234567}}',
  '{"é":{"🙂":{"b":"}","10":"["}}}',
])('%s is unchanged', (text) => {
  expect(rewritten(text)).toBe(text)
})

test('text without changes is rewritten identically', () => {
  expect(rewritten('{"a": {"b": 1.0}, "c": [ ]}')).toBe('{"a":{"b":1},"c":[]}')
})

test('the last of duplicate members is used', () => {
  const text = '{"a":{"z":[{"y":1,"1":1}]},"a":{"z":[[{"b":1,"2":2}],{"b":3,"4":4}]}}'
  expect(rewritten(text)).toBe('{"a":{"z":[[{"b":1,"2":2}],{"b":3,"4":4}]}}')
})

test('parts stay unchanged when the text around them changes', () => {
  const text = '{"list": [{"keep": {"b": 1, "2": 2}, "drop": 1}, {"b": 1, "1": 1}]}'
  const written = rewritten(text, ({ list }) => {
    const [first, second] = list as [{ keep: unknown }, unknown] // as: written above
    return { list: [{ keep: first.keep, gone: undefined, new: 1 }, second, null] }
  })
  expect(written).toBe('{"list":[{"keep":{"b": 1, "2": 2},"new":1},{"b": 1, "1": 1},null]}')
})

test('any body keeps its content, and objects their member order', () => {
  const name = fc.oneof(fc.constantFrom('0', '1', '10', 'b', '__proto__', ''), fc.string())
  const { value } = fc.letrec<{ value: string }>((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom('1', '"x,]}"', 'null', '1e21', '12345678901234567', '"\\""'),
      fc.array(tie('value'), { maxLength: 3 }).map((all) => `[${all.join(' , ')}]`),
      fc
        .uniqueArray(fc.tuple(name, tie('value')), { maxLength: 3, selector: ([key]) => key })
        .map((all) => `{${all.map(([key, each]) => `${JSON.stringify(key)}: ${each}`).join(',')}}`),
    ),
  }))
  holds(
    fc.property(value, (inner) => {
      const text = `{"a":{"in":${inner}}}`
      const written = rewritten(text)
      expect(withoutBlanks(written)).toBe(withoutBlanks(text))
    }),
  )
})

/** Outside of strings. */
const withoutBlanks = (json: string): string => json.replace(/("(?:[^"\\]|\\.)*")|\s+/g, '$1')
