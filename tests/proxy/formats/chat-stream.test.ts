/** Chat streams have the content of the Responses stream, once, and end as chat clients expect. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { AppError } from '../../../src/errors.ts'
import { getObjects, type JsonObject } from '../../../src/lib/json.ts'
import { chatFromResponse } from '../../../src/proxy/formats/chat-json.ts'
import { ChatStream } from '../../../src/proxy/formats/chat-stream.ts'
import type { ResponsesEvent } from '../../../src/proxy/formats/responses-event.ts'
import { holds } from '../../support/property.ts'
import {
  aCall,
  aMessage,
  callEvents,
  completed,
  messageEvents,
  opening,
  phaseEvents,
  reasoningEvents,
} from './streams.ts'

interface Delta {
  role?: string
  content?: string | null
  reasoning_content?: string
  refusal?: string
  annotations?: unknown[]
  tool_calls?: {
    index: number
    id?: string
    type?: string
    function: { name?: string; arguments: string }
    custom?: { name?: string; input: string }
  }[]
}
interface Chunk {
  choices: { index: number; delta: Delta; finish_reason: string | null }[]
  usage?: unknown
}

const aStream = (includeUsage = false, isJson = false) =>
  new ChatStream({ id: 'chatcmpl-1', created: 1_700_000_000, model: 'mine', includeUsage, isJson, isLegacy: false })
const getText = (bytes: Uint8Array | null) => (bytes ? new TextDecoder().decode(bytes) : '')

/** Like the real caller: unneeded events are not even pushed. */
const run = (events: ResponsesEvent[], stream: ChatStream = aStream()): string =>
  events.map((event) => (stream.needs(event.type) ? getText(stream.push(event)) : '')).join('')

const frames = (text: string): string[] => {
  expect(text === '' || text.endsWith('\n\n')).toBe(true)
  return text
    .split('\n\n')
    .slice(0, -1)
    .map((frame) => frame.replace(/^data: /, ''))
}
const chunks = (text: string): Chunk[] =>
  frames(text)
    .filter((data) => data !== '[DONE]')
    .map((data) => JSON.parse(data))
const deltas = (text: string) => chunks(text).flatMap((chunk) => chunk.choices.map((choice) => choice.delta))
const finish = (text: string) =>
  chunks(text)
    .map((chunk) => chunk.choices[0]?.finish_reason)
    .filter(Boolean)

/** What a client library builds from the tool call deltas. */
const assembledCalls = (text: string) => {
  const calls: { id: string; name: string; arguments: string }[] = []
  for (const delta of deltas(text).flatMap((one) => one.tool_calls ?? [])) {
    const known = calls[delta.index]
    if (known) known.arguments += delta.function.arguments
    else
      calls[delta.index] = {
        id: delta.id ?? '?',
        name: delta.function.name ?? '?',
        arguments: delta.function.arguments,
      }
  }
  return calls
}

