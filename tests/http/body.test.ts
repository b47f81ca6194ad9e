/** Bodies and parameters: one schema for JSON and forms, and rejections that name the field. */
import { expect, test } from 'bun:test'
import { z } from 'zod'
import { body, fromForm } from '../../src/http/body.ts'
import { open } from '../../src/http/gates.ts'
import { query } from '../../src/http/query.ts'
import { testApp } from '../support/app.ts'
import { getProblem, probe } from './probe.ts'

const Thing = z.strictObject({
  name: z.string().min(1),
  seconds: z.int().min(1).optional(),
  isOn: z.boolean().optional(),
  note: z.string().nullable().optional(),
  tags: z.array(z.string()).optional(),
  kind: z.enum(['a', 'b']).optional(),
  limits: z.array(z.strictObject({ max: z.number() })).optional(),
  identity: z.strictObject({ subject: z.string() }).optional(),
})
const { ask } = probe((app) => {
  app.post('/api/thing', open('test'), body(Thing), (c) => c.json(c.req.valid('json')))
  app.post('/api/maybe', open('test'), body(Thing.partial()), (c) => c.json(c.req.valid('json')))
  app.get('/api/list', open('test'), query(z.strictObject({ limit: z.coerce.number().max(5) })), (c) =>
    c.json(c.req.valid('query')),
  )
})
const JSON_TYPE = { 'content-type': 'application/json' }
const postJson = (text: string) => ask('POST /api/thing', { body: text, headers: JSON_TYPE })

test('JSON is parsed and passed on as the schema defines', async () => {
  expect(await (await postJson('{"name":"x","seconds":3}')).json()).toEqual({ name: 'x', seconds: 3 })
})

test('every invalid and every unknown field is named', async () => {
  const response = await postJson('{"name":"","seconds":"3","identity":{"subject":1},"isAdmin":true}')
  expect(response.status).toBe(422)
  const { code, param, details } = await getProblem(response)
  expect([code, param]).toEqual(['validation_error', 'name'])
  const { fields } = details as { fields: Record<string, string[]> }
  expect(Object.keys(fields).toSorted()).toEqual(['identity.subject', 'isAdmin', 'name', 'seconds'])
  expect(fields.isAdmin).toEqual(['is not a field of this request'])
})

test.each(['null', '[]', '3', '"x"'])('%s is not an object', async (text) => {
  expect((await postJson(text)).status).toBe(422)
})

test('broken JSON and a body of another type are distinguished from an empty document', async () => {
  expect((await getProblem(await postJson('{"name"'))).code).toBe('malformed_json')
  const xml = await ask('POST /api/thing', { body: '<a/>', headers: { 'content-type': 'text/xml' } })
  expect([xml.status, (await getProblem(xml)).code]).toEqual([415, 'unsupported_media_type'])
  expect(await (await ask('POST /api/maybe')).json()).toEqual({})
})

test('a truncated or empty form is rejected as such, not as an internal error', async () => {
  const headers = { 'content-type': 'multipart/form-data; boundary=x' }
  for (const body of ['', '--x\r\ncontent-disp']) {
    const refused = await ask('POST /api/thing', { body, headers })
    expect([refused.status, (await getProblem(refused)).code]).toEqual([422, 'validation_error'])
  }
})

test('on an open route, more than 64 KiB are rejected, declared or counted', async () => {
  const declared = { ...JSON_TYPE, 'content-length': String(64 * 1024 + 1) }
  const blanks = new Uint8Array(16 * 1024).fill(0x20)
  let pulls = 0
  const counted = new ReadableStream({
    pull: (controller) => (++pulls > 8 ? controller.close() : controller.enqueue(blanks)),
  })
  for (const init of [
    { body: '{}', headers: declared },
    { body: counted, headers: JSON_TYPE },
  ]) {
    const response = await ask('POST /api/thing', init)
    expect([response.status, (await getProblem(response)).code]).toEqual([413, 'payload_too_large'])
  }
})

test('signed-in users can send 1 MiB', async () => {
  const { ask: send } = await testApp()
  const names = (kib: number) => `{"name":"x","allowedModels":["${'y'.repeat(kib * 1024)}"]}`
  const codes = [900, 1024].map(
    async (kib) => (await getProblem(await send('POST /api/api-keys/', { body: names(kib) }))).code,
  )
  expect(await Promise.all(codes)).toEqual(['validation_error', 'payload_too_large'])
})

test('only the first of very many invalid fields are named', async () => {
  const names = Array.from({ length: 3000 }, (_, index) => `no${index}`)
  const json = JSON.stringify({ name: 'x', ...Object.fromEntries(names.map((name) => [name, 0])) })
  const form = new URLSearchParams([['name', 'x'], ...names.map((name): [string, string] => [name, '0'])])
  const list = JSON.stringify({ name: 'x', tags: names.map(() => 0) })
  for (const response of [await postJson(json), await ask('POST /api/thing', { body: form }), await postJson(list)]) {
    expect(response.status).toBe(422)
    const { fields } = (await getProblem(response)).details as { fields: Record<string, string[]> }
    expect(Object.keys(fields)).toHaveLength(50)
  }
})

