/** `store` and `previous_response_id` are replaced in place; anything ambiguous is serialized again. */
import { expect, test } from 'bun:test'
import { eventJson, frame } from '../../../src/lib/sse-payload.ts'
import { echoedEvent } from '../../../src/proxy/responses-store/response-echo.ts'

const ECHO = { store: true, previousResponseId: 'resp_0' }
const type = 'response.created'

test.each<[string, Record<string, unknown>]>([
  ['the upstream states both', { store: false, previous_response_id: null }],
  ['it states an earlier response', { store: true, previous_response_id: 'resp_"9' }],
  [
    'it states neither, and a tool has both',
    { tools: [{ parameters: { store: { type: 'string' }, previous_response_id: {} } }] },
  ],
  ['only a tool has `store`, as a list', { previous_response_id: null, tools: [{ parameters: { store: [true] } }] }],
  ['only a tool has `store`, as a number', { previous_response_id: null, tools: [{ parameters: { store: 1 } }] }],
])('%s', (_, members) => {
  const response = { id: 'resp_1', ...members, output: [] }
  const event = eventJson(echoedEvent(frame({ type, sequence_number: 0, response }), type, ECHO))
  expect(event).toEqual({
    type,
    sequence_number: 0,
    response: { ...response, store: true, previous_response_id: 'resp_0' },
  })
})