describe('reasoning', () => {
  const summary = (...texts: string[]) => texts.map((text) => ({ type: 'summary_text', text }))
  const reasoning = (...texts: string[]) => ({ type: 'reasoning', id: 'rs_1', summary: summary(...texts) })
  const part = (type: string, summary_index: number, more: JsonObject): ResponsesEvent => ({
    type: `response.reasoning_summary_text.${type}`,
    output_index: 0,
    summary_index,
    ...more,
  })
  const message = messageEvents(1, 'Hello')
  const done = (item: JsonObject) => ({ type: 'response.output_item.done', output_index: 0, item })
  test.each<[string, ResponsesEvent[]]>([
    [
      'in deltas',
      [
        part('delta', 0, { delta: 'one ' }),
        part('delta', 0, { delta: 'two' }),
        part('done', 0, { text: 'one two' }),
        part('delta', 1, { delta: 'three' }),
        done(reasoning('one two', 'three')),
        ...message,
      ],
    ],
    ['in finished texts', [part('done', 0, { text: 'one two' }), part('done', 1, { text: 'three' }), ...message]],
    ['in the finished item', [done(reasoning('one two', 'three')), ...message]],
    ['in the response alone', [completed({ output: [reasoning('one two', 'three'), aMessage('Hello')] })]],
    [
      'half in deltas',
      [part('delta', 0, { delta: 'one' }), done(reasoning('one two', 'three')), done(reasoning()), ...message],
    ],
  ])('%s appears once, before the text', (_, events) => {
    const said = deltas(run([...opening, ...events, completed()]))
    expect(said.map(({ reasoning_content }) => reasoning_content ?? '').join('')).toBe('one two\n\nthree')
    expect(said.map(({ content }) => content ?? '').join('')).toBe('Hello')
    const firstText = said.findIndex(({ content }) => content)
    expect(said.findLastIndex(({ reasoning_content }) => reasoning_content)).toBeLessThan(firstText)
    expect(said.filter(({ role }) => role)).toHaveLength(1)
  })

  test('appears from a complete response, of all its items', () => {
    const output = [reasoning('one two'), aCall(0, '{}'), reasoning(), reasoning('three')]
    const chat = chatFromResponse(
      { output },
      { id: 'chatcmpl-1', created: 1, model: 'mine', isJson: false, isLegacy: false },
    )
    expect(chat).toMatchObject({ choices: [{ message: { content: null, reasoning_content: 'one two\n\nthree' } }] })
    const silent = chatFromResponse(
      { output: [reasoning()] },
      { id: 'c', created: 1, model: 'm', isJson: true, isLegacy: false },
    )
    expect(JSON.stringify(silent)).not.toContain('reasoning_content')
  })
})

