/** The import preview: the result of each file, the selection, and that nothing is written before the import. */
import { describe, expect, test } from 'bun:test'
import type { ImportValue } from '../../views/accounts/new-import.tsx'
import { type TestApp, testApp } from '../support/app.ts'
import { FORMS } from '../support/imports.ts'
import { people, problem, type TestUser } from '../support/people.ts'
import { AUTH_CLAIM, decodeJwt, unsignedJwt } from '../support/upstream/tokens.ts'
import { getZip, type Packed } from '../support/zip.ts'

const open = async (accounts = 0) => {
  const app = await testApp({ accounts })
  const { as, audit } = people(app)
  const admin = await as('admin')
  const send = async (who: TestUser, files: Record<string, string | Uint8Array<ArrayBuffer>>, path: string) => {
    const form = new FormData()
    for (const [name, data] of Object.entries(files)) form.append('auth_json', new File([data], name))
    const request = new Request('http://localhost', { method: 'POST', body: form })
    const headers = { 'content-type': request.headers.get('content-type') ?? '' }
    const answer = who.ask(`POST ${path}`, { body: await request.arrayBuffer(), headers })
    return whileUnpacking(app, answer)
  }
  const preflight = (files: Record<string, string | Uint8Array<ArrayBuffer>>, who = admin) =>
    send(who, files, '/api/accounts/import/preflight')
  return {
    app,
    as,
    admin,
    audit,
    preflight,
    look: async (files: Record<string, string | Uint8Array<ArrayBuffer>>) =>
      (await (await preflight(files)).json()) as ImportValue, // as: tests look at the members they name
    importAll: (files: Record<string, string | Uint8Array<ArrayBuffer>>) => send(admin, files, '/api/accounts/import'),
    choose: (id: string, files: string[], who = admin) =>
      who.ask(`POST /api/accounts/import/preflight/${id}`, { json: { files } }),
    emails: () => app.bindings.pool.all().map(({ row }) => row.email),
    rows: () => app.sqlite.query('SELECT * FROM accounts ORDER BY id').all(),
  }
}

/** Advances the clock until `work` is done: archives are unpacked by threads that do not use this clock. */
const whileUnpacking = async <T>({ clock }: TestApp, work: Promise<T>): Promise<T> => {
  const done = Symbol('done')
  const ended = work.then(
    () => done,
    () => done,
  )
  while ((await Promise.race([ended, Bun.sleep(1)])) !== done) await clock.advance(5)
  return work
}

/** The same account with other tokens, as of then. */
const renewed = (json: string, at: string, refreshToken: string): string => {
  const document = JSON.parse(json)
  return JSON.stringify({ ...document, last_refresh: at, tokens: { ...document.tokens, refresh_token: refreshToken } })
}

/** The same account, with its email in capitals. */
const inCapitals = (json: string): string => {
  const document = JSON.parse(json)
  const claims = decodeJwt(document.tokens.id_token)
  document.tokens.id_token = unsignedJwt({ ...claims, email: String(claims.email).toUpperCase() })
  return JSON.stringify(document)
}

const verdicts = ({ files }: ImportValue) => files.map(({ file, verdict }) => [file, verdict])

