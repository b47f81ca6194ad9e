/** Messages streams as the Anthropic SDK reads them, and the same answer as one document. */
import { describe, expect, test } from 'bun:test'
import { MessageStream } from '@anthropic-ai/sdk/lib/MessageStream'
import fc from 'fast-check'
import { AppError } from '../../../src/errors.ts'
import { getObject, getObjects, type JsonObject } from '../../../src/lib/json.ts'
import { decodeUtf8 } from '../../../src/lib/utf8.ts'
import { ResponseCollector } from '../../../src/proxy/formats/collect.ts'
import { MessagesStream, messageFromResponse } from '../../../src/proxy/formats/messages-stream.ts'
import type { ResponsesEvent } from '../../../src/proxy/formats/responses-event.ts'
import { holdsAwaited } from '../../support/property.ts'
import { callEvents, completed, messageEvents, opening, reasoningEvents } from './streams.ts'

const SHAPE = {
  id: 'msg_1',
  model: 'claude-opus-4-5',
  names: new Map([['tool_2', 'the long name of tool 2']]),
  showsThinking: true,
  stopSequences: [] as string[],
  maxTextChars: null as number | null,
}

const aStream = (more: Partial<typeof SHAPE> = {}) =>
  new MessagesStream({ ...SHAPE, ...more, requestId: 'req_1', errors: (err) => err })

const run = (events: readonly ResponsesEvent[], stream = aStream()): string =>
  events
    .flatMap((event) => (stream.needs(event.type) ? stream.push(event) : []))
    .map(decodeUtf8)
    .join('')

const parse = (text: string): JsonObject[] =>
  text
    .split('\n\n')
    .slice(0, -1)
    .map((block) => {
      const [name, data] = block.split('\n')
      const event = JSON.parse(data!.slice(6))
      expect(name).toBe(`event: ${event.type}`)
      return event
    })

/** The message as the SDK's accumulator reads it, without the member the SDK adds. */
const accumulated = async (events: readonly JsonObject[]): Promise<JsonObject> => {
  const lines = events.map((event) => `${JSON.stringify(event)}\n`).join('')
  const stream = MessageStream.fromReadableStream(new Response(lines).body!)
  const { parsed_output: _, ...message } = JSON.parse(JSON.stringify(await stream.finalMessage()))
  return message
}

const collected = (events: readonly ResponsesEvent[]): JsonObject => {
  const collector = new ResponseCollector()
  for (const event of events) if (collector.needs(event.type)) collector.push(event)
  return collector.result()
}

const content = (message: JsonObject) => getObjects(message.content)
const answer = async (events: readonly ResponsesEvent[], more: Partial<typeof SHAPE> = {}) =>
  accumulated(parse(run(events, aStream(more))))

