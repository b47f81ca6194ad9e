/** The unary compact call and its two formats. */
import { describe, expect, test } from 'bun:test'
import { compactFromResponse, compactToResponses } from '../../../src/proxy/formats/compact.ts'
import { checkCompactionTrigger } from '../../../src/proxy/formats/compaction-trigger.ts'
import { aMessage, aResponse } from './streams.ts'

const trigger = { type: 'compaction_trigger' }
const user = { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'one' }] }
const developer = { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'rules' }] }
const reasoning = { type: 'reasoning', summary: [], content: null, encrypted_content: 'x' }
const item = { type: 'compaction', id: 'cmp_1', encrypted_content: 'secret' }

describe('trigger', () => {
  test.each<[string, unknown[], boolean]>([
    ['last', [user, trigger], true],
    ['alone', [trigger], true],
    ['none', [user], false],
  ])('%s', (_, input, expected) => {
    expect(checkCompactionTrigger(input)).toBe(expected)
  })

  test.each([[[trigger, user]], [[trigger, user, trigger]], [[trigger, trigger]]])('%j is rejected', (input) => {
    expect(() => checkCompactionTrigger(input)).toThrow(
      expect.objectContaining({
        code: 'invalid_request_error',
        status: 400,
        extra: expect.objectContaining({ param: 'input' }),
      }),
    )
  })
})

describe('request', () => {
  test('of the old native client', () => {
    const sent = {
      model: 'gpt-5.5',
      input: [developer, user, reasoning, aMessage('hello')],
      instructions: 'You are a coding agent',
      tools: [{ type: 'function', name: 'shell' }],
      parallel_tool_calls: true,
      reasoning: { effort: 'medium', summary: 'auto' },
      text: { verbosity: 'low' },
    }
    const { body, dropped, retained } = compactToResponses(sent)
    expect(body).toEqual({
      model: 'gpt-5.5',
      input: [...sent.input, trigger],
      instructions: 'You are a coding agent',
      parallel_tool_calls: false,
      reasoning: { effort: 'medium', summary: 'auto' },
      store: false,
      stream: true,
      include: ['reasoning.encrypted_content'],
    })
    expect(dropped).toEqual(['text', 'tools'])
    expect(retained).toEqual([developer, user])
    expect(sent.tools).toHaveLength(1)
  })

  test('of the SDK, items without a type', () => {
    const { body, retained } = compactToResponses({
      model: 'm',
      input: [
        { role: 'user', content: 'one' },
        { role: 'assistant', content: 'yes' },
      ],
    })
    expect((body.input as unknown[]).at(-1)).toEqual(trigger)
    expect(body.input).toHaveLength(3)
    expect(retained).toEqual([user])
  })

  test('that has its trigger already gets no second one', () => {
    expect(compactToResponses({ model: 'm', input: [user, trigger] }).body.input).toEqual([user, trigger])
  })

  test.each([[{ model: 'm' }], [{ model: 'm', input: [trigger, user] }], [{ input: 'x' }]])(
    '%j is rejected',
    (body) => {
      expect(() => compactToResponses(body)).toThrow(expect.objectContaining({ code: 'invalid_request_error' }))
    },
  )
})

describe('reply', () => {
  test('contains the retained messages and the one compaction item', () => {
    const reply = compactFromResponse(aResponse({ output: [reasoning, item], service_tier: 'default' }), [
      developer,
      user,
    ])
    const { id, created_at, usage } = aResponse()
    expect(reply).toEqual({
      id,
      object: 'response.compaction',
      created_at,
      status: 'completed',
      output: [developer, user, item],
      usage,
      service_tier: 'default',
    })
  })

  test('keeps only an id the client can replay, and no empty member', () => {
    const output = [{ ...item, id: 'rs_1', status: 'completed', extra: 1 }]
    const reply = compactFromResponse(aResponse({ output, usage: null }), [])
    expect(reply.output).toEqual([{ type: 'compaction', encrypted_content: 'secret', status: 'completed' }])
    expect(reply).not.toHaveProperty('usage')
  })

  test.each([
    ['no compaction', aResponse({ output: [aMessage('x')] })],
    ['an empty one', aResponse({ output: [{ type: 'compaction' }] })],
    ['a failure', aResponse({ status: 'failed', error: { message: 'x' }, output: [item] })],
    ['no response', null],
  ])('%s is an upstream error', (_, response) => {
    expect(() => compactFromResponse(response, [])).toThrow(
      expect.objectContaining({ code: 'upstream_error', status: 502 }),
    )
  })
})
