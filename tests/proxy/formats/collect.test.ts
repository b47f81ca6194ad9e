/** One JSON response from a stream, complete even if the upstream's last event is not. */
import { describe, expect, test } from 'bun:test'
import { getObject, getObjects, type JsonObject } from '../../../src/lib/json.ts'
import { chatFromResponse } from '../../../src/proxy/formats/chat-json.ts'
import { ResponseCollector } from '../../../src/proxy/formats/collect.ts'
import type { ResponsesEvent } from '../../../src/proxy/formats/responses-event.ts'
import {
  aCall,
  aMessage,
  aResponse,
  callEvents,
  completed,
  messageEvents,
  opening,
  reasoningEvents,
} from './streams.ts'

const done = (item: JsonObject, place: JsonObject = { output_index: 0 }): ResponsesEvent => ({
  type: 'response.output_item.done',
  item,
  ...place,
})

const collect = (events: ResponsesEvent[]): JsonObject => {
  const collector = new ResponseCollector()
  for (const event of events) if (collector.needs(event.type)) collector.push(event)
  return collector.result()
}

const refused = { type: 'message', content: [{ type: 'refusal', refusal: 'no' }] }
const sealed = (encrypted_content: string) => ({ type: 'reasoning', id: 'rs_1', summary: [], encrypted_content })

