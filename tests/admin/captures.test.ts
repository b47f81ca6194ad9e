/** Captures: what is stored of requests, for how long, and who can see it. */
import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { purgeCaptures } from '../../src/jobs/retention.ts'
import { advanceClockDuring, codexBody, type TestApp, type TestOptions, testApp } from '../support/app.ts'
import { people, problem, type TestUser } from '../support/people.ts'

/** What the upstream accepts there. */
const COMPACT = { model: 'gpt-5.5', instructions: 'Be brief.', input: codexBody('long').input }
const NATIVE = 'POST /backend-api/codex/responses'
const KEYED = { settings: { apiKeyAuthEnabled: true } } as const

interface Started {
  id: string
  isRunning: boolean
  endReason: string | null
  requests: number
  bytes: number
  droppedBytes: number
  endsAt: string
}
interface Item {
  id: string
  path: string
  status: string | null
  httpStatus: number | null
  errorCode: string | null
  droppedBytes: number
}
interface Read extends Item {
  request: { headers: { name: string; value: string }[]; body: string | null; bodyBytes: number }
  attempts: {
    accountId: string | null
    status: number | null
    body: string | null
    error: { message: string } | null
    events: { at: string; type: string; data: string }[] | null
  }[]
  curl: string | null
}

const json = async <T>(response: Response | Promise<Response>): Promise<T> => (await (await response).json()) as T // as: the members that are named

const setup = async (options: TestOptions = KEYED) => {
  const app = await testApp(options)
  const crowd = people(app)
  const admin = await crowd.as('admin')
  const { key, row } = await app.key()
  const captures = async () => (await json<{ items: Started[] }>(admin.ask('GET /api/captures'))).items
  return {
    app,
    crowd,
    admin,
    keyId: row.id,
    bearer: { authorization: `Bearer ${key}` },
    key,
    captures,
    start: (fields: Record<string, unknown> = {}) =>
      json<Started>(admin.ask('POST /api/captures', { json: { keyId: row.id, minutes: 15, ...fields } })),
    items: async (query = '') => {
      await app.bindings.captures.flush()
      return (await json<{ items: Item[] }>(admin.ask(`GET /api/conversation-archive${query}`))).items
    },
    read: (id: string, by: TestUser = admin) => json<Read>(by.ask(`GET /api/conversation-archive/${id}`)),
  }
}

const send = async (
  { app, bearer }: Pick<Awaited<ReturnType<typeof setup>>, 'app' | 'bearer'>,
  route: string,
  body: unknown,
) => {
  const response = await app.ask(route, { json: body, headers: bearer })
  return { status: response.status, text: await response.text() }
}

const getFiles = (app: TestApp): string[] => {
  const folder = join(app.dir, 'captures')
  return existsSync(folder)
    ? readdirSync(folder, { recursive: true })
        .map(String)
        .filter((name) => name.endsWith('.bin'))
    : []
}

