/** A key that a server repeats is removed in every encoding that common JSON writers and URLs use. */
import { expect, test } from 'bun:test'
import { REDACTED, redactSecret } from '../../src/lib/redact-secret.ts'

const KEY = `sk/ab+cd=='"&<>é`

test.each([
  ['unescaped', KEY],
  ['in JSON', JSON.stringify(KEY).slice(1, -1)],
  ['in JSON of PHP', JSON.stringify(KEY).slice(1, -1).replaceAll('/', '\\/')],
  ['in JSON of Python', 'sk/ab+cd==\'\\"&<>\\u00e9'],
  ['in JSON of Go', 'sk/ab+cd==\'\\"\\u0026\\u003c\\u003eé'],
  ['in JSON of .NET', 'sk/ab\\u002Bcd==\\u0027\\u0022\\u0026\\u003C\\u003E\\u00E9'],
  ['in a URL', encodeURIComponent(KEY)],
  ['in a URL in lower case', encodeURIComponent(KEY).replace(/%../g, (code) => code.toLowerCase())],
  ['in a form', new URLSearchParams({ KEY }).toString().slice('KEY='.length)],
])('%s', (_where, written) => {
  expect(redactSecret(`before ${written} after`, KEY)).toBe(`before ${REDACTED} after`)
})

test('a short key or none removes nothing', () => {
  expect(['abc', '', null].map((key) => redactSecret('abc def', key))).toEqual(['abc def', 'abc def', 'abc def'])
})
