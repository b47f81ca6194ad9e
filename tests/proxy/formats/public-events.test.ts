/** The events a `/v1` client gets, and those we create ourselves. */
import { describe, expect, test } from 'bun:test'
import { AppError, openAiError } from '../../../src/errors.ts'
import { seededRandom } from '../../../src/lib/random.ts'
import { keepaliveComment, keepaliveEvent, responseFailedEvent } from '../../../src/proxy/formats/failed-event.ts'
import { PublicEvents } from '../../../src/proxy/formats/public-events.ts'
import { Meter } from '../../../src/proxy/turn/meter.ts'
import { FrameEvent } from '../../../src/upstream/frame-event.ts'
import { parseEvents } from '../../support/app.ts'

const getText = (bytes: Uint8Array) => new TextDecoder().decode(bytes)
const CREATED = { type: 'response.created', sequence_number: 0, response: { id: 'resp_1' } }
const DELTA = { type: 'response.output_text.delta', sequence_number: 1, delta: 'x' }
const BLANK = {
  id: 'resp_1',
  object: 'response',
  created_at: 9,
  status: 'failed',
  incomplete_details: null,
  model: 'gpt-x',
  output: [],
  usage: null,
  metadata: {},
  tools: [],
  tool_choice: 'auto',
  parallel_tool_calls: true,
}

const start = (announcesErrors = true) =>
  new PublicEvents({ model: 'gpt-x', createdAt: 9, random: seededRandom(1), announcesErrors })

/** The bytes for each of these events. */
const publish = (events: object[], answer = start(), meter = new Meter()) =>
  events.map((event) => {
    const one = new FrameEvent(JSON.stringify(event))
    meter.see(one)
    return { sent: answer.of(one, meter), bytes: one.bytes }
  })

/** The public form of the last of these events. */
const getLast = (events: object[], answer = start()) =>
  publish(events, answer)
    .at(-1)!
    .sent.flatMap((bytes) => parseEvents(getText(bytes)))

describe('public events', () => {
  test.each([CREATED, DELTA, { type: 'unheard.of' }])('%p passes, the same bytes', (event) => {
    const [{ sent, bytes } = { sent: [], bytes: null }] = publish([event])
    expect(sent).toHaveLength(1)
    expect(sent[0]).toBe(bytes!)
  })

  test.each([{ type: 'codex.rate_limits' }, { type: 'codex.keepalive' }, { no: 'type' }])(
    '%p is not sent to the client',
    (event) => expect(getLast([event])).toEqual([]),
  )
})

describe('a failure after the first event', () => {
  const told = { message: 'Sorry.', type: 'server_error', code: 'server_error', param: 'input' }

  test.each([
    ['an error event, flat', { type: 'error', code: 'server_error', message: 'Sorry.', param: 'input' }],
    ['an error event, nested', { type: 'error', error: told }],
    ['response.failed', { type: 'response.failed', sequence_number: 2, response: { id: 'resp_1', error: told } }],
    ['response.failed without a number', { type: 'response.failed', response: { error: told } }],
  ])('%s: an error event that SDKs throw on, then response.failed with a complete response', (_what, failure) => {
    expect(getLast([CREATED, DELTA, failure])).toMatchObject([
      { type: 'error', sequence_number: 2, error: told },
      { type: 'response.failed', sequence_number: 3, response: { ...BLANK, error: told } },
    ])
  })

  test('of the connection: the same', () => {
    const [answer, meter] = [start(), new Meter()]
    publish([CREATED, DELTA], answer, meter)
    const err = new AppError('stream_incomplete')
    const events = answer.failed(err, meter).flatMap((bytes) => parseEvents(getText(bytes)))
    expect(events).toMatchObject([
      { type: 'error', sequence_number: 2, error: openAiError(err) },
      { type: 'response.failed', sequence_number: 3, response: { ...BLANK, error: openAiError(err) } },
    ])
  })

  test('on a socket: only response.failed, because an error frame would end the turn as well', () => {
    const answer = start(false)
    expect(getLast([CREATED, DELTA, { type: 'error', error: told }], answer)).toMatchObject([
      { type: 'response.failed', sequence_number: 2, response: { ...BLANK, error: told } },
    ])
  })

  test('upstream fields of the response are kept, and missing ones filled in', () => {
    const response = {
      id: 'resp_1',
      model: 'gpt-y',
      error: null,
      output: null,
      usage: { input_tokens: 1 },
      tools: [{}],
    }
    const [error, failed] = getLast([CREATED, { type: 'response.failed', response }])
    expect(error).toMatchObject({ type: 'error', error: { code: 'upstream_error', message: expect.any(String) } })
    expect(failed!.response).toMatchObject({
      ...{ ...BLANK, model: 'gpt-y', tools: [{}], usage: { input_tokens: 1 } },
      error: { code: 'upstream_error', message: expect.any(String) },
    })
  })
})

describe('a last event without a number gets its place in the stream', () => {
  test.each(['response.completed', 'response.incomplete'])('%s', (type) => {
    const response = { id: 'resp_1', output: [{ type: 'message' }] }
    expect(getLast([CREATED, DELTA, { type, response }])).toEqual([{ type, response, sequence_number: 2 }])
    expect(getLast([CREATED, DELTA, { type, response, sequence_number: null }])).toMatchObject([{ sequence_number: 2 }])
    const [{ sent, bytes } = { sent: [], bytes: null }] = publish([{ type, response, sequence_number: 7 }])
    expect(sent[0]).toBe(bytes!)
  })
})

test('a failure before any event is preceded by response.created', () => {
  const [created, error, failed] = start()
    .failed(new AppError('upstream_timeout'), null)
    .flatMap((bytes) => parseEvents(getText(bytes)))
  expect([created, error, failed].map((event) => event?.sequence_number)).toEqual([0, 1, 2])
  const { id } = created!.response as { id: string }
  expect(created).toMatchObject({ type: 'response.created', response: { ...BLANK, id, status: 'in_progress' } })
  expect(failed).toMatchObject({ type: 'response.failed', response: { ...BLANK, id } })
})

test('an internal error has the same fields as over HTTP', () => {
  const err = new AppError('usage_limit_reached', { envelope: { resets_at: 1_700_000_000 } })
  const text = getText(responseFailedEvent(err, { id: undefined, model: null, createdAt: 5, sequenceNumber: 0 }))
  expect(text.endsWith('\n\n')).toBe(true)
  const payload = JSON.parse(text.split('\n')[1]!.slice(6))
  expect(payload.response.error).toEqual(openAiError(err))
  expect(payload.response.error).toMatchObject({ type: 'usage_limit_reached', resets_at: 1_700_000_000 })
  expect(payload.sequence_number).toBe(0)
  expect('id' in payload.response).toBe(false)
})

test('keepalives are a comment for most and an event with data for the native client', () => {
  expect(getText(keepaliveComment)).toBe(': keepalive\n\n')
  expect(getText(keepaliveEvent)).toBe('event: codex.keepalive\ndata: {"type":"codex.keepalive"}\n\n')
})