describe('text', () => {
  test('a complete response, chunk by chunk', () => {
    const text = run([
      ...opening,
      ...reasoningEvents(0),
      ...messageEvents(1, 'Hel', 'lo'),
      completed({ output: [aMessage('Hello')] }),
    ])
    const chunk = (delta: JsonObject, finish_reason: string | null = null) => ({
      id: 'chatcmpl-1',
      object: 'chat.completion.chunk',
      created: 1_700_000_000,
      model: 'mine',
      choices: [{ index: 0, delta, finish_reason }],
    })
    expect(chunks(text) as unknown).toEqual([
      chunk({ role: 'assistant', content: null, reasoning_content: 'hm' }),
      chunk({ content: 'Hel' }),
      chunk({ content: 'lo' }),
      chunk({}, 'stop'),
    ])
    expect(frames(text).at(-1)).toBe('[DONE]')
  })

  test.each<[string, ResponsesEvent[]]>([
    [
      'only the final text event',
      [{ type: 'response.output_text.done', output_index: 0, content_index: 0, text: 'Hello' }, completed()],
    ],
    [
      'only the finished item',
      [{ type: 'response.output_item.done', output_index: 0, item: aMessage('Hello') }, completed()],
    ],
    [
      'a finished item that ends once more without its content',
      [
        ...messageEvents(0, 'Hel', 'lo'),
        { type: 'response.output_item.done', output_index: 0, item: { ...aMessage(''), content: [] } },
        completed(),
      ],
    ],
    [
      'only the finished response, whose reasoning is no answer',
      [
        completed({
          output: [{ type: 'reasoning', content: [{ type: 'reasoning_text', text: 'hm' }] }, aMessage('Hello')],
        }),
      ],
    ],
    [
      'deltas only',
      [{ type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'Hello' }, completed()],
    ],
    [
      'deltas without an index',
      [
        { type: 'response.output_text.delta', delta: 'Hel' },
        { type: 'response.output_item.done', output_index: 0, item: aMessage('Hello') },
        completed(),
      ],
    ],
    [
      'a response whose positions are not the output indexes',
      [...messageEvents(3, 'Hel', 'lo'), completed({ output: [aMessage('Hello')] })],
    ],
  ])('arrives once from %s', (_, events) => {
    expect(
      deltas(run(events))
        .map((delta) => delta.content ?? '')
        .join(''),
    ).toBe('Hello')
  })

  test('the citations of a message follow its text, at their position in the whole text', () => {
    const citation = { type: 'url_citation', start_index: 1, end_index: 4, url: 'https://a.test', title: 'A' }
    const file = { type: 'file_citation', file_id: 'file_1', index: 0 }
    const content = [{ type: 'output_text', text: 'It is.', annotations: [citation, file] }]
    const cited = { ...aMessage('It is.'), content }
    const events = [
      ...messageEvents(0, 'Wait.'),
      ...messageEvents(1, 'It is.').slice(0, -1),
      { type: 'response.output_item.done', output_index: 1, item: cited },
    ]
    const [first, second, said, ...rest] = deltas(run([...events, completed({ output: [aMessage('Wait.'), cited] })]))
    expect([first, second]).toEqual([{ role: 'assistant', content: 'Wait.' }, { content: 'It is.' }])
    const url_citation = { start_index: 6, end_index: 9, url: 'https://a.test', title: 'A' }
    expect(said).toEqual({ annotations: [{ type: 'url_citation', url_citation }] })
    expect(rest).toEqual([{}])
    expect(deltas(run([completed({ output: [aMessage('Wait.'), cited] })])).at(-2)).toEqual(said)
  })

  test('each part of each message is completed separately', () => {
    const delta = (output_index: number, content_index: number, text: string) => ({
      type: 'response.output_text.delta',
      output_index,
      content_index,
      delta: text,
    })
    const done = (output_index: number, ...texts: string[]) => ({
      type: 'response.output_item.done',
      output_index,
      item: { type: 'message', content: texts.map((text) => ({ type: 'output_text', text })) },
    })
    const text = run([delta(0, 0, 'a'), delta(0, 1, 'bc'), delta(1, 0, 'def'), done(0, 'ax', 'bcy'), done(1, 'defz')])
    expect(deltas(text).map(({ content }) => content)).toEqual(['a', 'bc', 'def', 'x', 'y', 'z'])
  })

  describe('commentary', () => {
    const contents = (events: ResponsesEvent[]) => deltas(run(events)).flatMap(({ content }) => content || [])
    const said = (text: string, phase: string): JsonObject => ({ ...aMessage(text), phase })

    test('before a final answer is replaced by it, even if both are equal', () => {
      const events = [
        ...phaseEvents('commentary', 0, 'Let me', ' see.'),
        ...phaseEvents('final_answer', 1, 'It ', 'is.'),
      ]
      expect(contents([...events, completed()])).toEqual(['It ', 'is.'])
      const output = [said('It is.', 'commentary'), said('It is.', 'final_answer')]
      expect(contents([completed({ output })])).toEqual(['It is.'])
      expect(contents([...events, completed({ output })])).toEqual(['It ', 'is.'])
    })

    test('is shown if the final answer was begun and never finished', () => {
      const events = [...phaseEvents('commentary', 0, 'Let me', ' see.'), ...phaseEvents('final_answer', 1)]
      expect(contents([...events, completed()])).toEqual(['Let me see.'])
    })

    test('does not replace an answer when events do not identify their message', () => {
      const events = [
        ...phaseEvents('commentary', 0, 'Let me', ' see.'),
        ...phaseEvents('final_answer', 1, 'It ', 'is.'),
      ].map(({ output_index, ...event }): ResponsesEvent => ({ ...event, type: event.type }))
      expect(contents([...events, completed()])).toEqual(['It ', 'is.'])
    })

    const cites = (item: JsonObject, url = 'https://a.test'): JsonObject => {
      const [part] = getObjects(item.content)
      const annotations = [{ type: 'url_citation', start_index: 0, end_index: 2, url, title: 'A' }]
      return { ...item, content: [{ ...part, annotations }] }
    }

    test('leaves no citations behind', () => {
      const output = [cites(said('Let me see.', 'commentary')), cites(said('It is.', 'final_answer'))]
      const events = output.map((item, output_index) => ({ type: 'response.output_item.done', output_index, item }))
      const cited = deltas(run([...events, completed()])).flatMap((delta) => getObjects(delta.annotations))
      expect(cited).toMatchObject([{ url_citation: { start_index: 0, end_index: 2 } }])
    })

    test('before a call is in front of it', () => {
      const text = run([...phaseEvents('commentary', 0, 'Let me', ' see.'), ...callEvents(1, '{}'), completed()])
      expect(deltas(text)[0]).toEqual({ role: 'assistant', content: 'Let me see.' })
      expect(deltas(text)[1]?.tool_calls?.[0]?.id).toBe('call_1')
      expect(finish(text)).toEqual(['tool_calls'])
    })

    test('is shown if the document of the same response shows it', () => {
      const phase = fc.constantFrom(null, 'commentary' as const, 'partial_answer' as const, 'final_answer' as const)
      const pieces = fc.array(fc.string({ minLength: 1 }), { maxLength: 3 })
      const item = fc.oneof(fc.constant('call' as const), fc.record({ phase, pieces, isCited: fc.boolean() }))
      holds(
        fc.property(fc.array(item, { maxLength: 6 }), fc.boolean(), (items, isJson) => {
          const output = items.map((one, index) => {
            if (one === 'call') return aCall(index, '{}')
            const message = { ...aMessage(one.pieces.join('')), phase: one.phase }
            return one.isCited && one.pieces.length > 0 ? cites(message, `https://${index}.test`) : message
          })
          const events = items.flatMap((one, index) => {
            if (one === 'call') return callEvents(index, '{}')
            const said =
              one.phase === null ? messageEvents(index, ...one.pieces) : phaseEvents(one.phase, index, ...one.pieces)
            return said.map((event) =>
              event.type === 'response.output_item.done' ? { ...event, item: output[index] } : event,
            )
          })
          const { choices } = chatFromResponse(
            { output },
            { id: 'chatcmpl-1', created: 1, model: 'mine', isJson, isLegacy: false },
          )
          const [whole] = choices as { message: Delta }[] // as: what this function creates
          const sent = deltas(run([...events, completed()], aStream(false, isJson)))
          expect(sent.map(({ content }) => content ?? '').join('')).toBe(whole?.message.content ?? '')
          expect(sent.flatMap(({ annotations }) => annotations ?? [])).toEqual(whole?.message.annotations ?? [])
          expect(sent.filter(({ annotations }) => annotations).length).toBeLessThanOrEqual(1)
        }),
      )
    })

    test('keeps the citations of an item that ends again, complete or without it', () => {
      const item = cites(aMessage('It is.'))
      const done = (one: JsonObject) => ({ type: 'response.output_item.done', output_index: 0, item: one })
      for (const again of [item, { ...item, content: [] }]) {
        const text = run([...messageEvents(0, 'It is.').slice(0, -1), done(item), done(again), completed()])
        expect(deltas(text).flatMap(({ annotations }) => annotations ?? [])).toHaveLength(1)
      }
    })

    test('before a call, or an unlabeled answer, is omitted from JSON; if there is nothing else it is shown', () => {
      const before = phaseEvents('commentary', 0, 'Let me', ' see.')
      const json = (events: ResponsesEvent[]) =>
        deltas(run([...events, completed()], aStream(false, true))).flatMap(({ content }) => content || [])
      expect(json([...before, ...callEvents(1, '{}')])).toEqual([])
      expect(json([...before, ...messageEvents(1, '{}')])).toEqual(['{}'])
      expect(json([...messageEvents(0, '{}'), ...phaseEvents('commentary', 1, 'Done.')])).toEqual(['{}'])
      expect(json(before)).toEqual(['Let me see.'])
    })

    test('without an answer is the content', () => {
      expect(contents([...phaseEvents('commentary', 0, 'Let me', ' see.'), completed()])).toEqual(['Let me see.'])
      expect(contents([completed({ output: [said('Let me see.', 'commentary')] })])).toEqual(['Let me see.'])
    })
  })

  test('an event without new content has no chunk', () => {
    expect(aStream().push({ type: 'response.output_text.delta', output_index: 0, delta: '' })).toBeNull()
  })

  test('line separators inside the text cannot end a line', () => {
    const text = run(messageEvents(0, 'a\u2028b\u2029c\u0085d\ne'))
    expect(text).not.toMatch(/[\u2028\u2029\u0085]/)
    expect(deltas(text)[0]?.content).toBe('a\u2028b\u2029c\u0085d\ne')
  })

  test('an empty answer still has a role', () => {
    expect(deltas(run([completed()]))).toEqual([{ role: 'assistant', content: '' }, {}])
  })

  test('a refusal has its own field and ends with stop', () => {
    const text = run([
      { type: 'response.refusal.delta', output_index: 0, content_index: 0, delta: 'I can' },
      { type: 'response.refusal.done', output_index: 0, content_index: 0, refusal: 'I cannot' },
      completed(),
    ])
    expect(deltas(text)).toEqual([{ role: 'assistant', content: null, refusal: 'I can' }, { refusal: 'not' }, {}])
    expect(finish(text)).toEqual(['stop'])
    const item = { type: 'message', content: [{ type: 'refusal', refusal: 'no' }] }
    expect(deltas(run([{ type: 'response.output_item.done', output_index: 0, item }]))).toEqual([
      { role: 'assistant', content: null, refusal: 'no' },
    ])
  })
})

