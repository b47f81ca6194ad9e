/** What a conversation without a name is told by. */
import { expect, test } from 'bun:test'
import { Openings, openingOf } from '../../src/proxy/opening.ts'

const user = (content: unknown) => ({ type: 'message', role: 'user', content })
const answer = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'yes' }] }
const text = (value: string) => ({ type: 'input_text', text: value })

test('is the first message of the user, in whatever form, behind the instructions', () => {
  const opening = openingOf({ instructions: 'be brief', input: [user('one two'), answer, user('three')] })
  expect(opening).not.toBeNull()
  const same = { instructions: 'be brief', input: [user([text('one '), text('two')]), answer, user('four'), answer] }
  expect(openingOf(same)).toBe(opening)
  expect(openingOf({ ...same, instructions: 'be long' })).not.toBe(opening)
  expect(openingOf({ ...same, input: [user('one'), answer] })).not.toBe(opening)
})

test('tells conversations apart by what the system says, wherever it stands', () => {
  const of = (content: string) => openingOf({ input: [{ role: 'developer', content }, user('one'), answer] })
  expect(of('be brief')).not.toBe(of('be long'))
  expect(of('be brief')).toBe(openingOf({ instructions: 'be brief', input: [user('one'), answer] }))
})

test('is there once something was answered, a call of a tool too', () => {
  expect(openingOf({ input: [user('one')] })).toBeNull()
  expect(openingOf({ input: [answer, user('one'), user('two')] })).toBeNull()
  expect(openingOf({ input: [user('one'), { type: 'function_call', name: 'f' }] })).not.toBeNull()
})

test('is none where there is no text to tell by', () => {
  for (const input of [undefined, 'one', [], [answer], [user([{ type: 'input_image' }]), answer], [user(7), answer]])
    expect(openingOf({ input })).toBeNull()
})

test('is the same for what differs far behind', () => {
  const long = 'x'.repeat(4096)
  expect(openingOf({ input: [user(`${long}a`), answer] })).toBe(openingOf({ input: [user(`${long}b`), answer] }))
  const under = (instructions: string) => openingOf({ instructions, input: [user('one'), answer] })
  expect(under(`${long}a`)).toBe(under(`${long}b`))
})

test('is alone again when all that ran beside it have ended', () => {
  const openings = new Openings()
  expect(['a', 'a', 'b'].map((hash) => openings.begin(hash))).toEqual([true, false, true])
  openings.end('a')
  expect(openings.begin('a')).toBe(false)
  for (let n = 0; n < 2; n++) openings.end('a')
  expect(openings.begin('a')).toBe(true)
})
