/** Scanned events return their payload text on request. */
import { expect, test } from 'bun:test'
import { SseScanner } from '../../src/lib/sse.ts'

const scan = (text: string, inRuns = false) => new SseScanner({ inRuns }).push(new TextEncoder().encode(text))
const delta = (text: string) => `event: a.delta\ndata: {"type":"a.delta","delta":"${text}"}\n\n`

test('one line, several lines, none', () => {
  expect(scan('data: {"a":1}\n\ndata: x\ndata:y\n\n: nothing\n\n').map(({ data }) => data)).toEqual([
    '{"a":1}',
    'x\ny',
    null,
  ])
  expect(scan('event: e\r\ndata: x\r\ndata: y\r\n\r\n')[0]?.data).toBe('x\ny')
})

test('of several events it is that of the first', () => {
  const [before, run, after] = scan(`data: x\n\n${delta('one')}${delta('two')}${delta('three')}data: y\n\n`, true)
  expect(run?.count).toBe(3)
  expect(run?.data).toBe('{"type":"a.delta","delta":"one"}')
  expect([before?.data, after?.data]).toEqual(['x', 'y'])
})
