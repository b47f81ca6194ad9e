/** Spec §5, §7: no secret in a log line, an error, an audit row, an address, or unencrypted in the database. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { prepareBootstrapToken } from '../../src/auth/bootstrap.ts'
import { type Ask, codexBody, testApp } from '../support/app.ts'
import { dump } from '../support/dump.ts'
import { type Browser, codeAt, people, REMOTE, REQUEST_FORMATS } from '../support/people.ts'

const AUTH = '/api/dashboard-auth'
const ENVIRONMENT_TOKEN = 'given-bootstrap-token-marked'
const PASSWORDS = {
  first: 'marked first password',
  second: 'marked second password',
  wrong: 'marked wrong password',
  invited: 'marked password of an invited person',
  guest: 'marked password of guests',
} as const

/** Every secret by name, and everything that was output. */
const run = async () => {
  const app = await testApp({ environment: { HOST: '0.0.0.0', CODEX_LB_PUBLIC_URL: 'http://localhost:2455' } })
  const { browser, audit } = people(app)
  const secrets = new Map<string, string>(Object.entries(PASSWORDS).map(([name, value]) => [`${name} password`, value]))
  const codes = new Set<string>()
  const answers: Answer[] = []
  const watched = (peer = REMOTE): Browser => {
    const self = browser(peer)
    const { ask } = self
    self.ask = async (route, more) => {
      const response = await ask(route, more)
      answers.push({
        route,
        status: response.status,
        text: await response.clone().text(),
        location: response.headers.get('location') ?? '',
      })
      const token = self.cookie?.split('=')[1]
      if (token) secrets.set(`session ${token.slice(0, 4)}`, token)
      return response
    }
    return self
  }
  const code = (secret: string, steps = 0): string => {
    const made = codeAt(app.clock.now() + steps * 30_000, secret)
    codes.add(made)
    return made
  }
  return { app, audit, secrets, codes, answers, watched, code }
}
type House = Awaited<ReturnType<typeof run>>

interface Answer {
  route: string
  status: number
  text: string
  location: string
}

const post = (who: Browser, path: string, json: object = {}, more: Ask = {}) =>
  who.ask(`POST ${path}`, { json, ...more })
/** As JSON and as a form; both fail or both can succeed. */
const both = async (who: Browser, path: string, fields: Record<string, string>) => {
  for (const how of REQUEST_FORMATS) await who.send(how, `POST ${path}`, fields)
}
const read = async <T>(response: Response): Promise<T> => (await response.json()) as T // as: the members that are named

const shownToken = (house: House): string =>
  /bootstrap=([\w-]{43})/.exec(house.app.lines.findLast((line) => line.includes('bootstrap=')) ?? '')?.[1] ?? ''

/** First run from another machine: wrong tokens, then the right one, then names and passwords, right and wrong. */
const setUp = async (house: House): Promise<Browser> => {
  const { app, secrets, watched } = house
  await prepareBootstrapToken(app.bindings)
  secrets.set('bootstrap token', shownToken(house))
  const anna = watched()
  await post(anna, `${AUTH}/password/setup`, { password: PASSWORDS.first })
  await post(anna, `${AUTH}/password/setup`, { password: PASSWORDS.first, bootstrapToken: PASSWORDS.wrong })
  await post(anna, `${AUTH}/password/setup`, { password: PASSWORDS.first, bootstrapToken: shownToken(house) })
  const stranger = watched('198.51.100.1')
  await both(stranger, `${AUTH}/password/login`, { password: PASSWORDS.wrong })
  await both(stranger, `${AUTH}/password/login`, { username: PASSWORDS.first, password: PASSWORDS.wrong })
  await stranger.ask(`POST ${AUTH}/password/login`, { body: `{"password":"${PASSWORDS.first}` })
  await stranger.ask(`POST ${AUTH}/password/login?password=${encodeURIComponent(PASSWORDS.first)}`, { body: '[' })
  await post(stranger, `${AUTH}/password/login`, { password: [PASSWORDS.first] })
  await post(watched('198.51.100.2'), `${AUTH}/password/login`, { username: 'admin', password: PASSWORDS.first })
  await post(anna, `${AUTH}/password/change`, { currentPassword: PASSWORDS.wrong, newPassword: PASSWORDS.second })
  await post(anna, `${AUTH}/password/change`, { currentPassword: PASSWORDS.first, newPassword: PASSWORDS.second })
  await post(anna, `${AUTH}/step-up`, { password: PASSWORDS.wrong })
  return anna
}