describe('what a capture stores', () => {
  const ROUTES = [
    { route: NATIVE, body: codexBody('a  spaced  text'), isStream: true },
    {
      route: 'POST /v1/responses',
      body: { model: 'gpt-5.5', input: 'hello', stream: true, temperature: 0.5 },
      isStream: true,
    },
    { route: 'POST /v1/responses', body: { model: 'gpt-5.5', input: 'hello' }, isStream: true },
    {
      route: 'POST /v1/chat/completions',
      body: { model: 'gpt-5.5', messages: [{ role: 'user', content: 'hi' }], stream: true },
      isStream: true,
    },
    { route: 'POST /backend-api/codex/alpha/search', body: { q: 'weather' }, isStream: false },
    { route: 'POST /backend-api/codex/responses/compact', body: COMPACT, isStream: true },
  ]

  test.each(ROUTES)(
    '$route $body: the body as sent, and the answer as ChatGPT sent it',
    async ({ route, body, isStream }) => {
      const house = await setup()
      await house.start()
      const text = `{ \n ${JSON.stringify(body).slice(1)} ` // spacing that no serializer produces
      const response = await house.app.ask(route, { body: text, headers: house.bearer })
      expect([response.status, (await response.text()).length > 0]).toEqual([200, true])
      const [item, ...others] = await house.items()
      expect(others).toEqual([])
      expect(item).toMatchObject({ path: route.split(' ')[1], status: 'ok', httpStatus: 200, droppedBytes: 0 })
      const read = await house.read(item?.id ?? '')
      expect(read.request).toMatchObject({ body: text, bodyBytes: text.length })
      expect(read.attempts).toMatchObject([{ accountId: house.app.members[0]?.id, status: 200, error: null }])
      const [answer] = read.attempts
      if (isStream) expect(answer?.events?.at(-1)?.type).toBe('response.completed')
      else expect(JSON.parse(answer?.body ?? '')).toHaveProperty('by')
      expect(item?.id).toBe((await house.app.rows())[0]?.id ?? '')
    },
  )

  test('every event in its original order and form, even when deltas are joined for the client', async () => {
    const house = await setup()
    await house.start()
    const { text } = await send(house, NATIVE, codexBody('count'))
    const [item] = await house.items()
    const { attempts } = await house.read(item?.id ?? '')
    const sent = text
      .split('\n')
      .filter((line) => line.startsWith('data: '))
      .map((line) => line.slice(6))
    expect(attempts[0]?.events?.map(({ data }) => data)).toEqual(sent)
    expect(sent.length).toBeGreaterThan(5)
  })

  test('requests of other keys and of no key are not stored', async () => {
    const house = await setup({})
    await house.start()
    const other = { authorization: `Bearer ${(await house.app.key()).key}` }
    await (await house.app.ask(NATIVE, { json: codexBody(), headers: other })).text()
    await (await house.app.ask(NATIVE, { json: codexBody() })).text()
    expect(await house.items()).toEqual([])
    expect(getFiles(house.app)).toEqual([])
  })

  test('a capture of an account stores what that account answered, for any key', async () => {
    const house = await setup({ accounts: 2 })
    const [first, second] = house.app.members as [(typeof house.app.members)[0], (typeof house.app.members)[0]]
    await house.start({ keyId: undefined, accountId: second.id })
    await house.app.prefer(first.id)
    await (await house.app.ask(NATIVE, { json: codexBody('only the first') })).text()
    expect(await house.items()).toEqual([])
    first.sim.always({ status: 429, body: { error: { type: 'usage_limit_reached', resets_in_seconds: 60 } } })
    await (await house.app.ask(NATIVE, { json: codexBody('then the second') })).text()
    const [item] = await house.items()
    const read = await house.read(item?.id ?? '')
    expect(read.attempts).toMatchObject([{ accountId: second.id, status: 200 }])
    expect(read.request.body).toContain('then the second')
  })

  test('the error ChatGPT answered with, and the error the client got', async () => {
    const house = await setup()
    await house.start()
    house.app.members[0]?.sim.always({ status: 400, body: { error: { message: 'No such tool', code: 'bad_tool' } } })
    const { status } = await send(house, NATIVE, codexBody())
    const [item] = await house.items()
    expect(item).toMatchObject({ status: 'error', httpStatus: status, errorCode: 'bad_tool' })
    const { attempts } = await house.read(item?.id ?? '')
    expect(attempts[0]).toMatchObject({ status: 400, error: { message: 'No such tool' } })
    expect(attempts[0]?.body).toContain('"bad_tool"')
  })

  test.each([
    ['broken JSON', '{"model":', 'malformed_json'],
    ['a list', '[1, 2]', 'invalid_request_error'],
    ['a model that is not a string', '{"model":7}', 'invalid_request_error'],
  ])('a request that Sluice rejects itself: %s', async (_, body, code) => {
    const house = await setup()
    await house.start()
    expect((await house.app.ask(NATIVE, { body, headers: house.bearer })).status).toBe(400)
    const [item] = await house.items()
    expect(item).toMatchObject({ status: 'error', httpStatus: 400, errorCode: code })
    const read = await house.read(item?.id ?? '')
    expect(read.attempts).toEqual([])
  })
})

