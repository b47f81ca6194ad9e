/** Duplicate members, and the positions of members, found in the bytes. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { getElements, repeatedMember, topMembers } from '../../src/lib/json-members.ts'
import { holds } from '../support/property.ts'

const PATHS = ['model', 'store', 'reasoning', 'reasoning.effort']
const bytes = (json: string) => new TextEncoder().encode(json)
const repeated = (json: string) => repeatedMember(bytes(json), PATHS)

describe('a duplicate member', () => {
  test.each([
    ['{"model":"a","model":"b"}', 'model'],
    ['{"model" : "a",\n"x":1,\t"model"\r\n: "b"}', 'model'],
    ['{"model":"a","mod\\u0065l":"b"}', 'model'],
    ['{"\\u006dodel":"a","\\u006D\\u006Fdel":"b"}', 'model'],
    ['{"reasoning":{"effort":"low"},"reasoning":null}', 'reasoning'],
    ['{"reasoning":{"effort":"low","x":{"effort":1},"effort":"high"}}', 'reasoning.effort'],
    ['{"x":["\\\\",{"model":1}],"model":1,"y":"\\"","model":2}', 'model'],
    ['{"store":1,"model":1,"model":2,"store":2}', 'model'],
  ])('%s', (json, path) => {
    expect(() => JSON.parse(json)).not.toThrow()
    expect(repeated(json)).toBe(path)
  })
})

describe('no duplicate member', () => {
  test.each([
    '{}',
    '{"model":"a","input":[{"model":"b","type":"model"},"model"],"text":"\\"model\\":1,\\"model\\":2"}',
    '{"model":"model","tools":{"model":1,"store":2},"store":"store"}',
    '{"effort":"low","text":{"effort":"low"},"reasoning":{"effort":"high","x":{"effort":1}}}',
    '{"models":1,"model":2,"Model":3,"input":"\\u001b[0m \\u0065"}',
    '{"x":1,"x":2,"model":1}',
  ])('%s', (json) => {
    expect(() => JSON.parse(json)).not.toThrow()
    expect(repeated(json)).toBeNull()
  })

  test('of bytes that begin at an offset of their buffer', () => {
    const whole = bytes('{"model":1,"model":2}{"model":1}')
    expect(repeatedMember(whole.subarray(21), PATHS)).toBeNull()
    expect(repeatedMember(whole.subarray(0, 21), PATHS)).toBe('model')
  })
})

test('the found members are those the text was built from', () => {
  const name = fc.constantFrom('model', 'store', 'x', 'reasoning', 'effort')
  const member = fc.tuple(name, fc.jsonValue({ maxDepth: 3 }), fc.constantFrom('', ' ', '\n\t'), fc.boolean())
  const write = ([key, value, blank, isSpelled]: [string, unknown, string, boolean]) => {
    const [first = '', ...rest] = key
    const spelled = isSpelled ? `\\u00${first.charCodeAt(0).toString(16)}${rest.join('')}` : key
    return `"${spelled}"${blank}:${blank}${JSON.stringify(value)}`
  }
  holds(
    fc.property(fc.array(member), (members) => {
      const json = `{${members.map(write).join(',')}}`
      const names = members.map(([key]) => key)
      const first = names.find((key, i) => ['model', 'store'].includes(key) && names.indexOf(key) < i)
      expect(repeatedMember(bytes(json), ['model', 'store'])).toBe(first ?? null)
    }),
  )
})

describe('the top-level members', () => {
  const shown = (json: string) =>
    topMembers(bytes(json)).map(({ name, start, value, end }) => {
      const text = (from: number, to: number) => new TextDecoder().decode(bytes(json).subarray(from, to))
      return [name, text(start, value), text(value, end)]
    })

  test.each([
    ['{}', []],
    [
      ' { "a" :\n1 ,"b":{"a":[2,{"c":"}"}]} }\n',
      [
        ['a', '"a" :\n', '1'],
        ['b', '"b":', '{"a":[2,{"c":"}"}]}'],
      ],
    ],
    [
      '{"a":"b","a":["a"],"é🙂":"\\","}',
      [
        ['a', '"a":', '"b"'],
        ['a', '"a":', '["a"]'],
        ['é🙂', '"é🙂":', '"\\","'],
      ],
    ],
    [
      '{"mod\\u0065l":"x","":null}',
      [
        ['model', '"mod\\u0065l":', '"x"'],
        ['', '"":', 'null'],
      ],
    ],
  ])('%s', (json, members) => {
    expect(shown(json)).toEqual(members)
  })

  test('are those the text was built from', () => {
    const member = fc.tuple(
      fc.string({ unit: 'binary' }),
      fc.jsonValue({ maxDepth: 3 }),
      fc.constantFrom('', ' ', '\n\t'),
    )
    holds(
      fc.property(fc.array(member), (members) => {
        const texts = members.map(([name, value]) => [name, `${JSON.stringify(name)}:`, JSON.stringify(value)])
        const json = `{${members.map(([, , blank], at) => `${blank}${texts[at]![1]}${texts[at]![2]}${blank}`).join(',')}}`
        expect(shown(json)).toEqual(texts)
      }),
    )
  })
})

describe('the elements of a list', () => {
  const shown = (json: string, from = 0) =>
    getElements(bytes(json), from).map(({ value, end }) => new TextDecoder().decode(bytes(json).subarray(value, end)))

  test.each([
    ['[]', []],
    ['[ ]', []],
    ['[ 1 ,"a,]\\"" , [2,[3]],{"b":[4,5]}\n]', ['1', '"a,]\\""', '[2,[3]]', '{"b":[4,5]}']],
    ['[[],{}]', ['[]', '{}']],
  ])('%s', (json, texts) => {
    expect(shown(json)).toEqual(texts)
  })

  test('of a nested one, and nothing after it', () => {
    expect(shown('{"a":[1,2],"b":[3]}', 5)).toEqual(['1', '2'])
  })

  test('are those of any list', () => {
    holds(
      fc.property(fc.array(fc.jsonValue()), fc.constantFrom(0, 1), (list, indent) => {
        expect(shown(JSON.stringify(list, null, indent)).map((text) => JSON.parse(text))).toEqual(
          JSON.parse(JSON.stringify(list)),
        )
      }),
    )
  })
})