describe('a Messages stream', () => {
  test('has thinking with its signature, text, and tool calls under their own names', async () => {
    const message = await answer([
      ...opening,
      ...reasoningEvents(0),
      ...messageEvents(1, 'Hel', 'lo'),
      ...callEvents(2, '{"a"', ':1}'),
      completed(),
    ])
    expect(content(message)).toEqual([
      { type: 'thinking', thinking: 'hm', signature: 'sluice1.rs_1.x' },
      { type: 'text', text: 'Hello' },
      { type: 'tool_use', id: 'call_2', name: 'the long name of tool 2', input: { a: 1 } },
    ])
    expect(message).toMatchObject({
      model: 'claude-opus-4-5',
      stop_reason: 'tool_use',
      usage: { input_tokens: 17, cache_read_input_tokens: 7, output_tokens: 58 },
    })
  })

  test('has one thinking block per reasoning item, with its parts apart and its signature once, from the finished item', async () => {
    const item = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'early' }
    const summary = ['one', 'two'].map((text) => ({ type: 'summary_text', text }))
    const part = (summary_index: number, delta: string) => ({
      type: 'response.reasoning_summary_text.delta',
      output_index: 0,
      summary_index,
      delta,
    })
    const done = { ...item, summary, encrypted_content: 'final' }
    const text = run([
      { type: 'response.output_item.added', output_index: 0, item },
      part(0, 'o'),
      part(0, 'ne'),
      part(1, 'two'),
      { type: 'response.output_item.done', output_index: 0, item: done },
      completed({ output: [done] }),
    ])
    expect(text.split('signature_delta')).toHaveLength(2)
    expect(content(await accumulated(parse(text)))).toEqual([
      { type: 'thinking', thinking: 'one\n\ntwo', signature: 'sluice1.rs_1.final' },
    ])
  })

  test('shows interleaved parallel calls one after another', async () => {
    const [first, second] = [callEvents(0, '{"a"', ':1}'), callEvents(1, '{"b"', ':2}')]
    const mixed = first.flatMap((event, index) => [event, second[index]!])
    const events = parse(run([...mixed, completed()]))
    const indices = events.flatMap(({ index }) => (typeof index === 'number' ? [index] : []))
    expect(indices).toEqual(indices.toSorted())
    expect(content(await accumulated(events)).map(({ input }) => input)).toEqual([{ a: 1 }, { b: 2 }])
  })

  test('has what only the last event has', async () => {
    const output = [
      { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'secret' },
      { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'Bash', arguments: '' },
    ]
    expect(content(await answer([...opening, completed({ output })]))).toEqual([
      { type: 'thinking', thinking: '', signature: 'sluice1.rs_1.secret' },
      { type: 'tool_use', id: 'call_1', name: 'Bash', input: {} },
    ])
  })

  test('has a call without an item id once', async () => {
    const item = { type: 'function_call', call_id: 'call_1', name: 'Bash', arguments: '{"a":1}' }
    const events = [
      ...opening,
      { type: 'response.output_item.added', output_index: 0, item: { ...item, arguments: '' } },
      { type: 'response.output_item.done', output_index: 0, item },
    ]
    expect(content(await answer([...events, completed({ output: [item] })]))).toEqual([
      { type: 'tool_use', id: 'call_1', name: 'Bash', input: { a: 1 } },
    ])
  })

  test('that is cut off inside a call does not ask the client to run it', async () => {
    const item = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'Write', arguments: '{"path":"/a","te' }
    const end = completed({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' }, output: [item] })
    expect(await answer([...opening, { ...end, type: 'response.incomplete' }])).toMatchObject({
      stop_reason: 'max_tokens',
    })
  })

  const called = (text: string, name = 'Write') =>
    ({ type: 'function_call', id: 'fc_1', call_id: 'call_1', name, arguments: text }) as const
  const cutBy = (reason: string, output: JsonObject[] = []) => ({
    ...completed({ status: 'incomplete', incomplete_details: { reason }, output }),
    type: 'response.incomplete',
  })

  test.each([
    ['max_output_tokens', 'max_tokens', '{"path":"/a","te'],
    ['max_output_tokens', 'max_tokens', '{"command":"rm -rf /'],
    ['content_filter', 'refusal', '['],
  ])('leaves out a call that was cut by %s from the document', async (reason, stop_reason, text) => {
    const events = [...messageEvents(0, 'Hi'), ...callEvents(1, text), cutBy(reason)]
    const message = messageFromResponse(collected(events), SHAPE)
    expect(message).toMatchObject({ stop_reason, content: [{ type: 'text', text: 'Hi' }] })
    expect(content(message)).toHaveLength(1)
    expect(await answer(events)).toMatchObject({ stop_reason })
    expect(content(await answer([...opening, cutBy(reason, [called(text)])]))).toEqual([])
  })

  test.each(['{"path":"/a","te', 'ls -l', '[1]', '{"a":1}}', 'null'])('with the arguments %j fails', (text) => {
    const events = [...messageEvents(0, 'Hi'), ...callEvents(1, text), completed()]
    const message = 'The model called the tool “tool_1” with arguments that are not a JSON object.'
    const streamed = parse(run(events))
    expect(streamed.at(-1)).toMatchObject({ type: 'error', error: { type: 'api_error', message } })
    expect(streamed.map(({ type }) => type)).not.toContain('message_stop')
    expect(streamed[0]?.type).toBe('message_start')
    expect(() => messageFromResponse(collected(events), SHAPE)).toThrow(message)
  })

  test.each(['', ' '])('with the arguments %j calls the tool without input', async (text) => {
    const message = messageFromResponse(collected([completed({ output: [called(text)] })]), SHAPE)
    expect(message).toMatchObject({ stop_reason: 'tool_use', content: [{ name: 'Write', input: {} }] })
  })

  test('without any output fails', async () => {
    const empty = completed({ usage: null })
    const streamed = parse(run([...opening, empty]))
    expect(streamed.map(({ type }) => type)).toEqual(['message_start', 'error'])
    expect(streamed.at(-1)).toMatchObject({ error: { type: 'api_error', message: 'The model returned no answer.' } })
    expect(() => messageFromResponse(collected([empty]), SHAPE)).toThrow('The model returned no answer.')
    expect(() => messageFromResponse({}, SHAPE)).toThrow('The model returned no answer.')
  })

  test.each([
    ['hidden thinking', [...reasoningEvents(0), completed({ usage: null })], { showsThinking: false }, 'end_turn'],
    ['an empty text', [...messageEvents(0, ''), completed({ usage: null })], {}, 'end_turn'],
    ['tokens that are not shown', [completed()], {}, 'end_turn'],
    ['a filter', [cutBy('content_filter')], {}, 'refusal'],
    ['a limit', [{ ...cutBy('max_output_tokens'), usage: null }], {}, 'max_tokens'],
    ['a stop sequence', [...messageEvents(0, 'Hi'), completed()], { stopSequences: ['H'] }, 'stop_sequence'],
  ])('with only %s is an empty message', async (_name, events, more, stop_reason) => {
    const message = await answer([...opening, ...events], more)
    expect(message).toMatchObject({ stop_reason, content: [] })
    expect(messageFromResponse(collected(events), { ...SHAPE, ...more })).toEqual(message)
  })

  test('has no empty text where the limit is reached', async () => {
    const events = [...messageEvents(0, 'abcd'), ...messageEvents(1, 'more'), completed()]
    const streamed = parse(run(withMessageIds(events), aStream({ maxTextChars: 4 })))
    expect(streamed.filter(({ type }) => type === 'content_block_start')).toHaveLength(1)
    expect(streamed.filter(({ type }) => type === 'content_block_delta')).toHaveLength(1)
    expect(streamed.at(-2)).toMatchObject({ delta: { stop_reason: 'max_tokens' } })
    const split = parse(run([...messageEvents(0, 'abcd', 'e'), completed()], aStream({ maxTextChars: 4 })))
    expect(split.filter(({ type }) => type === 'content_block_delta')).toHaveLength(1)
    const half = parse(run([...messageEvents(0, 'abc', '😀'), completed()], aStream({ maxTextChars: 4 })))
    expect(half.filter(({ type }) => type === 'content_block_delta')).toHaveLength(1)
  })

  test.each([
    ['max_output_tokens', 'max_tokens'],
    ['content_filter', 'refusal'],
  ])('cut short by %s stops with %s', async (reason, stop_reason) => {
    const end = { ...completed({ status: 'incomplete', incomplete_details: { reason } }), type: 'response.incomplete' }
    expect(await answer([...messageEvents(0, 'Hel'), end])).toMatchObject({ stop_reason })
  })

  test('ends at a stop sequence, wherever the deltas break it', async () => {
    const events = [...messageEvents(0, '<block>no</bl', 'ock> and', ' more'), completed()]
    const message = await answer(events, { stopSequences: ['</block>'] })
    expect(content(message)).toEqual([{ type: 'text', text: '<block>no' }])
    expect(message).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: '</block>' })
    const harmless = await answer([...messageEvents(0, 'a </bl', 'a'), completed()], { stopSequences: ['</block>'] })
    expect(content(harmless)).toEqual([{ type: 'text', text: 'a </bla' }])
  })

  test('ends at the limit of a short request, and leaves out later calls', async () => {
    const events = [...messageEvents(0, 'Hel', 'lo there'), ...callEvents(1, '{}'), completed()]
    const message = await answer(events, { maxTextChars: 4 })
    expect(content(message)).toEqual([{ type: 'text', text: 'Hell' }])
    expect(message).toMatchObject({ stop_reason: 'max_tokens', stop_sequence: null })
    expect(messageFromResponse(collected(events), { ...SHAPE, maxTextChars: 4 })).toEqual(message)
    expect(content(await answer([...messageEvents(0, 'abc😀'), completed()], { maxTextChars: 4 }))).toEqual([
      { type: 'text', text: 'abc' },
    ])
    const short = await answer([...messageEvents(0, 'Hell'), completed()], { maxTextChars: 4 })
    expect(short).toMatchObject({ stop_reason: 'end_turn', content: [{ text: 'Hell' }] })
    const stopped = { maxTextChars: 256, stopSequences: ['</block>'] }
    expect(await answer([...messageEvents(0, '<block>no</block>'), completed()], stopped)).toMatchObject({
      stop_reason: 'stop_sequence',
    })
  })

  test('has no thinking when the client turned it off', async () => {
    const message = await answer([...reasoningEvents(0), ...messageEvents(1, 'Hi'), completed()], {
      showsThinking: false,
    })
    expect(content(message)).toEqual([{ type: 'text', text: 'Hi' }])
  })

  test('lists the pages of a web search', async () => {
    const action = { type: 'search', query: 'bun', sources: [{ type: 'url', url: 'https://bun.sh' }] }
    const item = { type: 'web_search_call', id: 'ws_1', status: 'completed', action }
    const done = { type: 'response.output_item.done', output_index: 0, item }
    const message = await answer([done, ...messageEvents(1, 'Found'), completed()])
    expect(content(message)).toMatchObject([
      { type: 'server_tool_use', name: 'web_search', input: { query: 'bun' } },
      { type: 'web_search_tool_result', content: [{ url: 'https://bun.sh' }] },
      { type: 'text', text: 'Found' },
    ])
    expect(message.usage).toMatchObject({ server_tool_use: { web_search_requests: 1 } })
  })

  test('cites the pages that the text is from', async () => {
    const text = 'Bun is fast. It is.'
    const annotations = [
      { type: 'url_citation', url: 'https://bun.sh', title: 'Bun', start_index: 0, end_index: 12 },
      { type: 'file_citation', file_id: 'file_1', index: 3 },
      { type: 'url_citation', url: 'https://bun.sh/docs' },
    ]
    const item = { type: 'message', id: 'msg_1', content: [{ type: 'output_text', text, annotations }] }
    const events = [
      ...messageEvents(0, text).slice(0, -1),
      { type: 'response.output_item.done', output_index: 0, item },
      completed(),
    ]
    const message = await answer(events)
    const location = { type: 'web_search_result_location', encrypted_index: '' }
    expect(content(message)).toEqual([
      {
        type: 'text',
        text,
        citations: [
          { ...location, url: 'https://bun.sh', title: 'Bun', cited_text: 'Bun is fast.' },
          { ...location, url: 'https://bun.sh/docs', title: null, cited_text: '' },
        ],
      },
    ])
    expect(messageFromResponse(collected(events), SHAPE)).toEqual(message)
  })

  test('does not show a page that was opened as a search', async () => {
    const item = { type: 'web_search_call', id: 'ws_1', action: { type: 'open_page', url: 'https://bun.sh' } }
    const done = { type: 'response.output_item.done', output_index: 0, item }
    const message = await answer([done, ...messageEvents(1, 'Read'), completed()])
    expect(content(message)).toEqual([{ type: 'text', text: 'Read' }])
  })

  test('that fails ends with one error event', () => {
    const stream = aStream()
    const failed = { type: 'response.failed', response: { error: { code: 'server_error', message: 'Broken.' } } }
    const events = parse(run([...messageEvents(0, 'Hel').slice(0, 2), failed, completed()], stream))
    expect(events.at(-1)).toEqual({
      type: 'error',
      error: { type: 'api_error', message: 'Broken.', details: { error_code: 'server_error' } },
      request_id: 'req_1',
    })
    expect(events.filter(({ type }) => type === 'error' || type === 'message_stop')).toHaveLength(1)
    expect(stream.fail(new AppError('stream_incomplete'))).toHaveLength(0)
  })
})