/** The same calls, of custom tools. */
const asCustom = (events: ResponsesEvent[]): ResponsesEvent[] =>
  JSON.parse(
    JSON.stringify(events)
      .replaceAll('function_call_arguments', 'custom_tool_call_input')
      .replaceAll('"function_call"', '"custom_tool_call"')
      .replaceAll('"arguments":', '"input":'),
  )

describe('tool calls', () => {
  test('parallel calls keep their indexes although their events interleave', () => {
    const [one, two] = [callEvents(1, '{"a"', ':1}'), callEvents(2, '{"b":', '2}')]
    const mixed = one.flatMap((event, i) => [event, two[i]!])
    const text = run([
      ...opening,
      ...reasoningEvents(0),
      ...mixed,
      completed({ output: [aCall(1, '{"a":1}'), aCall(2, '{"b":2}')] }),
    ])
    expect(assembledCalls(text)).toEqual([
      { id: 'call_1', name: 'tool_1', arguments: '{"a":1}' },
      { id: 'call_2', name: 'tool_2', arguments: '{"b":2}' },
    ])
    expect(finish(text)).toEqual(['tool_calls'])
    const sent = deltas(text).flatMap((delta) => delta.tool_calls ?? [])
    expect(sent.map((delta) => [delta.index, delta.id ?? null])).toEqual([
      [0, 'call_1'],
      [1, 'call_2'],
      [0, null],
      [1, null],
      [0, null],
      [1, null],
    ])
    expect(deltas(text)[0]).toMatchObject({ role: 'assistant', content: null })
    expect(deltas(text).filter((delta) => delta.role)).toHaveLength(1)
  })

  test.each<[string, ResponsesEvent[]]>([
    [
      'a finished item alone',
      [{ type: 'response.output_item.done', output_index: 1, item: aCall(1, '{"a":1}') }, completed()],
    ],
    ['the finished response alone', [completed({ output: [aCall(1, '{"a":1}')] })]],
    [
      'no deltas',
      [
        callEvents(1)[0]!,
        { type: 'response.function_call_arguments.done', item_id: 'fc_1', arguments: '{"a":1}' },
        completed(),
      ],
    ],
    ['deltas before the item', [...callEvents(1, '{"a"', ':1}').slice(1), completed()]],
    [
      'deltas before the item and after',
      (([begun, one, two]) => [one!, begun!, two!, completed()])(callEvents(1, '{"a"', ':1}')),
    ],
    [
      'deltas around the item, and the whole at its end',
      (([begun, one, ...rest]) => [one!, begun!, ...rest, completed()])(callEvents(1, '{"a"', ':1}')),
    ],
    ['the end of its text before the item', [callEvents(1, '{"a":1}')[2]!, callEvents(1)[0]!, completed()]],
    [
      'an item that ends under another id and index',
      [
        ...callEvents(1, '{"a"', ':1}').slice(0, 2),
        { type: 'response.output_item.done', output_index: 9, item: { ...aCall(1, '{"a":1}'), id: 'fc_9' } },
        completed(),
      ],
    ],
    [
      'item ids that change',
      [
        callEvents(1)[0]!,
        { type: 'response.function_call_arguments.delta', item_id: 'zz', output_index: 1, delta: '{"a":1}' },
        completed(),
      ],
    ],
    [
      'a response that contains the missing part',
      [...callEvents(1, '{"a"', ':1}').slice(0, 2), completed({ output: [aCall(1, '{"a":1}')] })],
    ],
    [
      'a response that repeats it elsewhere',
      [...callEvents(1, '{"a":1}'), completed({ output: [aCall(1, '{"a":1}')] })],
    ],
  ])('arrive once from %s', (_, events) => {
    const text = run(events)
    expect(assembledCalls(text)).toEqual([{ id: 'call_1', name: 'tool_1', arguments: '{"a":1}' }])
    expect(finish(text)).toEqual(['tool_calls'])
    const custom = run(asCustom(events))
    const sent = deltas(custom).flatMap((delta) => delta.tool_calls ?? [])
    expect(sent[0]).toMatchObject({ index: 0, id: 'call_1', type: 'custom', custom: { name: 'tool_1' } })
    expect(sent.map((delta) => delta.custom?.input).join('')).toBe('{"a":1}')
    expect(sent.filter((delta) => delta.function)).toEqual([])
    expect(finish(custom)).toEqual(['tool_calls'])
  })

  test('only in the finished response are emitted beside an earlier text', () => {
    const output = [aMessage('a'), aCall(1, '{}')]
    const text = run([...messageEvents(0, 'a'), completed({ output })])
    expect(assembledCalls(text)).toEqual([{ id: 'call_1', name: 'tool_1', arguments: '{}' }])
    expect(deltas(text).filter(({ content }) => content)).toHaveLength(1)
  })

  test('of both kinds coexist', () => {
    const [one, two] = [callEvents(1, '{"a"', ':1}'), asCustom(callEvents(2, 'any ', 'text'))]
    const sent = deltas(run([...one.flatMap((event, i) => [event, two[i]!]), completed()])).flatMap(
      (delta) => delta.tool_calls ?? [],
    )
    expect<unknown>(sent).toEqual([
      { index: 0, id: 'call_1', type: 'function', function: { name: 'tool_1', arguments: '' } },
      { index: 1, id: 'call_2', type: 'custom', custom: { name: 'tool_2', input: '' } },
      { index: 0, function: { arguments: '{"a"' } },
      { index: 1, custom: { input: 'any ' } },
      { index: 0, function: { arguments: ':1}' } },
      { index: 1, custom: { input: 'text' } },
    ])
  })

  test('a call id takes precedence over an output index', () => {
    const begun = [callEvents(1)[0]!, callEvents(2)[0]!]
    const misplaced = { type: 'response.output_item.done', output_index: 1, item: aCall(2, '{"b":2}') }
    expect(assembledCalls(run([...begun, misplaced])).map((call) => call.arguments)).toEqual(['', '{"b":2}'])
  })

  test('wherever the arguments are split, and whatever is lost, they concatenate to the whole', () => {
    const pieces = fc.array(fc.string({ maxLength: 12, unit: 'binary' }), { maxLength: 8 })
    const keep = fc.array(fc.boolean(), { minLength: 24, maxLength: 24 })
    fc.assert(
      fc.property(fc.array(pieces, { minLength: 1, maxLength: 3 }), keep, (calls, kept) => {
        // Deltas may be missing from some point on; the finished item always arrives.
        const sequences = calls.map((one, n) => {
          const cut = one.findIndex((_, i) => !kept[n * 8 + i])
          const seen = new Set(cut < 0 ? one.keys() : [...one.keys()].slice(0, cut))
          return callEvents(n, ...one).filter((_, i) => i === 0 || i > one.length + 1 || seen.has(i - 1))
        })
        const longest = Math.max(...sequences.map((events) => events.length))
        const mixed = Array.from({ length: longest }, (_, i) => sequences.flatMap((events) => events[i] ?? [])).flat()
        const text = run([...mixed, completed()])
        expect(assembledCalls(text).map((call) => call.arguments)).toEqual(calls.map((one) => one.join('')))
      }),
      { numRuns: 200 },
    )
  })
})