describe('secrets', () => {
  const HEADERS = {
    cookie: 'session=marked-cookie-value',
    'x-api-key': 'marked-other-key',
    'proxy-authorization': 'Basic marked-proxy-password',
    'cf-access-jwt-assertion': 'marked-assertion',
    'x-note': 'uses sk-marked0key0in0a0value today',
    'x-plain': 'shown',
  }
  const MARKED = [
    'marked-cookie-value',
    'marked-other-key',
    'marked-proxy-password',
    'marked-assertion',
    'sk-marked0key0in0a0value',
  ]

  test('no key, token, cookie or request text is on the disk unencrypted, and no credential is shown', async () => {
    const house = await setup()
    await house.start()
    const headers = { ...house.bearer, ...HEADERS, 'x-copy': `again ${house.key}` }
    const body = codexBody('marked prompt text')
    await (await house.app.ask(NATIVE, { json: body, headers })).text()
    const [item] = await house.items()
    const { tokens } = JSON.parse(house.app.members[0]!.sim.authJson()) as { tokens: Record<string, string> } // as: the client's file
    const secrets = [house.key, ...MARKED, tokens.access_token!, tokens.refresh_token!, tokens.id_token!]
    for (const name of readdirSync(join(house.app.dir, 'captures'), { recursive: true }).map(String)) {
      const path = join(house.app.dir, 'captures', name)
      if (!statSync(path).isFile()) continue
      const text = readFileSync(path, 'latin1')
      expect([...secrets, 'marked prompt', 'hello'].filter((secret) => text.includes(secret))).toEqual([])
    }
    const shown = JSON.stringify(await house.read(item?.id ?? ''))
    expect(secrets.filter((secret) => shown.includes(secret))).toEqual([])
    expect(shown).toContain('{"name":"x-plain","value":"shown"}')
    expect(shown).toContain('{"name":"authorization","value":"[removed]"}')
    expect(shown).toContain('marked prompt text')
  })

  test('the folder and the files are accessible to their owner only', async () => {
    const house = await setup()
    const { id } = await house.start()
    await send(house, NATIVE, codexBody())
    await house.items()
    const modes = [house.app.dir, 'captures', `captures/${id}`]
      .slice(1)
      .map((name) => statSync(join(house.app.dir, name)).mode & 0o777)
    expect(modes).toEqual([0o700, 0o700])
    const files = readdirSync(join(house.app.dir, 'captures', id))
    expect(files.map((name) => statSync(join(house.app.dir, 'captures', id, name)).mode & 0o777)).toEqual(
      files.map(() => 0o600),
    )
  })

  test('the curl command has a variable for the key, and escapes quotes in a body', async () => {
    const house = await setup()
    await house.start()
    await send(house, NATIVE, codexBody(`it's $HOME \`x\``))
    const [item] = await house.items()
    const { curl } = await house.read(item?.id ?? '')
    expect(curl).toContain('-H "Authorization: Bearer $SLUICE_API_KEY"')
    expect(curl).not.toContain(house.key)
    const printed = Bun.spawnSync(['sh', '-c', (curl ?? '').replace(/^curl/, 'printf "%s\\n"')]).stdout.toString()
    expect(printed).toContain("it's $HOME `x`")
  })
})

