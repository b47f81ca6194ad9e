/** Invalid input on the wire, against one server, which still serves a valid request at the end. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { bombs, ODD, REFUSED } from '../http/bad-bodies.ts'
import { codexBody } from '../support/app.ts'
import { getError, getStatuses, sendRaw } from './raw.ts'
import { eventsUntilEnd, sendTurn, startWorld, type World } from './world.ts'

const NATIVE = '/backend-api/codex/responses'
const CHAT = '/v1/chat/completions'
const MIB = 1024 * 1024

let world: World
beforeAll(async () => {
  world = await startWorld({ accounts: 1 })
}, 120_000)
afterAll(() => world?.[Symbol.asyncDispose]())

/** The same process, with nothing on its conscience, answers a good turn. */
const expectWell = async () => {
  const { server, key, sim } = world
  const events = await eventsUntilEnd(await sendTurn(server.url, key))
  expect(events.at(-1)?.type).toBe('response.completed')
  expect(() => process.kill(server.pid, 0)).not.toThrow()
  const faults = server.output().match(/^.*(uncaught|unhandled|a request failed).*$/gim) ?? []
  expect(faults.slice(0, 3)).toEqual([])
  expect(await sim.look<string[]>('oddities')).toEqual([])
}

const send = (pieces: (string | Uint8Array)[], options?: Parameters<typeof sendRaw>[2]) =>
  sendRaw(world.server.port, pieces, options)

