/** HTTP bodies as frames: members are added and removed, and the rest is unchanged. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { isObject, type JsonObject } from '../../src/lib/json.ts'
import { asFrame, handshakeHeaders, requestHeaders } from '../../src/proxy/exchange/send-attempt.ts'
import { BodyBudget, BodyHold } from '../../src/proxy/ingress/raw-body.ts'
import type { Turn } from '../../src/proxy/turn/turn.ts'
import { holds } from '../support/property.ts'

const MARK = 'ws_request_header_x_openai_internal_codex_responses_lite'
const LITE = { 'x-openai-internal-codex-responses-lite': 'true' }

/** The frame of a body, as text. */
const framed = (text: string, { isLite = false } = {}): string => {
  const bytes = new TextEncoder().encode(text)
  const body = { bytes, json: JSON.parse(text), hold: new BodyHold(new BodyBudget(() => 0)) }
  return new TextDecoder().decode(asFrame({ transport: 'http', headers: isLite ? LITE : {}, body }, bytes))
}

describe('a frame is the body with its type in front', () => {
  test.each([
    ['{"model":"m","input":[]}', '{"type":"response.create","model":"m","input":[]}'],
    [' \n{ "model" : "m" }\n', ' \n{"type":"response.create", "model" : "m" }\n'],
    ['{}', '{"type":"response.create"}'],
    ['{ }', '{"type":"response.create" }'],
    ['{"type":"other","generate":true, "model":"é"}', '{"type":"response.create", "model":"é"}'],
    ['{"previous_response_id":null}', '{"type":"response.create"}'],
  ])('%s', (text, frame) => {
    expect(framed(text)).toBe(frame)
  })

  test('at any nesting depth', () => {
    const deep = `"deep":${'['.repeat(2000)}${']'.repeat(2000)}}`
    expect(framed(`{${deep}`)).toBe(`{"type":"response.create",${deep}`)
  })
})

describe('a lite body has its header in the metadata', () => {
  test.each([
    ['{"model":"m"}', `{"type":"response.create","client_metadata":{"${MARK}":"true"},"model":"m"}`],
    [
      '{"input":"\\"client_metadata\\":{", "client_metadata" : { "a": 1.0 } }',
      `{"type":"response.create","input":"\\"client_metadata\\":{", "client_metadata" : {"${MARK}":"true", "a": 1.0 } }`,
    ],
    ['{"client_metadata":{}}', `{"type":"response.create","client_metadata":{"${MARK}":"true"}}`],
    ['{"client_metadata":{"a":1}}', `{"type":"response.create","client_metadata":{"${MARK}":"true","a":1}}`],
    [`{"client_metadata":{"${MARK}":"no"}}`, `{"type":"response.create","client_metadata":{"${MARK}":"true"}}`],
    ['{"client_metadata":null}', `{"type":"response.create","client_metadata":{"${MARK}":"true"}}`],
    [
      '{"client\\u005fmetadata":{"a":1}}',
      `{"type":"response.create","client\\u005fmetadata":{"a":1,"${MARK}":"true"}}`,
    ],
  ])('%s', (text, frame) => {
    expect(framed(text, { isLite: true })).toBe(frame)
  })
})

describe('for any body', () => {
  const ONLY_IN_FRAMES = ['type', 'generate', 'previous_response_id']
  const name = fc.oneof(
    fc.constantFrom('model', 'input', 'client_metadata', 'x"client_metadata', ...ONLY_IN_FRAMES),
    fc.string(),
  )
  const metadata = fc.dictionary(fc.constantFrom('a', MARK, 'client_metadata'), fc.constantFrom('true', 'no', '{'))
  const value = fc.oneof(fc.jsonValue({ maxDepth: 3 }), metadata, fc.record({ client_metadata: metadata }))
  const blank = fc.constantFrom('', ' ', '\r\n\t')
  const member = fc.tuple(name, value, blank, fc.boolean())
  const spelled = (key: string, isSpelled: boolean) =>
    isSpelled
      ? JSON.stringify(key).replace(/[a-z_]/, (first) => `\\u00${first.charCodeAt(0).toString(16)}`)
      : JSON.stringify(key)
  const body = fc
    .tuple(fc.uniqueArray(member, { selector: ([key]) => key }), blank)
    .map(
      ([members, end]) =>
        `${end}{${members.map(([key, said, gap, isSpelled]) => `${gap}${spelled(key, isSpelled)}${gap}:${gap}${JSON.stringify(said)}`)}${end}}${end}`,
    )

  test('the frame has the same content, and the additions', () => {
    holds(
      fc.property(body, fc.boolean(), (text, isLite) => {
        const said: JsonObject = JSON.parse(text)
        const expected: JsonObject = { ...said, type: 'response.create' }
        for (const absent of ['generate', 'previous_response_id']) delete expected[absent]
        const before = isObject(said.client_metadata) ? said.client_metadata : {}
        if (isLite) expected.client_metadata = { ...before, [MARK]: 'true' }
        expect(JSON.parse(framed(text, { isLite }))).toEqual(expected)
      }),
      500,
    )
  })

  test('every byte of it is in the frame if nothing is removed', () => {
    holds(
      fc.property(body, (text) => {
        const said: JsonObject = JSON.parse(text)
        fc.pre(!ONLY_IN_FRAMES.some((absent) => absent in said))
        const at = text.indexOf('{') + 1
        const comma = Object.keys(said).length > 0 ? ',' : ''
        expect(framed(text)).toBe(`${text.slice(0, at)}"type":"response.create"${comma}${text.slice(at)}`)
      }),
    )
  })
})

describe('the beta features a client requests', () => {
  const getHeaders = (beta: string, transport: 'http' | 'websocket' = 'websocket') =>
    ({ headers: { 'openai-beta': beta }, transport, body: null }) as unknown as Turn // as: no more of a turn is read
  const SOCKETS = 'responses_websockets=2026-02-06'

  test.each([
    ['', SOCKETS],
    ['responses=experimental', SOCKETS],
    ['responses_websockets=2025-01-01, a=1', `a=1, ${SOCKETS}`],
  ])('are sent with a handshake, with the version Sluice supports: %j', (beta, expected) => {
    expect(handshakeHeaders(getHeaders(beta))['openai-beta']).toBe(expected)
  })

  test('are sent with a POST without those of sockets, and leave no empty header', () => {
    expect(requestHeaders(getHeaders(`a=1,${SOCKETS}`))).toEqual({ 'openai-beta': 'a=1' })
    expect(requestHeaders(getHeaders(SOCKETS))).toEqual({})
    expect(requestHeaders(getHeaders(SOCKETS, 'http'))).toEqual({ 'openai-beta': SOCKETS })
  })
})