describe('a collected response', () => {
  test('is the terminal event’s own object when that is complete', () => {
    const last = completed({ output: [aMessage('final')] })
    expect(collect([...opening, ...messageEvents(0, 'other'), last])).toBe(last.response as JsonObject)
  })

  test('has its empty output filled with the finished items, by index', () => {
    const [call, message] = [callEvents(2, '{}'), messageEvents(1, 'Hel', 'lo')]
    const response = collect([...opening, ...reasoningEvents(0), ...call, ...message, completed()])
    expect((response.output as JsonObject[]).map((item) => item.type)).toEqual([
      'reasoning',
      'message',
      'function_call',
    ])
    expect(response).toMatchObject({ id: 'resp_1', status: 'completed', usage: { total_tokens: 82 } })
    expect(response.output).toContainEqual(aMessage('Hello'))
  })

  test.each<[string, ResponsesEvent[], JsonObject]>([
    [
      'text deltas alone',
      ['Hel', 'lo'].map((delta) => ({ type: 'response.output_text.delta', output_index: 0, content_index: 0, delta })),
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hello', annotations: [] }] },
    ],
    [
      'an announced message with deltas',
      messageEvents(0, 'Hel', 'lo').slice(0, 3),
      { ...aMessage(''), content: [{ type: 'output_text', text: 'Hello', annotations: [] }] },
    ],
    [
      'a finished message without its content',
      [
        ...messageEvents(0, 'Hel', 'lo').slice(0, 4),
        { type: 'response.output_item.done', output_index: 0, item: { ...aMessage(''), content: [] } },
      ],
      { ...aMessage(''), content: [{ type: 'output_text', text: 'Hello', annotations: [] }] },
    ],
    [
      'a finished message with more than its deltas',
      [
        ...messageEvents(0, 'Hel', 'lo').slice(0, 4),
        { type: 'response.output_item.done', output_index: 0, item: { ...aMessage('Hello'), note: 1 } },
        { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: ' again' },
      ],
      { ...aMessage('Hello'), note: 1 },
    ],
    [
      'a finished message that is announced again',
      [...messageEvents(0, 'Hel', 'lo'), messageEvents(0)[0]!],
      aMessage('Hello'),
    ],
    [
      'a finished message that ends again without its content',
      [...messageEvents(0, 'Hel', 'lo'), done({ ...aMessage(''), content: [] })],
      aMessage('Hello'),
    ],
    [
      'a finished message that ends again with an empty text',
      [...messageEvents(0, 'Hel', 'lo'), done(aMessage(''))],
      aMessage('Hello'),
    ],
    [
      'a finished message that ends again with more',
      [...messageEvents(0, 'Hel'), done(aMessage('Hello'))],
      aMessage('Hello'),
    ],
    [
      'a finished refusal that ends again with more',
      [done({ type: 'message', content: [{ type: 'refusal', refusal: 'n' }] }), done(refused)],
      refused,
    ],
    [
      'a finished call that ends again without its arguments',
      [...callEvents(0, '{"a"', ':1}'), done(aCall(0, ''))],
      aCall(0, '{"a":1}'),
    ],
    [
      'a finished call without its arguments',
      [...callEvents(0, '{"a"', ':1}').slice(0, -1), done(aCall(0, ''))],
      aCall(0, '{"a":1}'),
    ],
    [
      'finished reasoning that ends again without its content',
      [...reasoningEvents(0), done({ type: 'reasoning', id: 'rs_1', summary: [] })],
      getObject(reasoningEvents(0).at(-1)?.item),
    ],
    [
      'finished reasoning that ends again with only its ciphertext',
      [...reasoningEvents(0).slice(0, 1), done(sealed('x')), done(sealed('y'))],
      sealed('y'),
    ],
    [
      'a finished call with a lost delta',
      [...callEvents(0, '{"a"', ':1}').slice(0, 2), ...callEvents(0, '{"a":1}').slice(3)],
      aCall(0, '{"a":1}'),
    ],
    ['argument deltas', callEvents(0, '{"a"', ':1}').slice(0, 3), aCall(0, '{"a":1}')],
    [
      'a refusal',
      [{ type: 'response.refusal.done', output_index: 0, content_index: 0, refusal: 'no' }],
      { type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal: 'no' }] },
    ],
    [
      'a reasoning summary',
      reasoningEvents(0).slice(0, 2),
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'hm' }] },
    ],
    [
      'unannounced reasoning',
      [{ type: 'response.reasoning_text.delta', output_index: 0, content_index: 0, delta: 'hm' }],
      { type: 'reasoning', content: [{ type: 'reasoning_text', text: 'hm' }] },
    ],
    [
      'an item of another type that only began',
      [{ type: 'response.output_item.added', output_index: 0, item: { type: 'web_search_call', id: 'ws_1' } }],
      { type: 'web_search_call', id: 'ws_1' },
    ],
  ])('is complete from %s', (_, events, item) => {
    expect(collect([...events, completed()]).output).toEqual([item])
  })

  test('puts items without an index after those with one, in their order', () => {
    const events = [done(aCall(3, ''), {}), done(aCall(4, ''), {}), done(aCall(2, ''), { output_index: 1 })]
    expect(collect([...events, completed()]).output).toEqual([aCall(2, ''), aCall(3, ''), aCall(4, '')])
  })

  test('of an incomplete answer keeps its reason', () => {
    const response = aResponse({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } })
    const result = collect([...messageEvents(0, 'a'), { type: 'response.incomplete', response }])
    expect(result).toMatchObject({ status: 'incomplete', output: [aMessage('a')] })
  })

  test('does not exist after a failure, whose own code is kept', () => {
    const failed = {
      type: 'response.failed',
      response: { error: { code: 'context_length_exceeded', message: 'Too long.' } },
    }
    expect(() => collect([...messageEvents(0, 'a'), failed])).toThrow(
      expect.objectContaining({
        code: 'upstream_error',
        message: 'Too long.',
        extra: expect.objectContaining({ upstream: { code: 'context_length_exceeded', type: null } }),
      }),
    )
  })

  test('does not exist without a terminal event', () => {
    expect(() => collect(messageEvents(0, 'a'))).toThrow(expect.objectContaining({ code: 'stream_incomplete' }))
  })
})