describe('how a capture ends', () => {
  test('at its time, also without requests and after a restart', async () => {
    const house = await setup()
    await house.start()
    await house.app.clock.advance('14m')
    expect((await house.captures())[0]).toMatchObject({ isRunning: true })
    await house.app.restart()
    expect((await house.captures())[0]).toMatchObject({ isRunning: true })
    house.app.clock.set(10 * 60_000) // no timer fires, as while the machine sleeps
    await house.app.restart()
    expect((await house.captures())[0]).toMatchObject({ isRunning: false, endReason: 'time' })
    expect(house.app.bindings.captures.isOn).toBe(false)
    expect(
      (await house.crowd.audit()).map(({ event }) => event).filter((event) => event === 'capture_ended'),
    ).toHaveLength(1)
    await send(house, NATIVE, codexBody())
    expect(await house.items()).toEqual([])
  })

  test('by its timer, while Sluice runs', async () => {
    const house = await setup()
    await house.start()
    expect(house.app.bindings.captures.isOn).toBe(true)
    await house.app.clock.advance('15m')
    expect(house.app.bindings.captures.isOn).toBe(false)
  })

  test('at its size, which it never exceeds', async () => {
    const house = await setup()
    const { id } = await house.start({ maxMiB: 1 })
    const noise = Array.from({ length: 40_000 }, (_, i) => Bun.hash(String(i)).toString(36)).join('')
    for (let n = 0; n < 4; n++) await send(house, NATIVE, codexBody(noise.slice(n)))
    await house.items()
    const [capture] = await house.captures()
    expect(capture).toMatchObject({ isRunning: false, endReason: 'size' })
    const files = getFiles(house.app).map((name) => statSync(join(house.app.dir, 'captures', name)).size)
    expect(files.reduce((a, b) => a + b, 0)).toBeLessThanOrEqual(1024 * 1024)
    expect(capture?.bytes).toBe(files.reduce((a, b) => a + b, 0))
    expect(existsSync(join(house.app.dir, 'captures', id))).toBe(true)
  })

  test('when a file cannot be written', async () => {
    const house = await setup()
    const { id } = await house.start()
    await send(house, NATIVE, codexBody())
    const folder = join(house.app.dir, 'captures', id)
    Bun.spawnSync(['rm', '-r', folder])
    writeFileSync(folder, 'a file where the folder was')
    expect((await send(house, NATIVE, codexBody())).status).toBe(200)
    await house.app.bindings.captures.flush()
    expect((await house.captures())[0]).toMatchObject({ isRunning: false, endReason: 'disk' })
    Bun.spawnSync(['rm', '-r', folder])
  })

  test('when a user stops it; what was stored stays', async () => {
    const house = await setup()
    const { id } = await house.start()
    await send(house, NATIVE, codexBody())
    const ended = await json<Started>(house.admin.ask(`DELETE /api/captures/${id}`))
    expect(ended).toMatchObject({ isRunning: false, endReason: 'stopped' })
    await send(house, NATIVE, codexBody())
    expect(await house.items(`?captureId=${id}`)).toHaveLength(1)
    expect((await house.captures())[0]).toMatchObject({ requests: 1 })
    expect(await json<Started>(house.admin.ask(`DELETE /api/captures/${id}`))).toMatchObject({ endReason: 'stopped' })
  })

  test('when it is stopped twice at the same time, with one audit entry', async () => {
    const house = await setup()
    const { id } = await house.start()
    await Promise.all([1, 2, 3].map(() => house.admin.ask(`DELETE /api/captures/${id}`)))
    expect((await house.crowd.audit()).filter(({ event }) => event === 'capture_ended')).toHaveLength(1)
  })

  test('it is deleted from the disk some days after it ended', async () => {
    const house = await setup()
    const { id } = await house.start()
    await send(house, NATIVE, codexBody())
    await house.items()
    const purge = () => purgeCaptures({ ...house.app.bindings })
    await house.app.clock.advance('7d')
    await purge()
    expect(existsSync(join(house.app.dir, 'captures', id))).toBe(true)
    await house.app.clock.advance('1h')
    await purge()
    expect(existsSync(join(house.app.dir, 'captures', id))).toBe(false)
    expect(house.app.bindings.captures.list()).toEqual([])
  })
})