describe('looking', () => {
  test('distinguishes new, same, newer, older and broken files, with the reason', async () => {
    const { app, look, rows } = await open(2)
    const [ada, eve] = app.members
    const before = rows()
    const seen = await look({
      'new.json': app.upstream.addAccount({ email: 'new@example.test', plan: 'pro' }).authJson(),
      'same.json': ada!.sim.authJson(),
      'newer.json': renewed(eve!.sim.authJson(), '2026-01-02T00:00:00Z', 'rt_newer'),
      'broken.json': '{"tokens":',
      'key.json': '{"OPENAI_API_KEY":"x"}',
    })
    expect(verdicts(seen)).toEqual([
      ['new.json', 'new'],
      ['same.json', 'same'],
      ['newer.json', 'newer'],
      ['broken.json', 'broken'],
      ['key.json', 'broken'],
    ])
    expect(seen.files[0]).toEqual({
      id: '0',
      file: 'new.json',
      verdict: 'new',
      reason: null,
      isWorthwhile: true,
      email: 'new@example.test',
      planType: 'pro',
      workspaceLabel: null,
      lastRefreshAt: '2026-01-01T00:00:00.000Z',
      existing: null,
    })
    expect(seen.files[2]?.reason).toBeNull()
    expect(seen.files[2]?.existing).toEqual({ accountId: eve!.id, displayName: eve!.sim.email })
    expect(seen.files.slice(3).map(({ reason }) => reason)).toEqual([
      'The file is not valid JSON.',
      'The file is from the Codex CLI signed in with an API key, which is not a ChatGPT sign-in. Run `codex login`, sign in with ChatGPT, and import the new auth.json.',
    ])
    expect(seen.accounts).toBeNull()
    expect(rows()).toEqual(before)
    expect(JSON.stringify(seen)).not.toContain('rt_newer')
  })

  test('reads the files of other tools, and names one that has only a refresh token', async () => {
    const { app, look, importAll } = await open()
    const [ada, eve] = [app.upstream.addAccount(), app.upstream.addAccount()]
    const files = {
      'cpa.json': JSON.stringify(FORMS.cliproxyapi?.(ada)),
      'opencode.json': JSON.stringify(FORMS.opencode?.(eve)),
      'minimal.json': JSON.stringify({ refreshToken: 'rt_alone' }),
    }
    const seen = await look(files)
    expect(verdicts(seen)).toEqual([
      ['cpa.json', 'new'],
      ['opencode.json', 'new'],
      ['minimal.json', 'broken'],
    ])
    expect(seen.files[2]?.reason).toContain('It has only a refresh token.')
    expect(await (await importAll(files)).json()).toMatchObject({
      accounts: [{ email: ada.email }, { email: eve.email }],
    })
  })

  test('an older file changes nothing, unless the account needs sign-in', async () => {
    const { app, look } = await open(1)
    const [ada] = app.members
    const older = { 'older.json': renewed(ada!.sim.authJson(), '2025-12-01T00:00:00Z', 'rt_old') }
    expect(verdicts(await look(older))).toEqual([['older.json', 'older']])
    app.sqlite.run("UPDATE accounts SET status = 'reauth_required'")
    expect((await look(older)).files[0]).toMatchObject({ verdict: 'newer', reason: expect.stringContaining('sign-in') })
  })

  test('a file without a date has the age of its tokens, and changes nothing if they have none either', async () => {
    const { app, look, importAll } = await open(1)
    const [ada] = app.members
    const undated = (json: string, tokens: object = {}) => {
      const { last_refresh: _, ...document } = JSON.parse(json)
      return JSON.stringify({ ...document, tokens: { ...document.tokens, ...tokens } })
    }
    const old = undated(ada!.sim.authJson())
    const idToken = unsignedJwt({ ...decodeJwt(ada!.sim.idToken), iat: undefined })
    await app.clock.advance('1h')
    await app.bindings.proxyDeps.credentials.refresh(ada!.id, ada!.sim.accessToken)
    const unknown = undated(old, { access_token: 'opaque', refresh_token: 'rt_unknown', id_token: idToken })
    const seen = [await look({ 'old.json': old }), await look({ 'unknown.json': unknown })]
    expect(seen.flatMap(verdicts)).toEqual([
      ['old.json', 'older'],
      ['unknown.json', 'undated'],
    ])
    expect(seen[1]?.files[0]).toMatchObject({
      reason: 'The file does not say when its tokens were refreshed, so the stored ones are kept.',
      isWorthwhile: false,
      lastRefreshAt: null,
    })
    for (const file of [old, unknown])
      expect(await (await importAll({ 'auth.json': file })).json()).toMatchObject({ tokensKept: true })
    await app.clock.advance('1h')
    ada!.sim.signInAgain()
    const young = undated(ada!.sim.authJson())
    expect(verdicts(await look({ 'young.json': young }))).toEqual([['young.json', 'newer']])
    expect(await (await importAll({ 'auth.json': young })).json()).toMatchObject({ tokensKept: false })
  })

  test('tokens that ChatGPT rejected are marked', async () => {
    const { app, look } = await open(1)
    app.sqlite.run("UPDATE accounts SET status = 'reauth_required'")
    const again = await look({ 'again.json': app.members[0]!.sim.authJson() })
    expect(again.files[0]?.reason).toBe(
      'The account needs sign-in, and these are the same tokens, so importing them only tries them again.',
    )
  })

  test('only the newest of several files of one account is recommended', async () => {
    const { app, look } = await open()
    const json = app.upstream.addAccount({ email: 'ada@example.test' }).authJson()
    const seen = await look({
      'may.json': renewed(json, '2026-05-01T00:00:00Z', 'a'),
      'june.json': renewed(json, '2026-06-01T00:00:00Z', 'b'),
      'april.json': renewed(json, '2026-04-01T00:00:00Z', 'c'),
      'march.json': renewed(inCapitals(json), '2026-03-01T00:00:00Z', 'd'),
    })
    expect(verdicts(seen)).toEqual([
      ['may.json', 'older'],
      ['june.json', 'new'],
      ['april.json', 'older'],
      ['march.json', 'older'],
    ])
    expect(seen.files[0]?.reason).toBe('june.json is for the same account and at least as new.')
  })

  test('another address, workspace or user is a separate account', async () => {
    const { app, look } = await open()
    const json = JSON.parse(app.upstream.addAccount().authJson())
    const seat = (email: string, workspace: string, user: string) => {
      const auth = { chatgpt_account_id: workspace, chatgpt_user_id: user }
      return JSON.stringify({
        ...json,
        tokens: { ...json.tokens, id_token: unsignedJwt({ email, [AUTH_CLAIM]: auth }) },
      })
    }
    const seen = await look({
      'ada.json': seat('ada@example.test', 'one', 'u1'),
      'workspace.json': seat('ada@example.test', 'two', 'u1'),
      'user.json': seat('ada@example.test', 'one', 'u2'),
      'eve.json': seat('eve@example.test', 'one', 'u1'),
    })
    expect(seen.files.map(({ verdict }) => verdict)).toEqual(['new', 'new', 'new', 'new'])
  })

  test('a ZIP is opened, and shadow and other files in it are ignored', async () => {
    const { app, look } = await open()
    const packed: Packed[] = ['ada', 'eve'].map((name) => ({
      name: `${name}/auth.json`,
      text: app.upstream.addAccount({ email: `${name}@example.test` }).authJson(),
    }))
    const zip = getZip([...packed, { name: '__MACOSX/ada/auth.json', text: 'x' }, { name: 'notes.txt', text: 'y' }])
    expect(verdicts(await look({ 'all.zip': zip, 'x.zip': getZip([]), 'cut.zip': zip.slice(0, 99) }))).toEqual([
      ['ada/auth.json', 'new'],
      ['eve/auth.json', 'new'],
      ['x.zip', 'broken'],
      ['cut.zip', 'broken'],
    ])
  })

  test('a file can be UTF-16, as PowerShell writes it, also in a ZIP', async () => {
    const { app, look } = await open()
    const utf16 = (name: string) =>
      Buffer.from(`\uFEFF${app.upstream.addAccount({ email: `${name}@example.test` }).authJson()}`, 'utf16le')
    const files = {
      'a.json': utf16('ada'),
      'b.json': utf16('eve').swap16(),
      'c.zip': getZip([{ name: 'c.json', text: utf16('ida') }]),
    }
    expect(verdicts(await look(files))).toEqual(['a', 'b', 'c'].map((name) => [`${name}.json`, 'new']))
  })

  test('the direct import takes a ZIP, too', async () => {
    const { app, importAll, emails } = await open()
    const zip = getZip([{ name: 'auth.json', text: app.upstream.addAccount({ email: 'ada@example.test' }).authJson() }])
    expect((await importAll({ 'one.zip': zip, 'two.zip': getZip([]) })).status).toBe(200)
    expect(emails()).toEqual(['ada@example.test'])
    expect(await problem(await importAll({ 'two.zip': getZip([]) }))).toEqual([400, 'invalid_auth_json'])
  })

  test('is rejected without a file, as JSON, or for a viewer', async () => {
    const { admin, as, preflight } = await open()
    expect(await problem(await preflight({}))).toEqual([400, 'invalid_auth_json'])
    expect(await problem(await preflight({ '': '' }))).toEqual([400, 'invalid_auth_json'])
    const json = await admin.ask('POST /api/accounts/import/preflight', { json: {} })
    expect(await problem(json)).toEqual([400, 'invalid_auth_json'])
    expect(await problem(await preflight({ a: 'b' }, await as('viewer')))).toEqual([403, 'permission_required'])
  })

  test('archives that unpack to too much share one limit on what is read', async () => {
    const { app, look } = await open()
    const good = app.upstream.addAccount({ email: 'ada@example.test' }).authJson()
    const large = getZip(Array.from({ length: 300 }, (_, n) => ({ name: `${n}.json`, text: ' '.repeat(64 * 1024) })))
    const small = getZip([{ name: 'ada.json', text: good }])
    const { files } = await look({ 'one.zip': large, 'two.zip': large, 'three.zip': small })
    expect(files.filter(({ file }) => file.endsWith('.zip')).map(({ file, reason }) => [file, reason])).toEqual([
      ['two.zip', 'The file unpacks to more than is allowed.'],
      ['three.zip', 'The file unpacks to more than is allowed.'],
    ])
  })

  test('more than 1000 files are rejected, however they are packed', async () => {
    const { preflight } = await open()
    const zip = getZip(Array.from({ length: 501 }, (_, n) => ({ name: `${n}.json`, text: '{}' })))
    const many = Object.fromEntries(Array.from({ length: 1001 }, (_, n) => [`${n}.json`, '{}']))
    expect(await problem(await preflight(many))).toEqual([400, 'invalid_auth_json'])
    const seen = (await (await preflight({ 'a.zip': zip, 'b.zip': zip })).json()) as ImportValue // as: checked below
    expect(seen.files).toHaveLength(502)
    expect(seen.files.at(-1)?.reason).toBe('The file contains more than 499 files.')
  })

  test('a file far larger than the client writes is broken, and a body over 32 MiB is rejected', async () => {
    const { admin, look } = await open()
    expect((await look({ 'big.json': 'x'.repeat(66_000) })).files[0]?.reason).toBe(
      'The file is too large. An auth.json has a few kilobytes; Sluice reads up to 64 KB.',
    )
    const headers = { 'content-type': 'multipart/form-data; boundary=x', 'content-length': String(33 * 1024 * 1024) }
    const response = await admin.ask('POST /api/accounts/import/preflight', { body: 'x', headers })
    expect(await problem(response)).toEqual([413, 'payload_too_large'])
  })

  test('a form has the same limit of fields as any other', async () => {
    const { admin } = await open()
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const send = (body: string) => admin.ask('POST /api/accounts/import/preflight', { body, headers })
    expect(await problem(await send(`auth_json=x${'&a'.repeat(4000)}`))).toEqual([413, 'payload_too_large'])
    expect((await send(`auth_json=x${'&a'.repeat(3999)}`)).status).toBe(200)
  })
})

