/** Chat answers of model sources as Messages streams, and the same answers as documents. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { getObjects, type JsonObject } from '../../../src/lib/json.ts'
import { ChatEventReader, responseFromChat } from '../../../src/proxy/formats/chat-events.ts'
import { MessagesEvents } from '../../../src/proxy/formats/messages-events.ts'
import { messageFromResponse } from '../../../src/proxy/formats/messages-stream.ts'
import { holds } from '../../support/property.ts'

const SHAPE = {
  id: 'msg_1',
  model: 'llama-4',
  names: new Map<string, string>(),
  showsThinking: true,
  stopSequences: [],
  maxTextChars: null,
}

const usage = { prompt_tokens: 12, completion_tokens: 4, prompt_tokens_details: { cached_tokens: 2 } }
const chunk = (delta: JsonObject, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta, finish_reason }],
})

/** The blocks that the chunks make, with their text or input, and the last two events. */
const read = (chunks: readonly JsonObject[]) => {
  const reader = new ChatEventReader()
  const messages = new MessagesEvents(SHAPE)
  const data = [...chunks.map((one) => JSON.stringify(one)), '[DONE]']
  const events = data
    .flatMap((text) => reader.read(text))
    .flatMap((event) => (messages.needs(event.type) ? messages.push(event) : []))
  const blocks: JsonObject[] = []
  for (const { type, content_block, delta } of events) {
    if (type === 'content_block_start') blocks.push({ ...(content_block as JsonObject), text: '' })
    if (type !== 'content_block_delta') continue
    const { text, thinking, partial_json } = delta as Record<string, string | undefined>
    blocks.at(-1)!.text += text ?? thinking ?? partial_json ?? ''
  }
  return { blocks, end: events.slice(-2) }
}