describe('the files of a capture', () => {
  test('are readable after the process is killed', async () => {
    const house = await setup()
    await house.start()
    await send(house, NATIVE, codexBody('before the crash'))
    const [item] = await house.items()
    const [file] = getFiles(house.app)
    const path = join(house.app.dir, 'captures', file ?? '')
    const { size } = statSync(path)
    for (const cut of [1, 3, 5, 60]) {
      truncateSync(path, size - cut)
      await house.app.restart()
      expect((await house.items())[0]).toMatchObject({ id: item?.id, status: null })
      const read = await house.read(item?.id ?? '')
      expect(read.request.body).toContain('before the crash')
      expect(read.attempts[0]?.events?.length).toBeGreaterThan(3)
    }
    truncateSync(path, 2)
    expect((await house.items())[0]).toMatchObject({ id: item?.id, path: null, status: null })
  })

  test('a file is removed when its request is deleted, also while it runs', async () => {
    const house = await setup()
    await house.start()
    await send(house, NATIVE, codexBody())
    const [item] = await house.items()
    expect(getFiles(house.app)).toHaveLength(1)
    expect((await house.admin.ask(`DELETE /api/conversation-archive/${item?.id}`)).status).toBe(200)
    expect(getFiles(house.app)).toEqual([])
    expect(await problem(await house.admin.ask(`DELETE /api/conversation-archive/${item?.id}`))).toEqual([
      404,
      'not_found',
    ])
    expect(await problem(await house.admin.ask(`GET /api/conversation-archive/${item?.id}`))).toEqual([
      404,
      'not_found',
    ])
    expect((await house.captures())[0]).toMatchObject({ requests: 0, bytes: 0 })

    house.app.members[0]?.sim.next({ dripMs: 1000 })
    const asked = house.app.ask(NATIVE, { json: codexBody('still running'), headers: house.bearer })
    const open = await advanceClockDuring(house.app, asked)
    const [running] = await house.items()
    expect(running).toMatchObject({ status: null })
    await house.admin.ask(`DELETE /api/conversation-archive/${running?.id}`)
    const rest = open.text()
    await house.app.clock.advance('5m')
    expect(await rest).toContain('response.completed')
    await house.app.bindings.captures.flush()
    expect(getFiles(house.app)).toEqual([])
  })

  test('the folder is removed when the capture is deleted, also while it runs', async () => {
    const house = await setup()
    const { id } = await house.start()
    await send(house, NATIVE, codexBody())
    expect((await house.admin.ask(`DELETE /api/captures/${id}/requests`)).status).toBe(200)
    expect(readdirSync(join(house.app.dir, 'captures'))).toEqual([])
    expect(house.app.bindings.captures.isOn).toBe(false)
    await send(house, NATIVE, codexBody())
    expect(getFiles(house.app)).toEqual([])
  })

  test('a damaged capture description does not prevent the start, and can still be deleted', async () => {
    const house = await setup()
    const { id } = await house.start()
    await send(house, NATIVE, codexBody())
    await house.items()
    for (const text of ['{', 'null', '{"id":"cap_other"}']) {
      writeFileSync(join(house.app.dir, 'captures', id, 'capture.json'), text)
      await house.app.restart()
      expect(await house.captures()).toMatchObject([{ id, isRunning: false, requests: 1 }])
    }
    expect((await house.admin.ask(`DELETE /api/captures/${id}/requests`)).status).toBe(200)
  })

  test('what cannot be written in time is dropped, counted and reported; the client gets everything', async () => {
    const house = await setup()
    await house.start()
    const { captures } = house.app.bindings
    const big = 'x'.repeat(9 * 1024 * 1024)
    for (let n = 0; n < 5; n++) expect((await send(house, NATIVE, codexBody(big))).status).toBe(200) // nothing is written, because the clock does not move
    const items = await house.items()
    expect(items.filter(({ droppedBytes }) => droppedBytes > 0).length).toBeGreaterThan(0)
    expect((await house.captures())[0]?.droppedBytes).toBeGreaterThan(9 * 1024 * 1024)
    expect(captures.isOn).toBe(true)
  })
})

