/** Each request of a conversation begins with the same bytes upstream, which prompt caches need. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Bindings } from '../../../src/boot/bindings.ts'
import { getElements, topMembers } from '../../../src/lib/json-members.ts'
import { decodeUtf8, encodeUtf8 } from '../../../src/lib/utf8.ts'
import { BodyBudget, BodyHold } from '../../../src/proxy/ingress/raw-body.ts'
import { ResponseStore } from '../../../src/proxy/responses-store/response-store.ts'
import { statefulRequest } from '../../../src/proxy/responses-store/stateful-request.ts'
import { DEFAULTS } from '../../../src/settings/schema.ts'
import { holds } from '../../support/property.ts'

const CLIENT = { key: null, hasUnrecognizedKey: false, ip: null, restricted: false } as never // as: only the key is read
const SETTINGS = { responseStoreMinutes: 60, responseStoreMiB: 64 }

/** Texts that a parser and a writer could change: escapes, lone surrogates, names that are numbers, long numbers. */
const jsonText = fc.oneof(
  fc.json({ maxDepth: 2 }),
  fc.constantFrom(
    '{"b":1,"2":{"1":0},"1":9007199254740993}',
    '{ "a" : 1.0 , "\\u0061b" : "\\/\\ud800" }',
    '[1e400, -0]',
  ),
)
const words = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constantFrom('Ж', '\u2028', '"', '\\'))

/** Items of the client as it writes them, with blanks. */
const ownItem = fc.oneof(
  words.map((text) => `{"role":"user", "content":${JSON.stringify(text)}}`),
  words.map((text) => `{ "role":"user","content":[{"type":"input_text","text":${JSON.stringify(text)}}] }`),
  words.map((text) => `{"role":"system","content":${JSON.stringify(text)}}`),
  words.map((text) => `{"role":"developer","content":${JSON.stringify(text)}}`),
  jsonText.map((text) => `{"type":"web_search_call","id":"ws_1","action":${text}}`),
  fc.constantFrom('{"role":"user","content":[{"type":"text","text":"x","prompt_cache_breakpoint":{}}]}'),
)
const answered = fc.oneof(
  fc.tuple(fc.constant('message'), words),
  fc.tuple(fc.constant('reasoning'), words),
  fc.tuple(fc.constant('function_call'), words),
  fc.tuple(fc.constant('custom_tool_call'), words),
)
const step = fc.record({
  items: fc.array(ownItem, { minLength: 1, maxLength: 3 }),
  output: fc.array(answered, { maxLength: 4 }),
  asChat: fc.boolean(),
})

const outputItem = ([type, text]: [string, string], id: string): Record<string, unknown> => {
  if (type === 'message')
    return { type, id: `msg_${id}`, role: 'assistant', status: 'completed', content: [{ type: 'output_text', text }] }
  if (type === 'reasoning')
    return { type, id: `rs_${id}`, status: 'completed', summary: [], encrypted_content: `e${text}` }
  const call = {
    type,
    call_id: `call_${id}${id.endsWith('0') ? 'x'.repeat(70) : ''}`,
    name: 'look',
    status: 'completed',
  }
  if (type === 'function_call') return { ...call, id: `fc_${id}`, arguments: text }
  return { ...call, id: `ctc_${id}`, input: text }
}

/** The tool's answer to a call, in either spelling. */
const toolOutput = ({ type, call_id }: Record<string, unknown>, asChat: boolean): string =>
  asChat
    ? JSON.stringify({ role: 'tool', tool_call_id: call_id, content: 'done' })
    : JSON.stringify({ type: `${type}_output`, call_id, output: 'done' })

interface Sent {
  input: string
  instructions: string | undefined
}

const conversation = () => {
  const responses = new ResponseStore({ clock: { monotonic: () => 0 }, settings: () => SETTINGS })
  const bodies = new BodyBudget(() => 2 ** 30)
  const settings = { current: () => DEFAULTS }
  const env = { responses, bodies, settings } as unknown as Bindings // as: only these are read
  return (text: string, response: Record<string, unknown>): Sent => {
    const raw = { bytes: encodeUtf8(text), json: JSON.parse(text), hold: new BodyHold(bodies) }
    const { body, toStore } = statefulRequest(env, raw, CLIENT)
    const recording = toStore && responses.record(toStore)
    recording?.finish(response, JSON.stringify(response))
    const list = topMembers(body.bytes).find(({ name }) => name === 'input')!
    const elements = getElements(body.bytes, list.value)
    expect(JSON.parse(decodeUtf8(body.bytes)).input).toHaveLength(elements.length)
    const input = decodeUtf8(body.bytes.subarray(list.value, elements.at(-1)?.end ?? list.value))
    const { instructions } = JSON.parse(decodeUtf8(body.bytes))
    return { input, instructions }
  }
}

test('a chain of previous_response_id', () => {
  holds(
    fc.property(fc.array(step, { minLength: 2, maxLength: 6 }), (all) => {
      const send = conversation()
      let before: Sent | null = null
      let open: string[] = []
      for (const [n, { items, output, asChat }] of all.entries()) {
        const previous = n === 0 ? '' : `"previous_response_id":"resp_${n - 1}",`
        const said = output.map((one, index) => outputItem(one, `${n}_${index}`))
        const text = `{"model":"m",${previous}"input":[${[...open, ...items].join(' , ')}]}`
        const sent = send(text, { id: `resp_${n}`, object: 'response', output: said })
        if (before) {
          expect(sent.input.startsWith(before.input)).toBe(true)
          expect(sent.instructions).toBe(before.instructions)
        }
        before = sent
        open = said.filter((one) => 'call_id' in one).map((one) => toolOutput(one, asChat))
      }
    }),
    100,
  )
})

test('a developer message after a first request without usable items does not change the instructions', () => {
  const send = conversation()
  const sent = [
    '{"type":"web_search_call","id":"ws_1","action":[]}',
    '{"role":"developer","content":"Hi"}',
    '{"role":"user","content":"x"}',
  ].map((item, n) => {
    const previous = n === 0 ? '' : `"previous_response_id":"resp_${n - 1}",`
    return send(`{"model":"m",${previous}"input":[${item}]}`, { id: `resp_${n}`, object: 'response', output: [] })
  })
  expect(new Set(sent.map(({ instructions }) => instructions)).size).toBe(1)
})

test('a history of the client’s own items and references to the others, as the AI SDK sends it', () => {
  const withoutSystem = step.map((one) => ({ ...one, items: one.items.filter((text) => !text.includes('"system"')) }))
  holds(
    fc.property(fc.array(withoutSystem, { minLength: 2, maxLength: 6 }), (all) => {
      const send = conversation()
      let before: Sent | null = null
      const history: string[] = ['{"role":"user","content":"Hi"}']
      for (const [n, { items, output }] of all.entries()) {
        history.push(...items)
        const said = output.map((one, index) => outputItem(one, `${n}_${index}`))
        const text = `{"model":"m","input":[${history.join(' , ')}]}`
        const sent = send(text, { id: `resp_${n}`, object: 'response', output: said })
        if (before) expect(sent.input.startsWith(before.input)).toBe(true)
        before = sent
        history.push(...said.map(({ id }) => JSON.stringify({ type: 'item_reference', id })))
        history.push(...said.filter((one) => 'call_id' in one).map((one) => toolOutput(one, false)))
      }
    }),
    100,
  )
})