/** The start of a request with our key, up to and with the empty line. */
const head = (path: string, headers: Record<string, string | number>, method = 'POST'): string => {
  const usual = {
    Host: 'localhost',
    Connection: 'close',
    Authorization: `Bearer ${world.key}`,
    'Content-Type': 'application/json',
  }
  const lines = Object.entries({ ...usual, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`
}

const post = (path: string, body: Uint8Array, headers: Record<string, string> = {}) =>
  send([head(path, { 'Content-Length': body.length, ...headers }), body], { waitMs: 10_000 })

const chunk = (bytes: Uint8Array) => [`${bytes.length.toString(16)}\r\n`, bytes, '\r\n']

describe('Host', () => {
  test.each([
    ['two of them', 'Host: localhost\r\nHost: localhost'],
    ['two that differ', 'Host: localhost\r\nHost: evil.example'],
    ['a path and a user in it', 'Host: x/y@z'],
    ['a blank in it', 'Host: local host'],
    ['an impossible port', 'Host: localhost:99999'],
    ['an empty one', 'Host:'],
  ])('%s: 400 in the error format of the path', async (_name, lines) => {
    const native = await send([`GET /v1/models HTTP/1.1\r\n${lines}\r\nConnection: close\r\n\r\n`])
    expect(getStatuses(native)).toEqual([400])
    expect(getError(native)).toMatchObject({ code: 'bad_host', type: 'invalid_request_error' })
    const dashboard = await send([`GET /api/settings HTTP/1.1\r\n${lines}\r\nConnection: close\r\n\r\n`])
    expect(getStatuses(dashboard)).toEqual([400])
    expect(getError(dashboard).code).toBe('bad_host')
    expect(getError(dashboard)).not.toHaveProperty('type')
    await expectWell()
  })

  test.each(['/', '/xyz/v1/models', '/v1?x', '/health?x', '/health'])(
    'an empty one on %s: 400, as a page too',
    async (path) => {
      for (const accept of ['text/html', 'application/json']) {
        const answer = await send([`GET ${path} HTTP/1.1\r\nHost:\r\nAccept: ${accept}\r\nConnection: close\r\n\r\n`])
        expect(getStatuses(answer)).toEqual([400])
        expect(answer.toString()).toMatch(/^x-request-id: req_/im)
      }
      await expectWell()
    },
  )

  test('none, as HTTP/1.1 forbids', async () => {
    const answer = await send(['GET /v1/models HTTP/1.1\r\nConnection: close\r\n\r\n'])
    expect(getStatuses(answer)).toEqual([400])
    await expectWell()
  })

  test('none, as HTTP/1.0 allows: an error or a success', async () => {
    const answer = await send([`GET /v1/models HTTP/1.0\r\nAuthorization: Bearer ${world.key}\r\n\r\n`])
    const [status] = getStatuses(answer)
    if (status !== 200) expect([status, getError(answer).code]).toEqual([400, 'bad_host'])
    await expectWell()
  })

  test.each(['/health', '/health/live', '/health/ready', '/health/startup'])(
    'none at %s, as load balancers send',
    async (path) => {
      for (const method of ['GET', 'HEAD', 'OPTIONS']) {
        const answer = await send([`${method} ${path} HTTP/1.0\r\n\r\n`])
        expect(getStatuses(answer)).toEqual([200])
        expect(/^allow: (.*)\r$/im.exec(answer)?.[1]).toBe(method === 'OPTIONS' ? 'GET, HEAD, OPTIONS' : undefined)
      }
    },
  )
})

describe('bodies', () => {
  for (const [name, [body, code]] of Object.entries(REFUSED))
    test(`${name}: 400 ${code}`, async () => {
      const answer = await post(NATIVE, body)
      expect([getStatuses(answer), getError(answer).code]).toEqual([[400], code])
    })

  for (const [name, body] of Object.entries(ODD))
    test(`${name}: served or rejected`, async () => {
      for (const path of [NATIVE, '/v1/responses', CHAT]) {
        const [status] = getStatuses(await post(path, body))
        expect([200, 400]).toContain(status ?? 0)
      }
    })

  test('bombs are rejected at the limit', async () => {
    for (const [encoding, body] of Object.entries(bombs())) {
      const answer = await post(CHAT, body, { 'Content-Encoding': encoding })
      expect([getStatuses(answer), getError(answer).code]).toEqual([[413], 'payload_too_large'])
    }
    await expectWell()
  }, 120_000)

  test('an unknown encoding', async () => {
    const answer = await post(NATIVE, new TextEncoder().encode('{}'), { 'Content-Encoding': 'exi' })
    expect([getStatuses(answer), getError(answer).code]).toEqual([[400], 'unsupported_encoding'])
  })

  test('compressed and chunked, byte by byte, is served', async () => {
    const body = Bun.zstdCompressSync(JSON.stringify(codexBody()))
    const pieces = [...body].flatMap((byte) => chunk(new Uint8Array([byte])))
    const answer = await send([
      head(NATIVE, { 'Transfer-Encoding': 'chunked', 'Content-Encoding': 'zstd' }),
      ...pieces,
      '0\r\n\r\n',
    ])
    expect(getStatuses(answer)).toEqual([200])
    expect(answer).toContain('response.completed')
    await expectWell()
  })
})

describe('lengths', () => {
  test.each([
    [CHAT, 413],
    ['/v1/responses', 413],
    [NATIVE, 400],
  ])('%s: a declared length above the limit gets %d before the body arrives', async (path, status) => {
    const answer = await send([head(path, { 'Content-Length': 200 * MIB }), '{"model":'])
    expect([getStatuses(answer), getError(answer).code]).toEqual([[status], 'payload_too_large'])
    await expectWell()
  })

  test('a declared length above the limit on the dashboard', async () => {
    const answer = await send([head('/api/api-keys/', { 'Content-Length': 200 * MIB }), '{"name":'])
    expect([getStatuses(answer), getError(answer).code]).toEqual([[413], 'payload_too_large'])
    await expectWell()
  })

  test('too many chunks', async () => {
    const blanks = new Uint8Array(4 * MIB).fill(0x20)
    const pieces = Array.from({ length: 9 }, () => chunk(blanks)).flat()
    const answer = await send([head(CHAT, { 'Transfer-Encoding': 'chunked' }), ...pieces, '0\r\n\r\n'], {
      waitMs: 10_000,
    })
    expect([getStatuses(answer), getError(answer).code]).toEqual([[413], 'payload_too_large'])
    await expectWell()
  }, 120_000)

  test.each(['-1', 'ten', '99999999999999999999999', '1, 2'])('Content-Length: %s', async (length) => {
    const answer = await send([head(NATIVE, { 'Content-Length': length }), '{}'])
    for (const status of getStatuses(answer)) expect([400, 413]).toContain(status)
    await expectWell()
  })

  test.each(['Content-Length: 2\r\nContent-Length: 3', 'Content-Length: 2\r\nTransfer-Encoding: chunked'])(
    'two different ones do not smuggle a second request: %p',
    async (lines) => {
      const smuggled = 'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n'
      const answer = await send([`POST ${NATIVE} HTTP/1.1\r\nHost: localhost\r\n${lines}\r\n\r\n0\r\n\r\n${smuggled}`])
      expect(answer).not.toContain('"status":"ok"')
      expect(getStatuses(answer)).toEqual([400])
      await expectWell()
    },
  )
})

describe('clients that disconnect', () => {
  test('a body that ends early, forty times in a row, declared and chunked', async () => {
    const early = Array.from({ length: 40 }, (_, n) => {
      const path = n < 20 ? NATIVE : '/api/api-keys/'
      const framing: Record<string, string> = n % 2 ? { 'Transfer-Encoding': 'chunked' } : { 'Content-Length': '1000' }
      return send([head(path, framing), n % 2 ? '5\r\n{"mo' : '{"model":'], { hangUp: true })
    })
    for (const answer of await Promise.all(early)) for (const status of getStatuses(answer)) expect(status).toBe(400)
    await expectWell()
  })

  test('in the head', async () => {
    for (const cut of ['P', 'POST /v1', `POST ${NATIVE} HTTP/1.1\r\nHost: lo`]) await send([cut], { hangUp: true })
    await expectWell()
  })

  test('right after a whole request', async () => {
    const body = JSON.stringify(codexBody())
    await Promise.all(
      Array.from({ length: 20 }, () => send([head(NATIVE, { 'Content-Length': body.length }), body], { waitMs: 1 })),
    )
    await expectWell()
  })
})

describe('invalid HTTP', () => {
  test('a head of a megabyte: 431, or the connection ends', async () => {
    const answer = await send([head(NATIVE, { 'X-Long': 'x'.repeat(MIB) }, 'GET')])
    for (const status of getStatuses(answer)) expect([400, 431]).toContain(status)
    await expectWell()
  })

  test('ten thousand headers', async () => {
    const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`X-${n}`, 'y']))
    const answer = await send([head('/health', many, 'GET')])
    for (const status of getStatuses(answer)) expect([400, 431]).toContain(status)
    await expectWell()
  })

  test('garbage after a valid request on the same connection', async () => {
    const good = 'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n'
    const answer = await send([good, '\u0000\u0001garbage\r\n\r\n', good])
    expect(getStatuses(answer)[0]).toBe(200)
    expect(
      getStatuses(answer)
        .slice(1)
        .filter((status) => status !== 400),
    ).toEqual([])
    await expectWell()
  })

  test.each([
    ['a TLS greeting', '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003'],
    ['HTTP/2 without negotiation', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['a version that does not exist', 'GET / HTTP/9.9\r\nHost: localhost\r\n\r\n'],
    ['a NUL in a header', 'GET / HTTP/1.1\r\nHost: localhost\r\nX: a\u0000b\r\n\r\n'],
    ['a header without a colon', 'GET / HTTP/1.1\r\nHost: localhost\r\nnonsense\r\n\r\n'],
    ['a proxy request', 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\nConnection: close\r\n\r\n'],
    ['blank lines', '\r\n\r\n\r\n\r\n'],
  ])('%s', async (_name, bytes) => {
    const answer = await send([bytes], { waitMs: 300 })
    expect(answer).not.toContain('routingStrategy')
    for (const status of getStatuses(answer)) expect(status).toBeGreaterThanOrEqual(400)
    await expectWell()
  })
})

describe('keys', () => {
  test.each([
    ['none', ''],
    ['a wrong one', 'Authorization: Bearer sk-clb-wrong\r\n'],
    ['non-ASCII bytes', 'Authorization: Bearer \u00ff\u00fe\r\n'],
    ['two headers', 'Authorization: Bearer a\r\nAuthorization: Bearer b\r\n'],
  ])('%s: 401 before the body is read', async (_name, line) => {
    const answer = await send([
      `POST ${NATIVE} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${line}Content-Length: 500\r\n\r\n`,
    ])
    expect([getStatuses(answer), getError(answer).code]).toEqual([[401], 'invalid_api_key'])
    await expectWell()
  })
})