describe('a chat stream', () => {
  test('of thinking, text and parallel calls becomes blocks in this order', () => {
    const call = (index: number, more: JsonObject) => chunk({ tool_calls: [{ index, ...more }] })
    const { blocks, end } = read([
      chunk({ role: 'assistant', content: '' }),
      chunk({ reasoning_content: 'h' }),
      chunk({ reasoning_content: 'm' }),
      chunk({ content: 'Hel' }),
      chunk({ content: 'lo' }),
      call(0, { id: 'call_a', function: { name: 'A', arguments: '{"a"' } }),
      call(1, { id: 'call_b', function: { name: 'B', arguments: '' } }),
      call(0, { function: { arguments: ':1}' } }),
      call(1, { function: { arguments: '{}' } }),
      chunk({}, 'tool_calls'),
      { choices: [], usage },
    ])
    expect(blocks).toMatchObject([
      { type: 'thinking', text: 'hm' },
      { type: 'text', text: 'Hello' },
      { type: 'tool_use', id: 'call_a', name: 'A', text: '{"a":1}' },
      { type: 'tool_use', id: 'call_b', name: 'B', text: '{}' },
    ])
    expect(end).toMatchObject([
      {
        delta: { stop_reason: 'tool_use' },
        usage: { input_tokens: 10, cache_read_input_tokens: 2, output_tokens: 4 },
      },
      { type: 'message_stop' },
    ])
  })

  test('with the same index for every call, or without ids, keeps the calls apart', () => {
    const calls = ['call_a', 'call_b'].map((id) => ({ index: 0, id, function: { name: 'A', arguments: '{}' } }))
    expect(read([chunk({ tool_calls: calls })]).blocks.map(({ id }) => id)).toEqual(['call_a', 'call_b'])
    const nameless = [0, 1].map((index) => ({ index, function: { name: 'A', arguments: '{}' } }))
    const ids = read([chunk({ tool_calls: nameless })]).blocks.map(({ id }) => id)
    expect(new Set(ids).size).toBe(2)
    expect(ids.every(Boolean)).toBe(true)
  })

  test.each([
    ['no id', [undefined, undefined]],
    ['an empty id', ['', '']],
    ['the same id', ['call_a', 'call_a']],
    ['the id that another one would be given', [undefined, 'call_0', undefined]],
  ])('and a document keep parallel calls with %s apart', (_, ids) => {
    const calls = ids.map((id, index) => ({ index, id, function: { name: `tool_${index}`, arguments: '{}' } }))
    for (const id of [undefined, 'chatcmpl-1']) {
      const document = responseFromChat({ id, choices: [{ message: { tool_calls: calls } }] })
      expect(document.output).toHaveLength(ids.length)
      const written = getObjects(messageFromResponse(document, SHAPE).content)
      const streamed = read([{ id, ...chunk({ tool_calls: calls }) }]).blocks
      for (const blocks of [written, streamed]) {
        expect(blocks.map(({ name }) => name)).toEqual(calls.map(({ function: { name } }) => name))
        expect(new Set(blocks.map((block) => block.id || null)).size).toBe(ids.length)
      }
    }
  })

  test('and a document that name no ids give their calls other ids than another answer does', () => {
    const calls = [{ index: 0, function: { name: 'A', arguments: '{}' } }]
    const idsOf = (id: string) => [
      ...read([{ id, ...chunk({ tool_calls: calls }) }]).blocks,
      ...getObjects(responseFromChat({ id, choices: [{ message: { tool_calls: calls } }] }).output),
    ]
    const ids = (id: string) => idsOf(id).map((block) => block.call_id ?? block.id)
    expect(ids('chatcmpl-1')).not.toEqual(ids('chatcmpl-2'))
  })

  test('that repeats the id of a call continues it', () => {
    const call = (text: string) =>
      chunk({ tool_calls: [{ index: 0, id: 'call_a', function: { name: 'A', arguments: text } }] })
    expect(read([call('{"a"'), call(':1}')]).blocks).toMatchObject([{ id: 'call_a', text: '{"a":1}' }])
  })

  test('of calls without an index or an id keeps them apart', () => {
    const calls = ['A', 'B'].map((name) => ({ function: { name, arguments: '{}' } }))
    expect(read([chunk({ tool_calls: calls })]).blocks).toMatchObject([
      { name: 'A', text: '{}' },
      { name: 'B', text: '{}' },
    ])
  })

  test('that returns to text or thinking after something else has a new block for it', () => {
    const call = chunk({ tool_calls: [{ index: 0, id: 'call_a', function: { name: 'A', arguments: '{}' } }] })
    const typesAndTexts = (chunks: JsonObject[]) => read(chunks).blocks.map(({ type, text }) => [type, text])
    expect(typesAndTexts([chunk({ content: 'a' }), call, chunk({ content: 'b' })])).toEqual([
      ['text', 'a'],
      ['tool_use', '{}'],
      ['text', 'b'],
    ])
    expect(typesAndTexts([chunk({ reasoning: 'a' }), call, chunk({ reasoning: 'b' })])).toEqual([
      ['thinking', 'a'],
      ['tool_use', '{}'],
      ['thinking', 'b'],
    ])
    expect(
      typesAndTexts(['a', 'b', 'c'].flatMap((text) => [chunk({ reasoning: text }), chunk({ content: text })])),
    ).toEqual(
      ['a', 'b', 'c'].flatMap((text) => [
        ['thinking', text],
        ['text', text],
      ]),
    )
  })

  const called = (more: JsonObject) => ({ tool_calls: [{ index: 0, id: 'call_a', ...more }] })
  test.each([
    ['a refusal', { refusal: 'No.' }, { type: 'text', text: 'No.' }],
    ['a list of parts', { content: ['a', 'b'].map((text) => ({ type: 'text', text })) }, { type: 'text', text: 'ab' }],
    ['a list of strings', { content: ['a', 'b'] }, { type: 'text', text: 'ab' }],
    [
      'thinking in a part',
      { content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] }] },
      { type: 'thinking', text: 'hm' },
    ],
    [
      'an object as arguments',
      called({ function: { name: 'A', arguments: { a: 1 } } }),
      { name: 'A', text: '{"a":1}' },
    ],
    ['no arguments', called({ function: { name: 'A' } }), { name: 'A', text: '' }],
  ])('and a document with %s have its content', (_, message, block) => {
    expect(read([chunk(message)]).blocks).toMatchObject([block])
    const { content } = messageFromResponse(responseFromChat({ choices: [{ message }] }), SHAPE)
    const inputText = (input: unknown) => (Object.keys(input as object).length > 0 ? JSON.stringify(input) : '')
    const written = getObjects(content).map(({ text, thinking, input, ...rest }) => ({
      ...rest,
      text: text ?? thinking ?? inputText(input),
    }))
    expect(written).toMatchObject([block])
  })

  test('that names a call later has its name and all of its arguments', () => {
    const part = (more: JsonObject) => chunk({ tool_calls: [{ index: 0, function: more }] })
    const { blocks } = read([
      chunk(called({ function: { name: null, arguments: '' } })),
      part({ arguments: '{"a"' }),
      part({ name: 'A', arguments: ':' }),
      part({ arguments: '1}' }),
    ])
    expect(blocks).toMatchObject([{ type: 'tool_use', id: 'call_a', name: 'A', text: '{"a":1}' }])
  })

  test.each([
    ['length', 'max_tokens'],
    ['content_filter', 'refusal'],
    ['stop', 'end_turn'],
  ])('that ends by %s stops with %s', (reason, stop_reason) => {
    expect(read([chunk({ content: 'Hi' }), chunk({}, reason)]).end[0]).toMatchObject({ delta: { stop_reason } })
  })

  test('with an error is a failure', () => {
    const [event] = new ChatEventReader().read('{"error":{"message":"Out of memory.","code":507}}')
    expect(event).toMatchObject({ type: 'error', error: { message: 'Out of memory.' } })
  })

  test('has the blocks of the document with the same content', () => {
    holds(
      fc.property(
        fc.string(),
        fc.array(fc.string({ minLength: 1 }), { maxLength: 3 }),
        fc.array(fc.dictionary(fc.string(), fc.string(), { maxKeys: 2 }), { maxLength: 3 }),
        (thinking, pieces, inputs) => {
          const calls = inputs.map((input, index) => ({
            index,
            id: `call_${index}`,
            function: { name: `tool_${index}`, arguments: JSON.stringify(input) },
          }))
          const { blocks } = read([
            chunk({ reasoning: thinking }),
            ...pieces.map((content) => chunk({ content })),
            ...calls.map((call) => chunk({ tool_calls: [call] })),
          ])
          const message = { reasoning: thinking, content: pieces.join(''), tool_calls: calls }
          const document = messageFromResponse(
            responseFromChat({ choices: [{ message }], usage: { completion_tokens: 1 } }),
            SHAPE,
          )
          const folded = getObjects(document.content).map(({ type, text, thinking, input }) => ({
            type,
            text: text ?? thinking ?? JSON.stringify(input),
          }))
          expect(blocks.map(({ type, text }) => ({ type, text }))).toEqual(folded)
        },
      ),
    )
  })
})