describe('permissions for captures', () => {
  test('start one: a scope that exists, within the bounds, one at a time', async () => {
    const house = await setup()
    const accountId = house.app.members[0]?.id
    const refused = async (fields: Record<string, unknown>) =>
      problem(await house.admin.ask('POST /api/captures', { json: { minutes: 15, ...fields } }))
    for (const fields of [
      {},
      { keyId: house.keyId, accountId },
      { keyId: 'key_of_nobody' },
      { accountId: 'acc_of_nobody' },
      { keyId: house.keyId, minutes: 14 },
      { keyId: house.keyId, minutes: 10_081 },
      { keyId: house.keyId, maxMiB: 0 },
      { keyId: house.keyId, maxMiB: 1e9 },
      { keyId: house.keyId, other: 1 },
    ])
      expect(await refused(fields)).toEqual([422, 'validation_error'])
    await house.start()
    expect(await refused({ keyId: house.keyId })).toEqual([409, 'capture_conflict'])
    expect(await json(house.admin.ask('POST /api/captures', { json: { accountId, minutes: 10_080 } }))).toMatchObject({
      isRunning: true,
      maxMiB: 64,
    })
    expect(await house.captures()).toHaveLength(2)
  })

  test.each(['operator', 'viewer', 'guest'])('%s: no access', async (role) => {
    const house = await setup()
    const { id } = await house.start()
    await send(house, NATIVE, codexBody())
    const [item] = await house.items()
    const who = role === 'guest' ? await house.crowd.guest('127.0.0.1') : await house.crowd.as(role)
    for (const [route, permission] of [
      ['GET /api/captures', 'security:write'],
      ['POST /api/captures', 'security:write'],
      [`DELETE /api/captures/${id}`, 'security:write'],
      ['GET /api/conversation-archive', 'conversations:read'],
      [`GET /api/conversation-archive/${item?.id}`, 'conversations:read'],
      [`DELETE /api/conversation-archive/${item?.id}`, 'security:write'],
      [`DELETE /api/captures/${id}/requests`, 'security:write'],
      ['GET /logs/captures', 'security:write'],
      [`GET /logs/captures/${id}`, 'conversations:read'],
      [`GET /logs/${item?.id}/captured`, 'conversations:read'],
    ] as const) {
      const response = await who.ask(
        route,
        route.startsWith('POST') ? { json: { keyId: house.keyId, minutes: 15 } } : {},
      )
      const { error } = await json<{ error: { code: string; param: string } }>(response)
      expect([route, response.status, error.code, error.param]).toEqual([route, 403, 'permission_required', permission])
    }
    expect(getFiles(house.app)).toHaveLength(1)
  })

  test('each read of a capture leaves an audit entry; a list does not', async () => {
    const house = await setup()
    await house.start()
    await send(house, NATIVE, codexBody())
    const [item] = await house.items()
    const reads = async () => (await house.crowd.audit()).filter(({ event }) => event === 'captured_request_read')
    expect(await reads()).toHaveLength(0)
    await house.read(item?.id ?? '')
    await (await house.admin.ask(`GET /logs/${item?.id}/captured`)).text()
    await (await house.admin.ask(`GET /api/conversation-archive/${item?.id}?part=request`)).text()
    expect((await reads()).map(({ target }) => target)).toEqual([item?.id, item?.id, item?.id] as string[])
  })

  test('a role with read permission can read, and one with start permission can start', async () => {
    const house = await setup()
    const { id } = await house.start()
    await send(house, NATIVE, codexBody())
    const [item] = await house.items()
    await house.crowd.addRole('reader', { 'dashboard:read': 'all', 'conversations:read': 'all' })
    await house.crowd.addRole('starter', { 'dashboard:read': 'all', 'security:write': 'all' })
    const [reader, starter] = [await house.crowd.as('reader'), await house.crowd.as('starter')]
    const read = await house.read(item?.id ?? '', reader)
    expect(read).toMatchObject({ keyId: null, keyName: null, attempts: [{ accountId: null, accountName: null }] })
    expect((await reader.ask(`DELETE /api/captures/${id}`)).status).toBe(403)
    expect((await starter.ask(`GET /api/conversation-archive/${item?.id}`)).status).toBe(403)
    expect((await starter.ask(`DELETE /api/captures/${id}`)).status).toBe(200)
  })
})