const useTotp = async ({ app, secrets, watched, code }: House, anna: Browser): Promise<void> => {
  const { secret } = await read<{ secret: string }>(await post(anna, `${AUTH}/totp/setup/start`))
  secrets.set('TOTP secret', secret)
  await post(anna, `${AUTH}/totp/setup/confirm`, { secret, code: code(secret, 20) })
  await post(anna, `${AUTH}/totp/setup/confirm`, { secret: `${secret}A`, code: code(secret) })
  await post(anna, `${AUTH}/totp/setup/confirm`, { secret, code: code(secret) })
  const half = watched('198.51.100.3')
  await post(half, `${AUTH}/password/login`, { password: PASSWORDS.second })
  await both(half, `${AUTH}/totp/verify`, { code: code(secret) })
  await app.clock.advance('30s')
  await post(half, `${AUTH}/totp/verify`, { code: code(secret) })
  await app.clock.advance('30s')
  await post(anna, `${AUTH}/step-up`, { password: PASSWORDS.second, code: code(secret) })
}

const invite = async ({ secrets, watched }: House, anna: Browser): Promise<void> => {
  const made = await post(anna, '/api/dashboard-users', { username: 'berta', role: 'viewer' })
  const { user, invite } = await read<{ user: { id: string }; invite: { token: string } }>(made)
  secrets.set('first invite token', invite.token)
  const again = await post(anna, `/api/dashboard-users/${user.id}/invite`)
  const { token } = await read<{ token: string }>(again)
  secrets.set('invite token', token)
  const berta = watched('198.51.100.4')
  const accept = { html: { headers: { accept: 'text/html' } } }
  await berta.ask(`GET ${AUTH}/invite/${token}`)
  await berta.ask(`GET /invite/${token}`, accept.html)
  for (const strange of [`/invite/${token}/`, `/Invite/${token}`, `/x?invite=${token}`, `/invite/%20${token}`])
    await berta.ask(`GET ${strange}`, accept.html)
  await berta.ask(`GET ${AUTH}/invite/${invite.token}`)
  await both(berta, `${AUTH}/invite/accept`, { token, password: 'short' })
  await post(berta, `${AUTH}/invite/accept`, { token, password: PASSWORDS.invited })
  await post(berta, `${AUTH}/invite/accept`, { token, password: PASSWORDS.invited })
}

const welcomeGuests = async ({ app, watched }: House, anna: Browser): Promise<void> => {
  await app.change({ guestAccessEnabled: true })
  await post(anna, `${AUTH}/guest/password`, { password: PASSWORDS.guest })
  await both(watched('198.51.100.5'), `${AUTH}/guest/login`, { password: PASSWORDS.wrong })
  await post(watched('198.51.100.5'), `${AUTH}/guest/login`, { password: PASSWORDS.guest })
}

/** A model source that repeats its key in errors: added, tested, discovered, and given another key. */
const addSource = async ({ app, secrets }: House, anna: Browser): Promise<void> => {
  const [first, second] = ['sk-marked-source-key', 'sk-marked-other-source-key'] as const
  secrets.set('key of a model source', first).set('other key of a model source', second)
  const source = { name: 'Rack', baseUrl: 'http://source.test/v1', apiKey: first }
  const { id } = await read<{ id: string }>(await post(anna, '/api/model-sources/', source))
  const path = `/api/model-sources/${id}`
  app.source.fail('echo_key')
  for (const key of [first, second]) {
    await anna.ask(`PATCH ${path}`, { json: { apiKey: key } })
    await post(anna, `${path}/test`)
    await post(anna, `${path}/discover`)
    await post(anna, '/api/model-sources/', { ...source, apiKey: key })
    await post(anna, path, { apiKey: [key] })
  }
  await anna.ask('GET /api/model-sources/')
  await anna.ask(`GET /settings/sources/${id}`, { headers: { accept: 'text/html' } })
}