test('a form with more fields than any of ours is rejected before parsing', async () => {
  const odd = (count: number) => Array.from({ length: count }, (_, index) => `no${index}=`).join('&')
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const answers = [4000, 4001].map((count) => ask('POST /api/thing', { body: odd(count), headers }))
  const refused = await Promise.all(answers.map(async (answer) => getProblem(await answer)))
  expect(refused.map(({ code }) => code)).toEqual(['validation_error', 'payload_too_large'])
  expect(refused[1]?.message).toBe('A form can have at most 4000 fields.')
  const { ask: send } = await testApp()
  const part = '--b\r\ncontent-disposition: form-data; name="no"\r\n\r\n\r\n'
  const multipart = { 'content-type': 'multipart/form-data; boundary=b' }
  for (const [count, code] of [
    [4000, 'validation_error'],
    [4001, 'payload_too_large'],
  ] as const) {
    const answer = await send('POST /api/api-keys/', { body: `${part.repeat(count)}--b--\r\n`, headers: multipart })
    expect((await getProblem(answer)).code).toBe(code)
  }
})

const PART = '\r\ncontent-disposition: form-data; name="no"\r\n\r\nx\r\n'

test.each([
  'boundary=b; boundary=c',
  'xboundary=c; boundary=b',
  'x="boundary=c"; boundary=b',
  'boundary*=b',
  'boundary=',
  'boundary=""',
  'boundary="b',
  'boundary=b"c"',
  'boundary="b"c',
  'boundary="\\b"',
  'boundary= b',
  'boundary=b c',
  'boundary=é',
  'boundary=b, multipart/form-data; boundary=c',
  // The runtime takes these for the other kind of form.
  'boundary=b; application/x-www-form-urlencoded',
  'boundary=b; x=application/x-www-form-urlencoded',
  'boundary=application/x-www-form-urlencoded',
])('an ambiguous multipart boundary is rejected: %s', async (parameters) => {
  const headers = { 'content-type': `multipart/form-data; ${parameters}` }
  for (const body of [`--b${PART}--b--\r\n`, 'a=&'.repeat(4001)]) {
    const refused = await ask('POST /api/thing', { body, headers })
    expect([refused.status, (await getProblem(refused)).code]).toEqual([400, 'invalid_request_error'])
  }
})

test.each([
  ['boundary=----WebKitFormBoundaryAb1', '----WebKitFormBoundaryAb1'],
  ['BOUNDARY="b.c_d"', 'b.c_d'],
  ["boundary='b'; charset=UTF-8", "'b'"],
  ['charset=utf-8;boundary="----=_Part_1.2"', '----=_Part_1.2'],
])('a multipart form with one boundary is read: %s', async (parameters, boundary) => {
  const headers = { 'content-type': `Multipart/Form-Data; ${parameters}` }
  const code = async (count: number) => {
    const body = `${`--${boundary}${PART}`.repeat(count)}--${boundary}--\r\n`
    const { ask: send } = await testApp()
    return (await getProblem(await send('POST /api/api-keys/', { body, headers }))).code
  }
  expect([await code(4000), await code(4001)]).toEqual(['validation_error', 'payload_too_large'])
})

test('a field called __proto__ is rejected by name', async () => {
  const response = await postJson('{"name":"x","__proto__":{"isOn":true}}')
  expect(response.status).toBe(422)
  expect((await getProblem(response)).param).toBe('__proto__')
})

test('a form becomes the same document', async () => {
  const form = new URLSearchParams([
    ['name', 'x'],
    ['seconds', '90'],
    ['isOn', 'false'],
    ['isOn', 'true'],
    ['note', ''],
    ['tags', 'one'],
    ['kind', ''],
    ['identity.subject', 'me'],
  ])
  const response = await ask('POST /api/thing', { body: form })
  expect(await response.json()).toEqual({
    name: 'x',
    seconds: 90,
    isOn: true,
    note: null,
    tags: ['one'],
    identity: { subject: 'me' },
  })
})

test('an unchecked box is false, an empty number is omitted, an invalid one is rejected at its field', async () => {
  expect(fromForm(Thing, { name: 'x', isOn: 'false', seconds: '' })).toEqual({ name: 'x', isOn: false })
  const bad = await ask('POST /api/thing', { body: new URLSearchParams({ name: 'x', seconds: 'soon' }) })
  expect((await getProblem(bad)).details).toMatchObject({ fields: { seconds: [expect.any(String)] } })
})

test('a form cannot reach the prototype', () => {
  const form = JSON.parse('{"name":"x","__proto__":{"isOn":"true"},"constructor":"y"}') as Record<string, unknown>
  expect(Object.keys(fromForm(Thing, form) as object)).toContain('constructor')
  expect(({} as { isOn?: unknown }).isOn).toBeUndefined()
})

test('parameters are rejected the same way', async () => {
  expect(await (await ask('GET /api/list?limit=4')).json()).toEqual({ limit: 4 })
  for (const path of ['/api/list?limit=9', '/api/list?limit=1&other=2']) {
    const response = await ask(`GET ${path}`)
    expect([response.status, (await getProblem(response)).code]).toEqual([422, 'validation_error'])
  }
})
