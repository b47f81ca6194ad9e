/** The conversations that chat sources get: calls are followed directly by their results, whatever comes between. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { getObjects, type JsonObject } from '../../../src/lib/json.ts'
import { messagesInput } from '../../../src/proxy/formats/messages-items.ts'
import { responsesToChat } from '../../../src/proxy/formats/responses-to-chat.ts'
import { holds } from '../../support/property.ts'

const text = (content: string) => ({ type: 'text', text: content })
const call = (id: string) => ({ type: 'tool_use', id, name: 'Read', input: {} })
const result = (id: string, content: unknown = `result ${id}`) => ({ type: 'tool_result', tool_use_id: id, content })
const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }

const toChat = (messages: readonly JsonObject[]): JsonObject[] =>
  getObjects(responsesToChat({ input: messagesInput(undefined, messages).items }).messages)

/** Each message as its role with its text, or with the ids of its calls or its result. */
const outline = (messages: readonly JsonObject[]): string[] =>
  toChat(messages).map(({ role, content, tool_calls, tool_call_id }) =>
    [role, typeof content === 'string' ? content : content && 'parts', tool_call_id, ...callIds(tool_calls)]
      .filter(Boolean)
      .join(' '),
  )

const callIds = (calls: unknown) => getObjects(calls).map(({ id }) => id)

describe('a conversation for a chat source', () => {
  test('has the calls of one turn in one message, with the text between them', () => {
    expect(
      outline([
        { role: 'user', content: 'go' },
        { role: 'assistant', content: [call('1'), text('and'), call('2')] },
        { role: 'user', content: [result('1'), result('2')] },
      ]),
    ).toEqual(['user go', 'assistant and 1 2', 'tool result 1 1', 'tool result 2 2'])
  })

  test('has the text between results after all of them', () => {
    expect(
      outline([
        { role: 'user', content: 'go' },
        { role: 'assistant', content: [text('a'), call('1'), call('2')] },
        { role: 'user', content: [result('1', [text('one'), image]), text('note'), result('2'), text('next')] },
      ]),
    ).toEqual(['user go', 'assistant a 1 2', 'tool one 1', 'tool result 2 2', 'user parts', 'user note', 'user next'])
  })

  test('has a system message between a call and its result after the result', () => {
    expect(
      outline([
        { role: 'user', content: 'go' },
        { role: 'assistant', content: [call('1')] },
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: [result('1')] },
        { role: 'assistant', content: 'done' },
      ]),
    ).toEqual(['user go', 'assistant 1', 'tool result 1 1', 'system Be brief.', 'assistant done'])
  })

  test('keeps turns with the same ids apart', () => {
    const turn = [
      { role: 'assistant', content: [call('1')] },
      { role: 'user', content: [result('1')] },
    ]
    expect(outline([{ role: 'user', content: 'go' }, ...turn, ...turn])).toEqual([
      'user go',
      'assistant 1',
      'tool result 1 1',
      'assistant 1',
      'tool result 1 1',
    ])
  })

  test('loses no text after a call that was never answered', () => {
    expect(
      outline([
        { role: 'user', content: 'go' },
        { role: 'assistant', content: [text('a'), call('1')] },
        { role: 'user', content: 'stop' },
        { role: 'assistant', content: 'fine' },
      ]),
    ).toEqual(['user go', 'assistant a 1', 'tool This call has no result. 1', 'user stop', 'assistant fine'])
  })

  test('has the result of an unknown call as text of the user', () => {
    expect(
      outline([
        { role: 'user', content: [result('9'), text('go')] },
        { role: 'assistant', content: 'fine' },
      ]),
    ).toEqual(['user result 9', 'user go', 'assistant fine'])
  })

  test('has every call followed directly by its result', () => {
    const between = fc.option(fc.constantFrom<JsonObject>(text('note'), image), { nil: undefined })
    const turn = fc
      .tuple(
        fc.array(fc.tuple(fc.boolean(), between), { maxLength: 4 }),
        fc.option(fc.constantFrom('system', 'user', 'assistant'), { nil: undefined }),
        fc.boolean(),
      )
      .map(([calls, role, isReversed]) => ({ calls, role, isReversed }))
    holds(
      fc.property(fc.array(turn, { maxLength: 5 }), fc.boolean(), (turns, hasUniqueIds) => {
        const messages = turns.flatMap(({ calls, role, isReversed }, turnIndex) => {
          const idOf = (index: number) => `${hasUniqueIds ? turnIndex : ''}_${index}`
          const used = calls.flatMap(([, part], index) => [...(part?.type === 'text' ? [part] : []), call(idOf(index))])
          const results = calls.flatMap(([isAnswered, part], index) => [
            ...(isAnswered ? [[result(idOf(index), part ? [text('x'), part] : 'x'), ...(part ? [part] : [])]] : []),
          ])
          return [
            { role: 'assistant', content: used },
            ...(role ? [{ role, content: 'between' }] : []),
            { role: 'user', content: (isReversed ? results.reverse() : results).flat() },
          ]
        })
        const written = toChat(messages)
        for (const [index, { role, tool_calls }] of written.entries()) {
          const ids = callIds(tool_calls)
          const following = written.slice(index + 1, index + 1 + ids.length)
          expect(following.map(({ tool_call_id }) => tool_call_id).sort()).toEqual([...ids].sort())
          expect(written[index + 1 + ids.length]?.role === 'tool' && role !== 'tool').toBe(false)
        }
        const calls = messages.flatMap(({ content }) => getObjects(content)).filter(({ type }) => type === 'tool_use')
        expect(written.flatMap(({ tool_calls }) => callIds(tool_calls))).toEqual(calls.map(({ id }) => id))
      }),
    )
  })
})