/** Alert channels: created, tested, changed, named twice, and rejected for what else was sent. */
const addChannels = async ({ secrets }: House, anna: Browser): Promise<void> => {
  const [path, first, second, password] = [
    'marked-hook-path',
    'marked-hook-secret',
    'marked-bot-token',
    'marked-mail-word',
  ]
  secrets.set('path of a webhook', path!).set('secret of a webhook', first!)
  secrets.set('token of a bot', second!).set('password of a mail server', password!)
  const hook = { kind: 'webhook', name: 'Pager', target: { url: `https://203.0.113.9/${path}` }, secret: first }
  const { id } = await read<{ id: string }>(await post(anna, CHANNELS, hook))
  const mail = { host: '203.0.113.9', port: 1, from: 'a@b.co', to: ['a@b.co'], user: 'anna', password }
  await post(anna, CHANNELS, hook)
  await post(anna, CHANNELS, { kind: 'telegram', name: 'Bot', target: { chatId: '1' }, secret: second })
  await post(anna, CHANNELS, { kind: 'smtp', name: 'Mail', target: mail })
  await post(anna, CHANNELS, { kind: 'smtp', name: 'Mail', target: { ...mail, from: password, to: [password] } })
  await anna.ask(`PATCH ${CHANNELS}/${id}`, { json: { target: { url: `ftp://203.0.113.9/${path}` }, secret: [first] } })
  await post(anna, `${CHANNELS}/${id}/test`)
  for (const at of [CHANNELS, '/api/alerts', '/api/alerts/deliveries']) await anna.ask(`GET ${at}`)
  for (const at of ['/settings/alerts', `/settings/alerts/${id}`])
    await anna.ask(`GET ${at}`, { headers: { accept: 'text/html' } })
}
const CHANNELS = '/api/alerts/channels'

/** Outbound proxies: created, given another password, tested, named twice, used by an account, and rejected for what else was sent. */
const addProxies = async ({ app, secrets }: House, anna: Browser): Promise<void> => {
  const [first, second, invalid] = ['marked-proxy-secret', 'marked-other-proxy-secret', 'marked-invalid-proxy-secret']
  const proxy = { name: 'Frankfurt', scheme: 'http', host: '127.0.0.1', port: 1, username: 'u', password: first }
  secrets.set('secret of a proxy', first!).set('other secret of a proxy', second!)
  secrets.set('invalid secret of a proxy', invalid!)
  const { id } = await read<{ id: string }>(await post(anna, `${EGRESS}/endpoints`, proxy))
  const pool = await read<{ id: string }>(await post(anna, `${EGRESS}/pools`, { name: 'Europe', endpointIds: [id] }))
  await post(anna, `${EGRESS}/endpoints`, proxy)
  await post(anna, `${EGRESS}/endpoints`, { ...proxy, name: 'Berlin', password: `${invalid}\r\n` })
  await post(anna, `${EGRESS}/endpoints`, { ...proxy, name: 'Berlin', host: `u:${invalid}@proxy.test` })
  for (const password of [second, [invalid], `${invalid}\0`])
    await anna.ask(`PATCH ${EGRESS}/endpoints/${id}`, { json: { password } })
  await anna.ask(`PATCH ${EGRESS}/endpoints/${id}`, { json: { port: 2 } })
  await post(anna, `${EGRESS}/endpoints/${id}/test`)
  await anna.ask(`GET ${EGRESS}`)
  await anna.ask('GET /settings/network', { headers: { accept: 'text/html' } })
  const sim = app.upstream.addAccount()
  await importFile(anna, sim.authJson())
  const [member] = app.bindings.pool.all()
  const accountId = member?.id ?? ''
  const path = `/api/accounts/${accountId}`
  await anna.ask(`PUT ${EGRESS}/accounts/${accountId}/binding`, { json: { poolId: pool.id } })
  await post(anna, `${path}/probe`)
  await anna.ask(`GET /accounts/${accountId}?tab=routing`, { headers: { accept: 'text/html' } })
  await anna.ask(`DELETE ${path}`)
}

const EGRESS = '/api/settings/upstream-proxy'

const importFile = (anna: Browser, text: string) =>
  anna.ask('POST /api/accounts/import', {
    body: new URLSearchParams({ auth_json: text }).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  })