/** Random items, each whole; the events of parallel items are interleaved. */
const anItem = fc.oneof(
  fc.record({
    kind: fc.constant('text' as const),
    pieces: fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 4 }),
    cited: fc.array(fc.webUrl(), { maxLength: 2 }),
  }),
  fc.record({
    kind: fc.constant('search' as const),
    query: fc.string(),
    pages: fc.array(fc.webUrl(), { maxLength: 2 }),
  }),
  fc.record({ kind: fc.constant('call' as const), value: fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 3 }) }),
  fc.record({
    kind: fc.constant('reasoning' as const),
    summaries: fc.array(fc.string(), { maxLength: 3 }),
    ciphertext: fc.option(fc.stringMatching(/^[A-Za-z0-9_-]{1,30}$/)),
  }),
)
type AnItem = typeof anItem extends fc.Arbitrary<infer T> ? T : never

const eventsOf = (one: AnItem, index: number, cut: number): ResponsesEvent[] => {
  if (one.kind === 'text') return withIds(messageEvents(index, ...one.pieces), `msg_${index}`, one.cited)
  if (one.kind === 'search') return searchEvents(one, index)
  if (one.kind === 'call') {
    const text = JSON.stringify(one.value)
    const at = Math.min(cut, text.length)
    return callEvents(index, text.slice(0, at), text.slice(at))
  }
  const summary = one.summaries.map((text) => ({ type: 'summary_text', text }))
  const item = { type: 'reasoning', id: `rs_${index}`, summary: [] }
  return [
    { type: 'response.output_item.added', output_index: index, item },
    ...one.summaries.map((delta, summary_index) => ({
      type: 'response.reasoning_summary_text.delta',
      output_index: index,
      summary_index,
      delta,
    })),
    {
      type: 'response.output_item.done',
      output_index: index,
      item: { ...item, summary, ...(one.ciphertext !== null && { encrypted_content: one.ciphertext }) },
    },
  ]
}