describe('a chat answer', () => {
  const chat = (response: JsonObject) =>
    chatFromResponse(response, { id: 'chatcmpl-1', created: 1, model: 'mine', isJson: false, isLegacy: false })

  test('is the final answer if there is one, else all text', () => {
    const cited = (text: string, start_index: number) => [
      {
        type: 'output_text',
        text,
        annotations: [{ type: 'url_citation', start_index, end_index: 2, url: 'https://a.test' }],
      },
    ]
    const way = { type: 'message', phase: 'commentary', content: cited('Let me see.', 0) }
    const answer = { type: 'message', phase: 'final_answer', content: cited('It is.', 1) }
    const said = (output: JsonObject[]) => getObject(getObjects(chat(aResponse({ output })).choices)[0]?.message)
    expect(said([way, answer])).toMatchObject({
      content: 'It is.',
      annotations: [{ url_citation: { start_index: 1 } }],
    })
    expect(said([way, aCall(1, '{}')])).toMatchObject({ content: 'Let me see.', tool_calls: [{ id: 'call_1' }] })
    expect(said([way]).content).toBe('Let me see.')
    for (const text of ['', undefined])
      expect(said([way, { ...answer, content: [{ type: 'output_text', text }] }]).content).toBe('Let me see.')
    expect(said([way, { ...answer, content: [] }, answer]).content).toBe('It is.')
  })

  test('of a collected stream with text and parallel calls', () => {
    const events = [...reasoningEvents(0), ...callEvents(1, '{"a":1}'), ...callEvents(2, '{}'), completed()]
    expect(chat(collect(events))).toEqual({
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 1,
      model: 'mine',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: null,
            reasoning_content: 'hm',
            refusal: null,
            tool_calls: [
              { id: 'call_1', type: 'function', function: { name: 'tool_1', arguments: '{"a":1}' } },
              { id: 'call_2', type: 'function', function: { name: 'tool_2', arguments: '{}' } },
            ],
          },
          logprobs: null,
          finish_reason: 'tool_calls',
        },
      ],
      usage: {
        prompt_tokens: 24,
        completion_tokens: 58,
        total_tokens: 82,
        prompt_tokens_details: { cached_tokens: 7 },
        completion_tokens_details: { reasoning_tokens: 5 },
      },
    })
  })

  test.each<[string, JsonObject, JsonObject, string]>([
    ['text', { output: [aMessage('a'), aMessage('b')] }, { content: 'ab', refusal: null }, 'stop'],
    ['refusal', { output: [refused] }, { content: null, refusal: 'no' }, 'stop'],
    ['nothing', {}, { content: '', refusal: null }, 'stop'],
    [
      'thoughts beside text',
      { output: [{ type: 'reasoning', content: [{ type: 'reasoning_text', text: 'hm' }] }, aMessage('a')] },
      { content: 'a', refusal: null },
      'stop',
    ],
    [
      'a call of a custom tool',
      { output: [{ type: 'custom_tool_call', call_id: 'c', name: 'patch', input: 'any text' }] },
      {
        content: null,
        refusal: null,
        tool_calls: [{ id: 'c', type: 'custom', custom: { name: 'patch', input: 'any text' } }],
      },
      'tool_calls',
    ],
    [
      'cut short',
      { output: [aMessage('a')], incomplete_details: { reason: 'max_output_tokens' } },
      { content: 'a', refusal: null },
      'length',
    ],
    [
      'filtered',
      { incomplete_details: { reason: 'content_filter' } },
      { content: '', refusal: null },
      'content_filter',
    ],
  ])('%s', (_, extra, message, finish_reason) => {
    expect(chat(aResponse(extra)).choices).toEqual([
      { index: 0, message: { role: 'assistant', ...message } as object, logprobs: null, finish_reason },
    ])
  })

  test('of texts with citations, each at its position in the whole', () => {
    const citation = (text: string, start_index: number) => ({
      type: 'message',
      content: [
        {
          type: 'output_text',
          text,
          annotations: [{ type: 'url_citation', start_index, end_index: 2, url: 'u', title: 't' }],
        },
      ],
    })
    const { message } = (
      chat(aResponse({ output: [citation('abc', 0), citation('de', 1)] })).choices as { message: JsonObject }[]
    )[0]!
    expect(message.annotations).toEqual(
      [
        [0, 2],
        [4, 5],
      ].map(([start_index, end_index]) => ({
        type: 'url_citation',
        url_citation: { start_index, end_index, url: 'u', title: 't' },
      })),
    )
  })

  test('counts tokens written to the cache if the upstream does', () => {
    const input_tokens_details = { cached_tokens: 1, cache_write_tokens: 2 }
    const usage = chat(aResponse({ usage: { input_tokens: 3, input_tokens_details, output_tokens: 4 } })).usage
    expect(usage).toMatchObject({ prompt_tokens_details: input_tokens_details })
  })

  test('adds up missing counts, or has none', () => {
    expect(chat(aResponse({ usage: { input_tokens: 3, output_tokens: 4 } })).usage).toEqual({
      prompt_tokens: 3,
      completion_tokens: 4,
      total_tokens: 7,
      prompt_tokens_details: { cached_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 0 },
    })
  })

  test('without usage has none, and a failed response is thrown', () => {
    for (const usage of [null, { input_tokens: 1 }, { output_tokens: 1 }])
      expect('usage' in chat(aResponse({ usage }))).toBe(false)
    expect(() => chat({ status: 'failed', error: { code: 'x', message: 'y' } })).toThrow(
      expect.objectContaining({ code: 'upstream_error', message: 'y' }),
    )
  })
})
