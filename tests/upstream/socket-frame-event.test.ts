/** A frame has the type, the text and the bytes that the same event has over HTTP. */
import { describe, expect, test } from 'bun:test'
import { SseScanner } from '../../src/lib/sse.ts'
import { eventData } from '../../src/lib/sse-payload.ts'
import { FrameEvent } from '../../src/upstream/frame-event.ts'

const getBytes = (text: string) => Buffer.from(new FrameEvent(text).bytes).toString()

describe('the type', () => {
  for (const [text, type] of [
    ['{"type":"response.created"}', 'response.created'],
    ['{"type":"codex.rate_limits","x":"é"}', 'codex.rate_limits'],
    ['{ "type": "late" }', 'late'],
    ['{"a":{"type":"inner"},"type":"outer"}', 'outer'],
    ['{"type":"a\\"b"}', 'a"b'],
    ['{"type":"\\u0061"}', 'a'],
    ['{"type":"über"}', 'über'],
    ['{"type":""}', ''],
    ['{"type":7}', null],
    ['{"type":null,"x":"y"}', null],
    ['{}', null],
    ['[{"type":"x"}]', null],
    ['"type"', null],
    ['{"type":"', null],
    ['not json', null],
    ['', null],
  ] as const) {
    test(`of ${text || 'nothing'} is ${type}`, () => {
      expect(new FrameEvent(text).type).toBe(type)
      expect(new FrameEvent(Buffer.from(text)).type).toBe(type)
    })
  }
})

test('the bytes are the event in upstream framing, created once and with their length', () => {
  const event = new FrameEvent('{"type":"error","x":"ü"}')
  expect(Buffer.from(event.bytes).toString()).toBe('event: error\ndata: {"type":"error","x":"ü"}\n\n')
  expect(event.bytes).toBe(event.bytes)
  expect(event.length).toBe(event.bytes.length)
  expect(event.count).toBe(1)
  expect(event.data).toBe('{"type":"error","x":"ü"}')
})

test('each event’s bytes have their own memory, so two are never taken for neighbors', () => {
  const [one, two] = [new FrameEvent('{"type":"a"}'), new FrameEvent('{"type":"b"}')]
  expect(one.bytes.buffer).not.toBe(two.bytes.buffer)
  expect(one.bytes.buffer.byteLength).toBe(one.bytes.length)
})

test('line breaks become data lines, and a frame is one event whatever it holds', () => {
  expect(getBytes('{\n"type":"a"\r\n}')).toBe('event: a\ndata: {\ndata: "type":"a"\ndata: }\n\n')
  for (const text of [
    '{"type":"a\\nevent: b","x":1}',
    '{"x":1}\n\n\n{"y":2}',
    'a\rb',
    '\n',
    '{"type":"a\\r\\rdata: 1"}',
  ]) {
    const event = new FrameEvent(text)
    expect(new SseScanner().push(event.bytes)).toHaveLength(1)
    expect(eventData(event.bytes)).toBe(text.replaceAll(/\r\n|\r/g, '\n'))
    expect(event.data).toBe(text)
  }
})

test('without a type there is no event line', () => {
  expect(getBytes('[1]')).toBe('data: [1]\n\n')
})