const withIds = (events: ResponsesEvent[], id: string, cited: readonly string[]): ResponsesEvent[] => {
  const annotations = cited.map((url) => ({ type: 'url_citation', url, start_index: 0, end_index: 2 }))
  return events.map((event) => {
    if (!('item' in event)) return event
    const item = getObject(event.item)
    const content = getObjects(item.content).map((part) => ({ ...part, annotations }))
    return { ...event, item: { ...item, id, content } }
  })
}

const searchEvents = ({ query, pages }: { query: string; pages: readonly string[] }, index: number) => {
  const item = { type: 'web_search_call', id: `ws_${index}` }
  const action = { type: 'search', query, sources: pages.map((url) => ({ type: 'url', url })) }
  return [
    { type: 'response.output_item.added', output_index: index, item },
    { type: 'response.output_item.done', output_index: index, item: { ...item, action } },
  ]
}

/** Messages with an id of their own each. */
const withMessageIds = (events: readonly ResponsesEvent[]): ResponsesEvent[] =>
  events.map(({ item_id: _, ...event }) =>
    'item' in event ? { ...event, item: { ...getObject(event.item), id: `msg_${event.output_index}` } } : event,
  )

/** The items begin in order; their other events mix as `picks` says. */
const interleaved = (lists: ResponsesEvent[][], picks: readonly number[]): ResponsesEvent[] => {
  const begun = lists.map(([first]) => first!)
  const rest = lists.map((list) => list.slice(1))
  const mixed: ResponsesEvent[] = []
  for (let turn = 0; rest.some(({ length }) => length > 0); turn++) {
    const open = rest.filter(({ length }) => length > 0)
    mixed.push(open[(picks[turn % picks.length] ?? 0) % open.length]!.shift()!)
  }
  return [...begun, ...mixed]
}

describe('every stream', () => {
  test('is accepted by the accumulator of the Anthropic SDK and equals the document of the same response', async () => {
    await holdsAwaited(
      fc.asyncProperty(
        fc.array(anItem, { maxLength: 5 }),
        fc.array(fc.nat(9), { minLength: 1, maxLength: 20 }),
        fc.nat(12),
        fc.boolean(),
        fc.record({
          showsThinking: fc.boolean(),
          stopSequences: fc.array(fc.string({ minLength: 1, maxLength: 2 }), { maxLength: 2 }),
          maxTextChars: fc.option(fc.integer({ min: 1, max: 30 })),
        }),
        async (items, picks, cut, isParallel, wishes) => {
          const lists = items.map((one, index) => eventsOf(one, index, cut))
          const said = isParallel ? interleaved(lists, picks) : lists.flat()
          const events = [...opening, ...said, completed()]
          const streamed = parse(run(events, aStream(wishes)))
          expect(streamed.filter(({ type }) => type === 'message_stop')).toHaveLength(1)
          const message = messageFromResponse(collected(events), { ...SHAPE, ...wishes })
          expect(await accumulated(streamed)).toEqual(message)
        },
      ),
      300,
    )
  })
})
