/** What a `/v1` client sees of a stream, and the events we write ourselves. */
import { describe, expect, test } from 'bun:test'
import { AppError, openAiError } from '../../../src/errors.ts'
import { keepaliveComment, keepaliveEvent, responseFailedEvent } from '../../../src/proxy/formats/failed-event.ts'
import { publicEvent } from '../../../src/proxy/formats/public-events.ts'

const textOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes)
const neverParsed = () => {
  throw new Error('parsed')
}

describe('public events', () => {
  test.each(['response.created', 'response.output_text.delta', 'response.failed', 'unheard.of'])(
    '%p passes, the same bytes, unparsed',
    (type) => {
      const bytes = new Uint8Array([1, 2, 3])
      expect(publicEvent({ type, bytes, parse: neverParsed }, { createdAt: 1 })).toBe(bytes)
    },
  )

  test.each(['codex.rate_limits', 'codex.keepalive', null])('%p is kept from the client', (type) => {
    expect(publicEvent({ type, bytes: new Uint8Array(1), parse: neverParsed }, { createdAt: 1 })).toBeNull()
  })

  test('error becomes response.failed with the upstream’s own words', () => {
    const parse = () => ({ type: 'error', code: 'server_error', message: 'Sorry.', param: 'input' })
    const bytes = publicEvent(
      { type: 'error', bytes: new Uint8Array(1), parse },
      { createdAt: 9, responseId: 'resp_1', sequenceNumber: 4 },
    )
    const [event, data] = textOf(bytes!).split('\n')
    expect(event).toBe('event: response.failed')
    expect(JSON.parse(data!.slice(6))).toEqual({
      type: 'response.failed',
      sequence_number: 4,
      response: {
        id: 'resp_1',
        object: 'response',
        created_at: 9,
        status: 'failed',
        error: { message: 'Sorry.', type: 'server_error', code: 'server_error', param: 'input' },
        incomplete_details: null,
      },
    })
  })
})

test('a failure of ours carries the error an HTTP answer would', () => {
  const err = new AppError('usage_limit_reached', { envelope: { resets_at: 1_700_000_000 } })
  const text = textOf(responseFailedEvent(err, { createdAt: 5 }))
  expect(text.endsWith('\n\n')).toBe(true)
  const payload = JSON.parse(text.split('\n')[1]!.slice(6))
  expect(payload.response.error).toEqual(openAiError(err))
  expect(payload.response.error).toMatchObject({ type: 'usage_limit_reached', resets_at: 1_700_000_000 })
  expect(payload.sequence_number).toBe(0)
  expect('id' in payload.response).toBe(false)
})

test('keepalives are a comment for most and an event with data for the native client', () => {
  expect(textOf(keepaliveComment)).toBe(': keepalive\n\n')
  expect(textOf(keepaliveEvent)).toBe('event: codex.keepalive\ndata: {"type":"codex.keepalive"}\n\n')
})
