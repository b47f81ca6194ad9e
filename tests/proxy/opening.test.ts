/** Recognizing a conversation without a name by its first message. */
import { expect, test } from 'bun:test'
import type { JsonObject } from '../../src/lib/json.ts'
import { getOpening, Openings } from '../../src/proxy/pool/conversation-fingerprint.ts'

const getName = (json: JsonObject) => getOpening(json)?.name ?? null
const user = (content: unknown) => ({ type: 'message', role: 'user', content })
const answer = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'yes' }] }
const text = (value: string) => ({ type: 'input_text', text: value })

test('is the first user message, in whatever form, after the instructions', () => {
  const opening = getName({ instructions: 'be brief', input: [user('one two'), answer, user('three')] })
  expect(opening).not.toBeNull()
  const same = { instructions: 'be brief', input: [user([text('one '), text('two')]), answer, user('four'), answer] }
  expect(getName(same)).toBe(opening)
  expect(getName({ ...same, instructions: 'be long' })).not.toBe(opening)
  expect(getName({ ...same, input: [user('one'), answer] })).not.toBe(opening)
})

test('distinguishes conversations by their system messages, wherever they are', () => {
  const of = (content: string) => getName({ input: [{ role: 'developer', content }, user('one'), answer] })
  expect(of('be brief')).not.toBe(of('be long'))
  expect(of('be brief')).toBe(getName({ instructions: 'be brief', input: [user('one'), answer] }))
})

test('counts as answered once the model said something or called a tool', () => {
  const isAnswered = (...input: unknown[]) => getOpening({ input })?.isAnswered
  expect(isAnswered(user('one'))).toBe(false)
  expect(isAnswered(answer, user('one'), user('two'))).toBe(false)
  expect(isAnswered(user('one'), answer)).toBe(true)
  expect(isAnswered(user('one'), { type: 'function_call', name: 'f' })).toBe(true)
  expect(getOpening({ input: [user('one')] })?.name).toBe(getOpening({ input: [user('one'), answer] })?.name)
})

test('of a first request is kept for some minutes, the last ten thousand of them', () => {
  const openings = new Openings()
  const minutes = (count: number) => count * 60_000
  openings.note('a', 'acc_1', 0)
  openings.note('a', 'acc_2', minutes(1))
  expect(openings.noted('a', minutes(16))).toBe('acc_2')
  expect(openings.noted('a', minutes(16) + 1)).toBeNull()
  expect(openings.noted('b', 0)).toBeNull()
  for (let n = 0; n < 10_000; n++) openings.note(`n${n}`, 'acc_1', minutes(1))
  expect([openings.noted('a', minutes(1)), openings.noted('n0', minutes(1))]).toEqual([null, 'acc_1'])
  openings.keepOnly(new Set(['acc_2']))
  expect(openings.noted('n0', minutes(1))).toBeNull()
})

test('does not exist without text', () => {
  for (const input of [undefined, 'one', [], [answer], [user([{ type: 'input_image' }]), answer], [user(7), answer]])
    expect(getName({ input })).toBeNull()
})

test('is the same if only later parts differ', () => {
  const long = 'x'.repeat(4096)
  expect(getName({ input: [user(`${long}a`), answer] })).toBe(getName({ input: [user(`${long}b`), answer] }))
  const under = (instructions: string) => getName({ instructions, input: [user('one'), answer] })
  expect(under(`${long}a`)).toBe(under(`${long}b`))
})

test('is alone again when all parallel ones have ended', () => {
  const openings = new Openings()
  expect(['a', 'a', 'b'].map((hash) => openings.begin(hash))).toEqual([true, false, true])
  openings.end('a')
  expect(openings.begin('a')).toBe(false)
  for (let n = 0; n < 2; n++) openings.end('a')
  expect(openings.begin('a')).toBe(true)
})
