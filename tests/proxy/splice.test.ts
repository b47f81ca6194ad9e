/** Members set in bodies and removed from them, however these are written: the rest is unchanged, byte for byte. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { cutMembers, spliceMembers } from '../../src/proxy/ingress/splice.ts'
import { holds } from '../support/property.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const spliced = (text: string, members: Record<string, unknown>) =>
  new TextDecoder().decode(spliceMembers(bytes(text), members))
const cut = (text: string, names: string[]) => new TextDecoder().decode(cutMembers(bytes(text), names))

describe('members are set in place, and new ones at the front', () => {
  test.each([
    ['{}', '{"store":false,"model":"m"}'],
    [' {\n} ', ' {"store":false,"model":"m"\n} '],
    ['{"a":1E400}', '{"store":false,"model":"m","a":1E400}'],
    ['{"store" : true , "a":"\\ud800"}', '{"model":"m","store" : false , "a":"\\ud800"}'],
    ['{"a":{"store":1},"mod\\u0065l":{"model":[{}]}}', '{"store":false,"a":{"store":1},"mod\\u0065l":"m"}'],
    ['{"store":1,"model":"\\\\","store":2}', '{"store":1,"model":"m","store":false}'],
  ])('%s', (text, written) => {
    expect(spliced(text, { store: false, model: 'm' })).toBe(written)
  })
})

describe('for any body', () => {
  const NAMES = ['model', 'store', 'x"model', '', '__proto__', '🙂']
  const blank = fc.constantFrom('', ' ', '\n\t')
  /** Also with every sign of it written as an escape. */
  const name = fc.constantFrom(...NAMES).chain((plain) => fc.constantFrom(JSON.stringify(plain), escaped(plain)))
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 3 }).map((json) => JSON.stringify(json)),
    fc.constantFrom('-0', '1E400', '"\\ud800"', '"\\\\"', '"\\","', '"\\u006dodel"', '{ }', '[\n]'),
  )
  const member = fc.tuple(blank, name, blank, blank, value, blank)
  const body = fc.tuple(blank, fc.array(member, { maxLength: 6 }), blank)
  const some = fc.subarray(NAMES)

  type Parts = [string, string, string, string, string, string]
  const getName = ([, quoted]: Parts): string => JSON.parse(quoted)
  const memberText = ([before, quoted, behind, ahead, json, after]: Parts) =>
    `${before}${quoted}${behind}:${ahead}${json}${after}`
  const getText = ([before, members, after]: [string, Parts[], string]) =>
    `${before}{${members.map(memberText).join(',')}}${after}`

  test('the last of each name is set', () => {
    holds(
      fc.property(body, some, ([before, members, after], names) => {
        const set = members.map((parts, at): Parts => {
          const isLast = members.findLastIndex((other) => getName(other) === getName(parts)) === at
          return isLast && names.includes(getName(parts)) ? (parts.with(4, '"set"') as Parts) : parts
        })
        const fresh = names.filter((each) => !members.some((parts) => getName(parts) === each))
        const put = fresh.map((each): Parts => ['', JSON.stringify(each), '', '', '"set"', ''])
        const written = spliced(
          getText([before, members, after]),
          Object.fromEntries(names.map((each) => [each, 'set'])),
        )
        expect(written).toBe(getText([before, [...put, ...set], after]))
        expect(names.map((each) => JSON.parse(written)[each])).toEqual(names.map(() => 'set'))
      }),
    )
  })

  test('all of a name are removed, and every other byte stays', () => {
    holds(
      fc.property(body, some, ([before, members, after], names) => {
        const text = getText([before, members, after])
        const kept = members.filter((parts) => !names.includes(getName(parts)))
        expect(cut(text, names)).toBe(getText([before, kept, after]))
      }),
    )
  })
})

const escaped = (plain: string): string =>
  `"${[...Array(plain.length).keys()].map((at) => `\\u${plain.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')}"`
