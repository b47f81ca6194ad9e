/** SSE framing: the same events and bytes, wherever the stream was split into chunks. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { getPieces, type SseEvent, SseEventTooLarge, SseScanner } from '../../src/lib/sse.ts'
import { eventData, eventJson, frame } from '../../src/lib/sse-payload.ts'
import { holds } from '../support/property.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()
type Seen = Pick<SseEvent, 'bytes' | 'type'>
const getText = ({ bytes }: Seen) => decoder.decode(bytes)

/** Pushes `bytes` cut at the given places. */
const scan = (bytes: Uint8Array, cuts: readonly number[] = []): Seen[] => {
  const scanner = new SseScanner()
  const places = [...new Set([0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].sort((a, b) => a - b)
  // Each chunk has its own memory, and is wiped afterwards: an event must not depend on the transport's buffer.
  return places.slice(1).flatMap((to, index) => {
    const chunk = bytes.slice(places[index], to)
    const events = scanner.push(chunk).map(({ bytes: view, type }) => ({ bytes: new Uint8Array(view), type }))
    chunk.fill(0)
    return events
  })
}

const value = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  fc.constantFrom('\u2028', '\u2029', 'ü', '🙂', '\u0085', 'data: no', '"type":"fake"', ''),
)
const typeName = fc.constantFrom('response.created', 'response.output_text.delta', 'codex.rate_limits', 'error')
const payload = fc.record({ type: typeName, delta: value }).map((event) => `data: ${JSON.stringify(event)}`)
const line = fc.oneof(
  payload,
  fc.constantFrom(
    ': comment',
    ':',
    'event: x',
    'id: 7',
    'data',
    'data:',
    'data: [DONE]',
    'data:{"x":1,"type":"late"}',
    'retry: 5',
  ),
)
const getEvent = (end: fc.Arbitrary<string>) =>
  fc.tuple(fc.array(line, { minLength: 1, maxLength: 4 }), end).map(([lines, e]) => `${lines.join(e)}${e}${e}`)
const cuts = fc.array(fc.nat(), { maxLength: 30 })
const getStream = (end: fc.Arbitrary<string>) => fc.array(getEvent(end), { minLength: 1, maxLength: 6 })

describe('wherever a stream is split', () => {
  test('with LF its events have the same bytes and types', () => {
    holds(
      fc.property(getStream(fc.constant('\n')), cuts, (events, places) => {
        const bytes = encoder.encode(events.join(''))
        const cut = scan(bytes, places)
        expect(cut.map(getText)).toEqual(events)
        expect(cut).toEqual(scan(bytes))
      }),
    )
  })

  test('byte by byte, too', () => {
    holds(
      fc.property(getStream(fc.constantFrom('\n', '\r', '\r\n')), (events) => {
        const bytes = encoder.encode(events.join(''))
        const whole = scan(bytes)
        const single = scan(bytes, Array.from(bytes.keys()))
        expect(single.map(({ type }) => type)).toEqual(whole.map(({ type }) => type))
        expect(single.map((event) => eventData(event.bytes))).toEqual(whole.map((event) => eventData(event.bytes)))
      }),
      100,
    )
  })

  test('with CR, LF and CRLF mixed its events are equal', () => {
    holds(
      fc.property(getStream(fc.constantFrom('\n', '\r', '\r\n')), cuts, (events, places) => {
        const cut = scan(encoder.encode(events.join('')), places)
        expect(cut.map(getText)).toEqual(events)
      }),
    )
  })

  test.each([
    ['in the closing CRLF', ['data: 1\r\n\r', '\ndata: 2\r\n\r\n']],
    ['in every line end', ['data: 1\r', '\n\r', '\ndata: 2\r', '\n', '\r', '\n']],
    ['before an LF that follows an event closed by CR alone', ['data: 1\r\r', '\ndata: 2\n\n']],
    ['between an event and a spare empty line', ['data: 1\r\n\r\n\r', '\ndata: 2\r\n\r\n']],
  ])('%s it keeps every byte', (_where, chunks) => {
    const scanner = new SseScanner()
    const events = chunks.flatMap((chunk) => scanner.push(encoder.encode(chunk)))
    expect(events.map(getText).join('')).toBe(chunks.join(''))
    expect(events.map(({ data }) => data).filter((data) => data !== null)).toEqual(['1', '2'])
  })

  test('an event closed by CR alone does not wait for what follows', () => {
    expect(new SseScanner().push(encoder.encode('event: x\rdata: 1\r\r'))).toHaveLength(1)
  })

  // Copied again for each chunk, these 4 MiB would be 130 GB and take half a minute.
  test.each([
    ['LF', '\n', 'data: {"type":"a","x":"'],
    ['CRLF', '\r\n', 'data: {"type":"a","x":"'],
    ['CR', '\r', 'event: a\rdata: {"x":"'],
    ['LF, behind other lines', '\n', ': comment\nevent: a\ndata: {"type":"a","x":"'],
  ])('a huge event takes time linear in its length (%s)', (_name, end, start) => {
    const scanner = new SseScanner()
    const piece = encoder.encode('y'.repeat(64))
    const pieces = (4 * 1024 * 1024) / piece.length
    scanner.push(encoder.encode(start))
    for (let n = 0; n < pieces; n++) expect(scanner.push(piece.slice()).length).toBe(0)
    const [event, next] = scanner.push(encoder.encode(`"}${end}${end}data: next${end}${end}`))
    expect(event?.length).toBe(start.length + 4 * 1024 * 1024 + 2 + 2 * end.length)
    expect([next?.data, scanner.pendingBytes]).toEqual(['next', 0])
  })
})

describe('an SSE event', () => {
  const only = (text: string) => scan(encoder.encode(text))

  test('has its type wherever that is in the payload', () => {
    expect(only('data: {"type":"a.b","x":1}\n\n')[0]?.type).toBe('a.b')
    expect(only('event: zzz\ndata: {"x":{"type":"no"},"type":"a.b"}\n\n')[0]?.type).toBe('a.b')
    expect(only('data: {"x":1,\ndata: "type":"a.b"}\n\n')[0]?.type).toBe('a.b')
    expect(only('event: zzz\rdata: {"type":"a.b"}\r\r')[0]?.type).toBe('a.b')
    expect(only('event: zzz\r\ndata: {"type":"a.b"}\r\n\r\n')[0]?.type).toBe('a.b')
    expect(only(': hello\n\n')[0]?.type).toBeNull()
    expect(only('data: [DONE]\n\n')[0]?.type).toBeNull()
    expect(only('data: {"type":"cut of\n\n')[0]?.type).toBeNull()
  })

  test('joins its data lines and knows only CR, LF and CRLF as line endings', () => {
    expect(eventData(encoder.encode('data: a\u2028b\ndata:c\ndata\n\n'))).toBe('a\u2028b\nc')
    expect(only('data: a\u2028\u2029\u0085b\n\n')).toHaveLength(1)
  })

  test('can be parsed after formatting', () => {
    holds(
      fc.property(typeName, value, (type, text) => {
        const [event] = scan(frame({ type, text }), [3, 9])
        expect(event?.type).toBe(type)
        expect(eventJson(event!.bytes)).toEqual({ type, text })
      }),
    )
  })

  test('without an end is not an event, and one that is too large is rejected', () => {
    expect(only('data: {"type":"a"}\n')).toEqual([])
    const scanner = new SseScanner({ maxEventBytes: 64 })
    expect(scanner.push(encoder.encode(`data: ${'x'.repeat(50)}`))).toEqual([])
    expect(scanner.pendingBytes).toBe(56)
    expect(() => scanner.push(encoder.encode('y'.repeat(20)))).toThrow(SseEventTooLarge)
  })
})

test('several events are joined only with those of their own type, also when a type is not the first member', () => {
  const scanner = new SseScanner({ inRuns: true })
  const delta = (name: string) => `data: {"type":"response.${name}.delta","delta":"x"}\n\n`
  const odd = 'data: {"delta":"x","type":"response.c.delta"}\n\n'
  const text = delta('a') + delta('a') + odd + delta('a') + delta('b') + delta('b')
  const events = scanner.push(new TextEncoder().encode(text))
  expect(events[0]?.data).toBe('{"type":"response.a.delta","delta":"x"}')
  const seen = events.map(({ type, count }) => `${type} ${count}`)
  expect(seen).toEqual(['response.a.delta 2', 'response.c.delta 1', 'response.a.delta 1', 'response.b.delta 2'])
})

describe('the emitted pieces', () => {
  test('contain every byte once and in order, wherever the stream was split', () => {
    holds(
      fc.property(getStream(fc.constant('\n')), cuts, fc.boolean(), (events, places, inRuns) => {
        const bytes = encoder.encode(events.join(''))
        const scanner = new SseScanner({ inRuns })
        const ends = [...new Set([...places.map((cut) => cut % bytes.length), bytes.length])].sort((a, b) => a - b)
        const seen = ends.flatMap((end, index) => scanner.push(bytes.slice(ends[index - 1] ?? 0, end)))
        expect(Buffer.concat(getPieces(seen))).toEqual(Buffer.from(bytes))
      }),
    )
  })

  test('are the chunks themselves; only an event split over two of them is copied', () => {
    const scanner = new SseScanner()
    const event = 'data: {"type":"a"}\n\n'
    const chunks = [`${event}${event}data: `, `{"type":"a"}\n\n${event}${event}`].map((text) => encoder.encode(text))
    const pieces = getPieces(chunks.flatMap((chunk) => scanner.push(chunk)))
    expect(pieces.map((piece) => decoder.decode(piece))).toEqual([event + event, event, event + event])
    expect(pieces.map(({ buffer }) => chunks.findIndex((chunk) => chunk.buffer === buffer))).toEqual([0, -1, 1])
  })
})
