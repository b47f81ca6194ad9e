/**
 * Pasting auth.json files: a single one is imported immediately, several after a preview, and invalid text is
 * rejected.
 */
import { describe, expect, test } from 'bun:test'
import type { ImportValue } from '../../views/accounts/new-import.tsx'
import { testApp } from '../support/app.ts'
import { people } from '../support/people.ts'

const ROUTE = 'POST /api/accounts/import/preflight?importSingle=true'

const open = async () => {
  const app = await testApp({ accounts: 0 })
  const admin = await people(app).as('admin')
  const ask = async (text: string, headers: Record<string, string> = {}) => {
    const form = new FormData()
    form.append('auth_json', new File([], ''))
    form.append('auth_json', text)
    const request = new Request('http://localhost', { method: 'POST', body: form })
    const type = request.headers.get('content-type') ?? ''
    return admin.ask(ROUTE, { body: await request.arrayBuffer(), headers: { 'content-type': type, ...headers } })
  }
  return {
    app,
    ask,
    paste: async (text: string) => (await (await ask(text)).json()) as ImportValue, // as: tests look at the members they name
    getFile: (name: string) => app.upstream.addAccount({ email: `${name}@example.test` }).authJson(),
    emails: () => app.bindings.pool.all().map(({ row }) => row.email),
  }
}

const FRAGMENT = { 'hx-request': 'true', 'hx-source': 'form#form-files', 'hx-current-url': 'http://localhost/accounts' }

describe('one complete text', () => {
  test.each([
    ['unchanged', (json: string) => json],
    ['with a byte order mark', (json: string) => `\uFEFF${json}`],
    ['in a code fence', (json: string) => `\`\`\`json\r\n${json}\r\n\`\`\`\r\n`],
    ['in a list', (json: string) => `[${json}]`],
  ])('%s is imported right away', async (_, change) => {
    const { paste, getFile, emails } = await open()
    const { accounts, files } = await paste(change(getFile('ada')))
    expect(accounts).toMatchObject([{ displayName: 'ada@example.test', tokensKept: false }])
    expect(files.map(({ verdict }) => verdict)).toEqual(['new'])
    expect(emails()).toEqual(['ada@example.test'])
  })

  test('that changes nothing is previewed, not imported', async () => {
    const { paste, getFile } = await open()
    const json = getFile('ada')
    await paste(json)
    expect(await paste(json)).toMatchObject({ accounts: null, files: [{ verdict: 'same' }] })
  })
})

describe('several texts in one paste', () => {
  test.each([
    ['one after another', (files: string[]) => files.join('\n')],
    ['each with a byte order mark', (files: string[]) => files.map((json) => `\uFEFF${json}`).join('\r\n\r\n')],
    ['as head prints them', (files: string[]) => files.map((json, n) => `==> ${n}.json <==\n${json}`).join('\n')],
  ])('%s become three files in a preview', async (_, join) => {
    const { paste, getFile, emails } = await open()
    const { accounts, files } = await paste(join(['ada', 'eve', 'bob'].map(getFile)))
    expect(accounts).toBeNull()
    expect(files.map(({ email, verdict }) => [email, verdict])).toEqual([
      ['ada@example.test', 'new'],
      ['eve@example.test', 'new'],
      ['bob@example.test', 'new'],
    ])
    expect(emails()).toEqual([])
  })

  test('with the last one cut off keep the complete ones and name the other', async () => {
    const { paste, getFile, emails } = await open()
    const { files } = await paste(`${getFile('ada')}\n${getFile('eve').slice(0, 200)}`)
    expect(files.map(({ file, verdict, reason }) => [file, verdict, reason])).toEqual([
      ['The pasted text (1 of 2)', 'new', null],
      ['The pasted text (2 of 2)', 'broken', 'The file is not valid JSON.'],
    ])
    expect(emails()).toEqual([])
  })

  test('braces and quotes inside strings do not separate texts', async () => {
    const { paste, getFile } = await open()
    const document = JSON.parse(getFile('ada'))
    const { accounts } = await paste(JSON.stringify({ note: 'a "}" and a \\ and {', ...document }))
    expect(accounts).toHaveLength(1)
  })
})

describe('text that is not an auth.json', () => {
  test.each([
    ['2 MB of letters', 'x'.repeat(2 * 1024 * 1024), 'The pasted text is too large.'],
    ['2 MB in one object', `{"a":"${'x'.repeat(2 * 1024 * 1024)}"}`, 'The pasted text is too large.'],
    ['2 MB of quotes', '"\\"'.repeat(700_000), 'The pasted text is too large.'],
    ['a sentence', 'my auth file', 'The pasted text is not valid JSON.'],
    ['a cut-off file', '{"tokens":{"id_token":"', 'The pasted text is not valid JSON.'],
    ['nothing', ' \n', 'Select a file or paste the text of an auth.json.'],
  ])('%s is reported in the form, which keeps its content', async (_, text, sentence) => {
    const { ask, emails } = await open()
    const answer = await ask(text, FRAGMENT)
    expect(answer.headers.get('hx-retarget')).toBe('#form-files-problem')
    expect(await answer.text()).toContain(sentence)
    expect(emails()).toEqual([])
  })

  test('without scripts the preview gives the reason', async () => {
    const { ask, app } = await open()
    const answer = await ask('my auth file', { accept: 'text/html' })
    expect(answer.status).toBe(303)
    expect(answer.headers.get('location')).toStartWith('/accounts/new/import?draft=imp_')
    expect(app.sqlite.query('SELECT count(*) AS n FROM accounts').get()).toEqual({ n: 0 })
  })
})
