/** The usage of a JSON response is found however the response is split and whatever its strings contain. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { UsageReader } from '../../../src/proxy/relay/usage-reader.ts'
import { holds } from '../../support/property.ts'

const read = (text: string, cut = text.length): unknown => {
  const bytes = new TextEncoder().encode(text)
  const reader = new UsageReader()
  for (let at = 0; at < bytes.length; at += cut) reader.push(bytes.subarray(at, at + cut))
  return reader.usage
}

test.each<[string, string, unknown]>([
  [
    'last',
    '{"data":[{"b64_json":"AAAA"}],"usage":{"input_tokens":1,"x":{"y":[2]}}}',
    { input_tokens: 1, x: { y: [2] } },
  ],
  ['first', '{ "usage" : {"a":1} , "data":[] }', { a: 1 }],
  ['with odd strings', '{"a\\"b":"\\\\\\"}{","usage":{"t":"}\\"{"}}', { t: '}"{' }],
  ['nested elsewhere', '{"data":[{"usage":{"a":1}}],"x":{"usage":{"b":1}}}', null],
  ['a string', '{"usage":"none","data":[]}', null],
  ['null', '{"usage":null,"data":[]}', null],
  ['a list', '{"usage":[1,2]}', null],
  ['as a value', '{"name":"usage","other":{"a":1}}', null],
  ['under a longer name', '{"usages":{"a":1},"my_usage":{"b":1}}', null],
  ['of an interrupted response', '{"usage":{"a":1', null],
  ['of invalid JSON', '<html>"usage":{"a":1}</html>', null],
])('%s', (_name, text, usage) => {
  for (const cut of [1, 2, 3, 7, text.length]) expect(read(text, cut)).toEqual(usage)
})

test('is found in any document, in any pieces', () => {
  const document = fc.record({
    before: fc.jsonValue(),
    usage: fc.dictionary(fc.string(), fc.jsonValue()),
    after: fc.jsonValue(),
  })
  holds(
    fc.property(document, fc.integer({ min: 1, max: 50 }), fc.boolean(), (json, cut, isPretty) => {
      const text = JSON.stringify(json, null, isPretty ? 2 : 0)
      expect(read(text, cut)).toEqual(JSON.parse(text).usage)
    }),
  )
})