/** Keys and accounts: created, used for a request, wrong, broken. */
const serve = async (house: House, anna: Browser): Promise<void> => {
  const { app, secrets, watched } = house
  const { id, key } = await read<{ id: string; key: string }>(await post(anna, '/api/api-keys/', { name: 'laptop' }))
  const other = await read<{ key: string }>(await post(anna, `/api/api-keys/${id}/regenerate`))
  secrets.set('API key', key).set('regenerated API key', other.key)
  const sim = app.upstream.addAccount()
  const { tokens } = JSON.parse(sim.authJson()) as { tokens: Record<string, string> } // as: the native client's file
  for (const name of ['access_token', 'refresh_token', 'id_token']) secrets.set(name, tokens[name] ?? '')
  for (const text of [sim.authJson(), sim.authJson().slice(0, -9)]) await importFile(anna, text)
  await app.change({ apiKeyAuthEnabled: true })
  await post(anna, '/api/captures', { keyId: id, minutes: 15 })
  const client = watched('127.0.0.1')
  for (const bearer of [other.key, key, PASSWORDS.wrong.replaceAll(' ', '-')])
    await post(client, '/backend-api/codex/responses', codexBody(), { headers: { authorization: `Bearer ${bearer}` } })
  const { items } = await read<{ items: { id: string }[] }>(await anna.ask('GET /api/conversation-archive'))
  for (const { id: captured } of items)
    for (const path of ['', '?part=request', '?part=answer'])
      await anna.ask(`GET /api/conversation-archive/${captured}${path}`)
  await anna.ask(`GET /logs/${items[0]?.id}/captured`, { headers: { accept: 'text/html' } })
}

/** A database that fails in the middle of signing in. */
const breakDown = async ({ app, watched }: House): Promise<void> => {
  app.sqlite.run('ALTER TABLE sessions RENAME TO gone')
  await post(watched('198.51.100.6'), `${AUTH}/password/login`, { username: 'berta', password: PASSWORDS.invited })
  app.sqlite.run('ALTER TABLE gone RENAME TO sessions')
}

const startOver = async (house: House, anna: Browser): Promise<void> => {
  const { app, secrets } = house
  app.sqlite.run("DELETE FROM users WHERE username = 'berta'")
  await both(anna, `${AUTH}/password/remove`, { password: PASSWORDS.wrong })
  await post(anna, `${AUTH}/password/remove`, { password: PASSWORDS.second })
  secrets.set('second bootstrap token', shownToken(house))
  await app.restart()
  await prepareBootstrapToken({
    ...app.bindings,
    env: { ...app.bindings.env, DASHBOARD_BOOTSTRAP_TOKEN: ENVIRONMENT_TOKEN },
  })
  secrets.set('given bootstrap token', ENVIRONMENT_TOKEN)
}

/**
 * As it is, and in encodings in which it might be stored: base64, hex, or hashed without a salt, which does not protect
 * a weak one.
 */
const getForms = (name: string, secret: string): string[] => {
  const bytes = Buffer.from(secret)
  const isWeak = name.endsWith('password')
  return [
    secret,
    encodeURIComponent(secret),
    secret.replaceAll(' ', '+'),
    bytes.toString('hex'),
    bytes.toString('base64url'),
    ...(isWeak ? [createHash('sha256').update(bytes).digest('hex')] : []),
  ]
}

/** The one line, and the one answer each, that are there to show it. */
const SHOWN: Record<string, RegExp> = {
  'TOTP secret': /totp\/setup\/start$/,
  'first invite token': /POST \/api\/dashboard-users$/,
  'invite token': /POST .*\/invite$|^GET \/invite\/|GET .*\/invite\//,
  'API key': /POST \/api\/api-keys\/$/,
  'regenerated API key': /\/regenerate$/,
}