describe('choosing', () => {
  const two = async () => {
    const world = await open()
    const [ada, eve] = ['ada', 'eve'].map((name) => world.app.upstream.addAccount({ email: `${name}@example.test` }))
    const seen = await world.look({ 'ada.json': ada!.authJson(), 'eve.json': eve!.authJson(), 'broken.json': '{' })
    return { ...world, ...seen }
  }

  test('imports only the selected files', async () => {
    const { choose, preflightId, emails, audit, app } = await two()
    const answer = (await (await choose(preflightId, ['1'])).json()) as ImportValue
    expect(answer.accounts).toEqual([
      {
        accountId: app.bindings.pool.all()[0]?.id ?? '?',
        displayName: 'eve@example.test',
        planType: 'plus',
        tokensKept: false,
        isPaused: false,
      },
    ])
    expect(emails()).toEqual(['eve@example.test'])
    expect((await audit()).map(({ event }) => event)).toEqual(['account_imported'])
  })

  test('says that a paused account is still paused', async () => {
    const { app, admin, look, choose } = await open(1)
    const [{ id, sim }] = app.members as [(typeof app.members)[0]]
    await admin.ask(`POST /api/accounts/${id}/pause`)
    sim.signInAgain()
    const { preflightId } = await look({ 'auth.json': sim.authJson() })
    const answer = (await (await choose(preflightId, ['0'])).json()) as ImportValue
    expect(answer.accounts).toMatchObject([{ accountId: id, isPaused: true }])
    const page = await admin.ask(`GET /accounts/new/import?draft=${preflightId}`, { headers: { accept: 'text/html' } })
    const text = await page.text()
    expect(text).toContain('still paused')
    expect(text).not.toContain('are being fetched')
  })

  test('sent twice, even at the same time, imports once and answers the same', async () => {
    const { choose, preflightId, audit } = await two()
    const answers = await Promise.all([choose(preflightId, ['0', '1']), choose(preflightId, ['0', '1'])])
    const [one, other] = await Promise.all(answers.map((answer) => answer.json() as Promise<ImportValue>))
    expect(one?.accounts).toHaveLength(2)
    expect(other).toEqual(one!)
    expect(await audit()).toHaveLength(2)
  })

  test.each([
    ['nothing', []],
    ['a broken file', ['2']],
    ['a file that was not sent', ['0', '7']],
  ])('%s is rejected, and nothing is imported', async (_, files) => {
    const { choose, preflightId, emails } = await two()
    expect(await problem(await choose(preflightId, files))).toEqual([422, 'validation_error'])
    expect(emails()).toEqual([])
  })

  test('belongs to the user who sent the files', async () => {
    const { choose, preflightId, as, emails } = await two()
    expect(await problem(await choose(preflightId, ['0'], await as('operator')))).toEqual([404, 'import_not_found'])
    expect(emails()).toEqual([])
  })

  test('expires after a quarter of an hour, and with the process', async () => {
    const { choose, preflightId, app, look } = await two()
    await app.clock.advance('15m')
    expect(await problem(await choose(preflightId, ['0']))).toEqual([404, 'import_not_found'])
    const { preflightId: second } = await look({ 'a.json': '{' })
    await app.restart()
    expect(await problem(await choose(second, ['0']))).toEqual([404, 'import_not_found'])
  })

  test('keeps the latest eight previews of a user, and does not affect those of others', async () => {
    const { choose, preflightId, look, preflight, as } = await two()
    const operator = await as('operator')
    const theirs = (await (await preflight({ 'a.json': '{' }, operator)).json()) as ImportValue // as: its id
    const later: string[] = []
    for (let n = 0; n < 8; n++) later.push((await look({ 'a.json': '{' })).preflightId)
    expect(await problem(await choose(preflightId, ['0']))).toEqual([404, 'import_not_found'])
    expect((await problem(await choose(later[0]!, ['0'])))[0]).toBe(422)
    expect((await problem(await choose(theirs.preflightId, ['0'], operator)))[0]).toBe(422)
  })
})

