/** Each request of a conversation begins with the bytes of the one before, or the upstream's prompt cache is lost. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { JsonObject } from '../../../src/lib/json.ts'
import { messagesToResponses } from '../../../src/proxy/formats/messages-request.ts'
import { holds } from '../../support/property.ts'

const MODEL = { slug: 'gpt-5.5', efforts: ['low', 'medium', 'high'], effort: null }
const CACHED = { cache_control: { type: 'ephemeral' } }
const USER_ID = '{"device_id":"d","account_uuid":"","session_id":"1b4e28ba-2fa1-11d2-883f-0016d3cca427"}'

const request = (messages: unknown[]): JsonObject => ({
  model: 'claude-opus-5-5',
  messages,
  system: [
    { type: 'text', text: 'x-anthropic-billing-header: cc_version=2.1.332.abc; cc_entrypoint=sdk-cli;' },
    { type: 'text', text: 'You are Claude Code.', ...CACHED },
  ],
  tools: [{ name: 'Bash', description: 'Runs.', input_schema: { type: 'object', properties: {} } }],
  metadata: { user_id: USER_ID },
  max_tokens: 128_000,
  thinking: { type: 'adaptive', display: 'omitted' },
  output_config: { effort: 'medium' },
  stream: true,
})

/** The upstream request up to the end of its items. */
const prefix = (messages: unknown[]): string => {
  const text = JSON.stringify(messagesToResponses(request(messages), MODEL, null).body)
  return text.slice(0, text.indexOf('],"store":false'))
}

const REMINDER = { type: 'text', text: '<system-reminder>…</system-reminder>' }
const EFFORT = { output_config: { effort: 'medium' } }
const HELLO = { role: 'user', content: [REMINDER, { type: 'text', text: 'hello' }] }
const ENVIRONMENT = 'The environment.'
const ANSWER = {
  role: 'assistant',
  content: [
    { type: 'thinking', thinking: 'Thinking.', signature: 'sluice1.rs_1.gAAA' },
    { type: 'text', text: 'one' },
    { type: 'tool_use', id: 'call_1', name: 'Bash', input: { command: 'echo hi' } },
  ],
}
const RESULT = { tool_use_id: 'call_1', type: 'tool_result', content: 'hi', is_error: false }
const LAST = { role: 'assistant', content: [{ type: 'text', text: 'FINISHED' }] }

test('the requests of Claude Code 2.1.332, as captured: a first turn, its tool result, and the next turn', () => {
  const first = [HELLO, { role: 'system', content: [{ type: 'text', text: ENVIRONMENT, ...CACHED }], ...EFFORT }]
  const system = { role: 'system', content: ENVIRONMENT, ...EFFORT }
  const second = [HELLO, system, ANSWER, { role: 'user', content: [{ ...RESULT, ...CACHED }] }]
  const next = { role: 'user', content: [{ type: 'text', text: 'two', ...CACHED }] }
  const third = [HELLO, system, ANSWER, { role: 'user', content: [RESULT] }, LAST, next]
  expect(prefix(second)).toStartWith(prefix(first))
  expect(prefix(third)).toStartWith(prefix(second))
})

const aText = fc.string({ minLength: 1 })
const aTurn = fc.record({
  role: fc.constantFrom('user', 'system', 'assistant'),
  texts: fc.array(aText, { minLength: 1, maxLength: 3 }),
  call: fc.option(fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 3 })),
})
type ATurn = typeof aTurn extends fc.Arbitrary<infer T> ? T : never

/** The same turn in one of the ways a client may write it. */
const written = ({ role, texts, call }: ATurn, at: number, isCached: boolean, isList: boolean): JsonObject => {
  const blocks: JsonObject[] = texts.map((text) => ({ type: 'text', text }))
  if (role === 'assistant' && call) blocks.push({ type: 'tool_use', id: `call_${at}`, name: 'Bash', input: call })
  if (role === 'user' && call) {
    const output = texts.join('\n')
    const content = isList ? texts.map((text) => ({ type: 'text', text })) : output
    blocks.unshift({ type: 'tool_result', tool_use_id: `call_${at - 1}`, content })
  }
  if (isCached) Object.assign(blocks.at(-1)!, CACHED)
  const [only] = texts
  return { role, content: blocks.length === 1 && !isList ? only : blocks }
}

test('any conversation, however the client writes it from request to request', () => {
  holds(
    fc.property(
      fc.array(aTurn, { minLength: 1, maxLength: 6 }),
      fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }),
      (turns, flips) => {
        const request = (count: number) =>
          turns.slice(0, count).map((turn, at) => written(turn, at, at === count - 1, flips[(at + count) % 12]!))
        const prefixes = turns.map((_, index) => prefix(request(index + 1)))
        for (const [index, text] of prefixes.slice(1).entries()) expect(text).toStartWith(prefixes[index]!)
      },
    ),
  )
})