describe('the end', () => {
  test.each<[string, string, string]>([
    ['max_output_tokens', 'length', 'text'],
    ['max_tokens', 'length', 'text'],
    ['content_filter', 'content_filter', 'text'],
    ['max_output_tokens', 'length', 'call'],
    ['something_else', 'stop', 'text'],
  ])('incomplete by %s is %s (%s)', (reason, expected, kind) => {
    const events = kind === 'call' ? callEvents(0, '{}') : messageEvents(0, 'a')
    const response = { status: 'incomplete', incomplete_details: { reason } }
    const text = run([...events, { type: 'response.incomplete', response }])
    expect(finish(text)).toEqual([expected])
    expect(frames(text).at(-1)).toBe('[DONE]')
  })

  test('usage comes in its own chunk, and null before it', () => {
    const text = run([...messageEvents(0, 'a', 'b'), completed()], aStream(true))
    expect(chunks(text).map((chunk) => chunk.usage)).toEqual([
      null,
      null,
      null,
      {
        prompt_tokens: 24,
        completion_tokens: 58,
        total_tokens: 82,
        prompt_tokens_details: { cached_tokens: 7 },
        completion_tokens_details: { reasoning_tokens: 5 },
      },
    ])
    expect(chunks(text).at(-1)?.choices).toEqual([])
    expect(frames(text).at(-1)).toBe('[DONE]')
  })

  test('no usage is sent unrequested, and none is invented', () => {
    expect(chunks(run([completed()])).every((chunk) => !('usage' in chunk))).toBe(true)
    expect(chunks(run([completed({ usage: null })], aStream(true))).every((chunk) => chunk.usage === null)).toBe(true)
  })

  test.each<[string, ResponsesEvent]>([
    [
      'response.failed',
      { type: 'response.failed', response: { error: { code: 'server_is_overloaded', message: 'Busy.' } } },
    ],
    [
      'error, nested',
      { type: 'error', error: { type: 'server_error', code: 'server_is_overloaded', message: 'Busy.' } },
    ],
    ['error, flat', { type: 'error', code: 'server_is_overloaded', message: 'Busy.' }],
  ])('%s becomes one error and no [DONE]', (_, event) => {
    const stream = aStream(true)
    const text = run([...messageEvents(0, 'a'), event], stream)
    expect(JSON.parse(frames(text).at(-1)!)).toEqual({
      error: { message: 'Busy.', type: 'server_error', code: 'server_is_overloaded', param: null },
    })
    expect(text).not.toContain('[DONE]')
    expect(run([completed()], stream)).toBe('')
  })

  test('an internal error looks the same, and nothing follows an end', () => {
    const stream = aStream()
    expect(
      frames(getText(stream.fail(new AppError('stream_incomplete')))).map((data) => JSON.parse(data).error.code),
    ).toEqual(['stream_incomplete'])
    expect(getText(stream.fail(new AppError('internal_error')))).toBe('')
    expect(stream.push(completed())).toBeNull()
    const finished = aStream()
    run([completed()], finished)
    expect(getText(finished.fail(new AppError('internal_error')))).toBe('')
  })

  test('only events with chat content are needed', () => {
    const needed = ['response.output_text.delta', 'response.output_item.done', 'response.completed', 'error']
    const ignored = ['response.created', 'response.reasoning_summary_part.added', 'codex.rate_limits', 'toString', '']
    expect(needed.map((type) => aStream().needs(type))).toEqual(needed.map(() => true))
    expect(ignored.map((type) => aStream().needs(type))).toEqual(ignored.map(() => false))
  })
})

test('a stream without content so far begins with the role, once', () => {
  const stream = aStream()
  const opened = getText(stream.begin())
  expect(deltas(opened)).toEqual([{ role: 'assistant', content: '' }])
  expect(stream.begin()).toBeNull()
  expect(deltas(run(messageEvents(0, 'Hello'), stream))[0]).not.toHaveProperty('role')
  const spoken = aStream()
  run(messageEvents(0, 'Hello'), spoken)
  expect(spoken.begin()).toBeNull()
  const ended = aStream()
  ended.fail(new AppError('upstream_error'))
  expect(ended.begin()).toBeNull()
})