describe('pages', () => {
  const HTML = { headers: { accept: 'text/html' } }
  const page = async (who: { ask: TestUser['ask'] }, path: string) => (await who.ask(`GET ${path}`, HTML)).text()

  test('every page shows a running capture to every user, and to no guest', async () => {
    const house = await setup()
    const viewer = await house.crowd.as('viewer')
    const guest = await house.crowd.guest('127.0.0.1')
    expect(await page(viewer, '/dashboard')).not.toContain('Capture running')
    await house.start()
    for (const path of ['/dashboard', '/logs', '/me', '/settings'])
      for (const who of [house.admin, viewer]) expect(await page(who, path)).toContain('Capture running until')
    expect(await page(house.admin, '/dashboard')).toContain('href="/logs/captures">Show captures')
    expect(await page(viewer, '/dashboard')).not.toContain('Show captures')
    expect(await page(guest, '/dashboard')).not.toContain('Capture running')
    await house.app.clock.advance('15m')
    expect(await page(house.admin, '/dashboard')).not.toContain('Capture running')
  })

  test('the tab of a captured request shows it, finds events, and is only offered if there is a capture', async () => {
    const house = await setup()
    await send(house, NATIVE, codexBody())
    await house.start()
    await house.app.clock.advance('1s')
    await send(house, NATIVE, codexBody('look <b>here</b>'))
    const [item] = await house.items()
    const [before] = await house.app.rows()
    expect(await page(house.admin, `/logs/${before?.id}`)).not.toContain('Captured</a>')
    expect(await page(house.admin, `/logs/${item?.id}`)).toContain('Captured</a>')
    expect(await page(house.admin, `/logs?open=${item?.id}`)).toContain('Captured</a>')
    expect(await page(await house.crowd.as('viewer'), `/logs/${item?.id}`)).not.toContain('Captured</a>')
    const shown = await page(house.admin, `/logs/${item?.id}/captured`)
    expect(shown).toContain('look &lt;b&gt;here&lt;/b&gt;')
    expect(shown).toContain('response.completed')
    const found = await page(house.admin, `/logs/${item?.id}/captured?q=RESPONSE.CREATED`)
    expect(found).toContain('response.created')
    expect(found).not.toContain('{&quot;type&quot;:&quot;response.completed')
  })

  test('the form starts a capture without scripts, and the lists show it', async () => {
    const house = await setup()
    const sent = await house.admin.submit('POST /api/captures', {
      keyId: house.keyId,
      accountId: '',
      minutes: '60',
      maxMiB: '16',
    })
    expect([sent.status, sent.headers.get('location')]).toEqual([303, '/logs/captures?done=capture_started'])
    const [capture] = await house.captures()
    const list = await page(house.admin, '/logs/captures?done=capture_started')
    for (const text of ['Capture started.', 'Key test', '0 requests', '16 MiB', 'Stop']) expect(list).toContain(text)
    await send(house, NATIVE, codexBody())
    const requests = await page(house.admin, `/logs/captures/${capture?.id}`)
    for (const text of ['/backend-api/codex/responses', 'gpt-5.5', 'HTTP 200']) expect(requests).toContain(text)
  })

  test('a page of many requests continues behind a cursor, without repeating any', async () => {
    const house = await setup()
    await house.start()
    for (let n = 0; n < 7; n++) {
      await send(house, NATIVE, codexBody(`number ${n}`))
      await house.app.clock.advance('1s')
    }
    const seen: string[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const query: string = `?limit=3${cursor && `&cursor=${cursor}`}`
      const { items, nextCursor } = await json<{ items: Item[]; nextCursor: string | null }>(
        house.admin.ask(`GET /api/conversation-archive${query}`),
      )
      seen.push(...items.map(({ id }) => id))
      cursor = nextCursor
    }
    expect(seen).toEqual((await house.app.rows()).map(({ id }) => id).reverse())
  })
})
