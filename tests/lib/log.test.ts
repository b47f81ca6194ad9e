/** One event is one line, whatever the values contain. */
import { expect, test } from 'bun:test'
import { createLog, type Level, type LogOptions } from '../../src/lib/log.ts'

const aLog = (format: LogOptions['format'], level: Level = 'debug') => {
  const lines: string[] = []
  const log = createLog({ level, format, now: () => Date.UTC(2026, 0, 2), write: (line) => lines.push(line) })
  return { log, lines }
}

test('text is time, level, message and fields', () => {
  const { log, lines } = aLog('text')
  log.info('listening', { port: 2455, host: '127.0.0.1', note: 'two words', empty: '', none: null, left: undefined })
  expect(lines).toEqual([
    '2026-01-02T00:00:00.000Z INFO  listening port=2455 host=127.0.0.1 note="two words" empty="" none=null',
  ])
})

test('JSON is one object, and a field cannot replace the names of the line', () => {
  const { log, lines } = aLog('json')
  log.warn('slow', { ms: 3n, level: 'fake', left: undefined })
  expect(JSON.parse(lines[0]!)).toEqual({
    time: '2026-01-02T00:00:00.000Z',
    level: 'warn',
    message: 'slow',
    ms: '3',
    _level: 'fake',
  })
})

test('levels above the limit are not written', () => {
  const { log, lines } = aLog('text', 'warn')
  log.debug('no')
  log.info('no')
  log.warn('yes')
  log.error('yes')
  expect(lines).toHaveLength(2)
})

test.each(['text', 'json'] as const)('no value breaks or alters the %s line', (format) => {
  const { log, lines } = aLog(format)
  const hostile = 'a\nFAKE\r\u2028\u2029\u0085\u001b[31m\u009b31m\u007f\u202e\u2066"'
  log.error(hostile, { value: hostile, [hostile]: 1, nested: { list: [hostile] } })
  expect(lines).toHaveLength(1)
  expect(lines[0]).not.toMatch(/[\p{Cc}\p{Bidi_C}\u2028\u2029]/u)
  if (format === 'json') expect(JSON.parse(lines[0]!)).toMatchObject({ message: hostile, value: hostile })
})

test('errors keep their stack, code and causes', () => {
  const { log, lines } = aLog('json')
  const cause = Object.assign(new TypeError('inner'), { code: 'ECONNRESET' })
  log.error('failed', { error: new Error('outer', { cause }) })
  expect(JSON.parse(lines[0]!).error).toMatchObject({
    name: 'Error',
    message: 'outer',
    stack: expect.stringContaining('outer'),
    cause: { name: 'TypeError', message: 'inner', code: 'ECONNRESET' },
  })
})

test.each(['text', 'json'] as const)('a value that cannot be written does not lose the %s line', (format) => {
  const { log, lines } = aLog(format)
  const cycle: Record<string, unknown> = {}
  cycle.self = cycle
  const error = new Error('own cause')
  error.cause = error
  log.info('kept', { cycle, call: () => 1 })
  log.info('kept', { error })
  expect(lines).toHaveLength(2)
  expect(lines[0]).toContain('kept')
  expect(lines[1]).toContain('own cause')
})
