/** Invalid request bodies, and unusual valid ones, for tests in process and on the wire. */

const text = (value: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(value)

const HELLO = '"model":"gpt-5.5","instructions":"Be brief.","stream":true,"store":false'
const INPUT = '"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}]'
const NESTED = 100_000

/** Rejected on every model route with 400 and this code. */
export const REFUSED: Record<string, [body: Uint8Array<ArrayBuffer>, code: string]> = {
  nothing: [text(''), 'malformed_json'],
  blanks: [text(' \r\n\t '), 'malformed_json'],
  'a word': [text('hello'), 'malformed_json'],
  'an object cut off': [text(`{${HELLO}`), 'malformed_json'],
  'two objects': [text(`{${HELLO}}{}`), 'malformed_json'],
  'a trailing comma': [text(`{${HELLO},}`), 'malformed_json'],
  'single quotes': [text("{'model':'gpt-5.5'}"), 'malformed_json'],
  'a comment': [text(`{/* no */${HELLO}}`), 'malformed_json'],
  NaN: [text(`{${HELLO},"temperature":NaN}`), 'malformed_json'],
  'invalid UTF-8': [new Uint8Array([...text(`{${HELLO},"input":"`), 0xc3, 0x28, ...text('"}')]), 'malformed_json'],
  'UTF-16': [new Uint8Array([0xff, 0xfe, 0x7b, 0, 0x7d, 0]), 'malformed_json'],
  'a bare control character': [text(`{${HELLO},"input":"a\u0000b"}`), 'malformed_json'],
  null: [text('null'), 'invalid_request_error'],
  true: [text('true'), 'invalid_request_error'],
  'a number': [text('42'), 'invalid_request_error'],
  'a string': [text('"gpt-5.5"'), 'invalid_request_error'],
  'an array': [text(`[{${HELLO}}]`), 'invalid_request_error'],
  'an empty object': [text('{}'), 'invalid_request_error'],
  'a prototype instead of members': [text(`{"__proto__":{${HELLO},${INPUT}}}`), 'invalid_request_error'],
}

/** Valid JSON that a careless server fails on. Served, or rejected with 400 in the error format; never 500. */
export const ODD: Record<string, Uint8Array<ArrayBuffer>> = {
  'brackets, 100,000 deep': text(`{${HELLO},"input":${'['.repeat(NESTED)}${']'.repeat(NESTED)}}`),
  'objects, 100,000 deep, in a member we drop': text(
    `{${HELLO},${INPUT},"metadata":${'{"a":'.repeat(NESTED)}1${'}'.repeat(NESTED)}}`,
  ),
  'arrays, 100,000 deep, in a member we pass on': text(
    `{${HELLO},${INPUT},"client_metadata":{"a":${'['.repeat(NESTED)}${']'.repeat(NESTED)}}}`,
  ),
  'arrays, 100,000 deep, in a body that must be changed': text(
    `{${HELLO.replace('true', 'false')},${INPUT},"client_metadata":{"a":${'['.repeat(NESTED)}${']'.repeat(NESTED)}}}`,
  ),
  'the same key twice': text(`{"model":"other",${HELLO},${INPUT},"model":"gpt-5.5"}`),
  '__proto__ beside real members': text(
    `{"__proto__":{"isAdmin":true},${HELLO},${INPUT},"constructor":{"prototype":1}}`,
  ),
  '1e309': text(`{${HELLO},${INPUT},"temperature":1e309,"top_p":-1e309}`),
  'a lone surrogate': text(`{${HELLO},"input":[{"role":"user","content":[{"type":"input_text","text":"\\ud800"}]}]}`),
  'a million-digit number': text(`{${HELLO},${INPUT},"seed":${'9'.repeat(1_000_000)}}`),
  'every member of another type': text(
    '{"model":"gpt-5.5","input":7,"instructions":{},"tools":"x","reasoning":[],"include":1,"text":false,"stream":"yes","store":"no","prompt_cache_key":{},"client_metadata":3}',
  ),
  'items that are no objects': text(
    `{${HELLO},"input":[null,1,"x",[],{"type":5},{"role":{}},{"content":[null,{"text":{}}]}]}`,
  ),
  'messages that are no objects': text(
    '{"model":"gpt-5.5","messages":[null,1,"x",[],{"role":5},{"role":"user","content":[null]}]}',
  ),
  'tool calls that are none': text(
    '{"model":"gpt-5.5","messages":[{"role":"assistant","tool_calls":[null,{"function":7}]},{"role":"tool","content":{}}],"tools":[null,{"type":"function"}]}',
  ),
}

/** 200 MiB of blanks in a few kilobytes. */
export const bombs = () => {
  const blanks = new Uint8Array(200 * 1024 * 1024).fill(0x20)
  return { gzip: Bun.gzipSync(blanks), zstd: new Uint8Array(Bun.zstdCompressSync(blanks)) }
}