describe('secrets appear only where they belong', () => {
  let house: House
  let found: (text: string) => string[]

  beforeAll(async () => {
    house = await run()
    const anna = await setUp(house)
    await useTotp(house, anna)
    await addSource(house, anna)
    await addProxies(house, anna)
    await addChannels(house, anna)
    await invite(house, anna)
    await welcomeGuests(house, anna)
    await serve(house, anna)
    await breakDown(house)
    await startOver(house, anna)
    await house.app.bindings.ledger.flush()
    const secrets = [...house.secrets]
    found = (text) =>
      secrets.flatMap(([name, secret]) => (getForms(name, secret).some((form) => text.includes(form)) ? [name] : []))
  })

  test('the scenario ran: expected successes and failures occurred', () => {
    const statuses = Map.groupBy(house.answers, ({ route }) => route.split('?')[0] ?? '')
    const ending = (pattern: RegExp) => [
      ...new Set(house.answers.flatMap(({ route, status }) => (pattern.test(route.split('?')[0] ?? '') ? status : []))),
    ]
    const of = (route: string) => [...new Set((statuses.get(route) ?? []).map(({ status }) => status))].toSorted()
    expect({
      setup: of(`POST ${AUTH}/password/setup`),
      login: of(`POST ${AUTH}/password/login`),
      change: of(`POST ${AUTH}/password/change`),
      confirm: of(`POST ${AUTH}/totp/setup/confirm`),
      verify: of(`POST ${AUTH}/totp/verify`),
      stepUp: of(`POST ${AUTH}/step-up`),
      accept: of(`POST ${AUTH}/invite/accept`),
      guest: of(`POST ${AUTH}/guest/login`),
      proxies: of(`POST ${EGRESS}/endpoints`),
      keys: of('POST /api/api-keys/'),
      imported: of('POST /api/accounts/import'),
      turns: of('POST /backend-api/codex/responses'),
      removed: of(`POST ${AUTH}/password/remove`),
      tested: ending(/^POST .*\/endpoints\/[^/]+\/test$/),
      probed: ending(/^POST .*\/probe$/),
      bound: ending(/\/binding$/),
      captured: ending(/^GET \/api\/conversation-archive\/|\/captured$/),
    }).toEqual({
      setup: [200, 401],
      login: [200, 400, 401, 422, 500],
      change: [200, 401],
      confirm: [200, 400, 422],
      verify: [200, 400],
      stepUp: [200, 401],
      accept: [200, 409, 422],
      guest: [200, 401],
      proxies: [200, 409, 422],
      keys: [200],
      imported: [200, 400],
      turns: [200, 401],
      removed: [200, 401],
      tested: [200],
      probed: [200],
      bound: [200],
      captured: [200],
    })
    expect([...house.secrets.values()].filter((secret) => secret.length < 16)).toEqual([])
    expect(house.secrets.size).toBeGreaterThan(20)
    expect(house.codes.size).toBeGreaterThan(3)
  })

  test('the search finds existing values', () => {
    expect(found(`x=${PASSWORDS.first}`)).toEqual(['first password'])
    expect(found(Buffer.from(PASSWORDS.guest).toString('base64url'))).toEqual(['guest password'])
  })

  test('no log line contains one, except a bootstrap token, once', () => {
    const lines = house.app.lines.map((line) => [line, found(line)] as const).filter(([, names]) => names.length > 0)
    expect(lines.map(([, names]) => names)).toEqual([['bootstrap token'], ['second bootstrap token']])
    expect(lines.every(([line]) => line.includes('/setup'))).toBe(true)
    expect(house.app.lines.filter((line) => line.includes('$argon2'))).toEqual([])
    expect(house.app.lines.filter((line) => [...house.codes].some((code) => standsAlone(line, code)))).toEqual([])
  })

  test('no error, redirect or response contains one, except the one that shows it', () => {
    for (const { route, status, text, location } of house.answers) {
      const names = status >= 400 ? found(text + location) : found(text).filter((name) => !SHOWN[name]?.test(route))
      expect([route.split('?')[0]?.replace(/[\w-]{43}/, '…'), status, ...names, ...found(location)]).toHaveLength(2)
    }
  })

  test('no audit row contains one', async () => {
    for (const row of await house.audit()) {
      expect([row.event, ...found(JSON.stringify(row))]).toEqual([row.event])
      expect([...house.codes].filter((code) => standsAlone(JSON.stringify(row.details), code))).toEqual([])
    }
    expect((await house.audit()).length).toBeGreaterThan(20)
  })

  test('no file of a capture contains one, although it stored the requests of a key, encrypted', async () => {
    const folder = join(house.app.dir, 'captures')
    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    expect(files.map(({ name }) => name).filter((name) => name.endsWith('.bin'))).toHaveLength(1)
    for (const { parentPath, name } of files) {
      const text = readFileSync(join(parentPath, name), 'latin1')
      expect([name, ...found(text), text.includes('Be brief.')]).toEqual([name, false])
    }
  })

  test('no column of the database contains one, and no page of its file', () => {
    for (const [table, rows] of Object.entries(dump(house.app.sqlite)))
      expect([table, ...found(JSON.stringify(rows))]).toEqual([table])
    expect(found(Buffer.from(house.app.sqlite.serialize()).toString('latin1'))).toEqual([])
  })
})

const standsAlone = (text: string, code: string): boolean => new RegExp(`(?<!\\d)${code}(?!\\d)`).test(text)