describe('the page', () => {
  const getPage = async (
    { admin, look }: Awaited<ReturnType<typeof open>>,
    files: Record<string, string>,
  ): Promise<string> => {
    const { preflightId } = await look(files)
    const answer = await admin.ask(`GET /accounts/new/import?draft=${preflightId}`, {
      headers: { accept: 'text/html' },
    })
    return answer.text()
  }

  test('counts the results of several files, and shows that of one beside it', async () => {
    const world = await open(1)
    const stored = world.app.members[0]!.sim.authJson()
    const [eve, bob] = ['eve', 'bob'].map((name) => world.app.upstream.addAccount({ email: `${name}@example.test` }))
    const files = { 'a.json': stored, 'b.json': eve!.authJson(), 'c.json': bob!.authJson(), 'd.json': '{' }
    expect(await getPage(world, files)).toContain('4 files: 2 to import, 1 without changes, 1 invalid.')
    expect(await getPage(world, { 'a.json': '{', 'b.json': '{' })).toContain('2 files: 2 invalid.')
    expect(await getPage(world, { 'b.json': eve!.authJson() })).not.toContain('1 to import')
  })
})

describe('without scripts', () => {
  test('the pages lead from the files to the accounts', async () => {
    const { app, admin, emails } = await open()
    const form = new FormData()
    const json = app.upstream.addAccount({ email: 'ada@example.test' }).authJson()
    form.append('auth_json', new File([json], 'auth.json'))
    const request = new Request('http://localhost', { method: 'POST', body: form })
    const headers = { 'content-type': request.headers.get('content-type') ?? '', accept: 'text/html' }
    const body = await request.arrayBuffer()
    const looked = await admin.ask('POST /api/accounts/import/preflight', { body, headers })
    const place = looked.headers.get('location') ?? ''
    expect([looked.status, place]).toEqual([303, expect.stringMatching(/^\/accounts\/new\/import\?draft=imp_/)])
    const html = await (await admin.ask(`GET ${place}`, { headers: { accept: 'text/html' } })).text()
    const action = /action="(\/api\/accounts\/import\/preflight\/imp_[^"]+)"/.exec(html)?.[1] ?? ''
    expect(html).toContain('ada@example.test')
    const imported = await admin.submit(`POST ${action}`, { files: '0' })
    expect([imported.status, imported.headers.get('location')]).toEqual([303, place])
    expect(await (await admin.ask(`GET ${place}`, { headers: { accept: 'text/html' } })).text()).toContain(
      'Account imported',
    )
    expect(emails()).toEqual(['ada@example.test'])
  })
})
