/** Adding an account in a browser: by sign-in, code or files, as pages and dialogs, and without scripts. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { freePort } from '../support/free-port.ts'
import { type RunningServer, spawnServer } from '../support/spawn.ts'
import { PATIENCE_MS, until } from '../support/until.ts'
import { createUpstream, type Upstream } from '../support/upstream/app.ts'
import { getZip } from '../support/zip.ts'
import { getText, getTexts, launchBrowser, overflowsAt, type TestBrowser } from './browser.ts'

setDefaultTimeout(120_000)

let browser: TestBrowser
let upstream: Upstream
let service: ReturnType<Upstream['listen']>

const start = (port = freePort()): Promise<RunningServer> =>
  spawnServer({
    env: {
      CODEX_LB_UPSTREAM_BASE_URL: `${service.url}/backend-api`,
      CODEX_LB_AUTH_BASE_URL: service.url,
      CODEX_LB_OAUTH_CALLBACK_PORT: String(port),
    },
  })

beforeAll(async () => {
  upstream = createUpstream()
  service = upstream.listen()
  for (const name of ['ada', 'grace', 'alan']) upstream.addAccount({ email: `${name}@example.test`, plan: 'pro' })
  browser = await launchBrowser()
}, 120_000)

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]()
  await service?.stop()
})

const of = (name: string) => {
  const account = upstream.accounts.find(({ email }) => email.startsWith(name))
  if (!account) throw new Error(`There is no account of ${name}.`)
  return account
}

const emails = async ({ url }: RunningServer): Promise<string[]> => {
  const { accounts } = (await (await fetch(`${url}/api/accounts`)).json()) as { accounts: { email: string }[] }
  return accounts.map(({ email }) => email)
}

/** The id of the account of `authJson`, added. */
const importAccount = async ({ url }: RunningServer, authJson: string): Promise<string> => {
  const body = new FormData()
  body.set('auth_json', new File([authJson], 'auth.json'))
  const imported = await fetch(`${url}/api/accounts/import`, { method: 'POST', body })
  return ((await imported.json()) as { accountId: string }).accountId // as: the API's answer
}

const wasAsked = (path: string) =>
  upstream.requests.some((request) => request.path === path && request.account === of('ada').chatgptAccountId)

const files = (server: RunningServer) => {
  const ada = of('ada').authJson()
  const write = (name: string, data: string | Uint8Array) => {
    const path = join(server.dataDir, name)
    writeFileSync(path, data)
    return path
  }
  return [
    write('ada.json', ada),
    write('more.zip', getZip([{ name: 'grace/auth.json', text: of('grace').authJson() }])),
    write('broken.json', '{"tokens":'),
  ]
}

/** The script starts the sign-in by itself; without it, the button does. */
const begun = async (page: Page, label = '', javaScriptEnabled = true): Promise<void> => {
  if (!javaScriptEnabled) await page.click(`button:text("${label}")`)
  await page.waitForURL(/flow=flow_/)
}

const getTitle = (page: Page) => getText(page.locator('#new-account h1'))

describe.each([
  { name: 'with script', javaScriptEnabled: true },
  { name: 'without script', javaScriptEnabled: false },
])('$name', ({ javaScriptEnabled }) => {
  test('signing in with the browser returns automatically', async () => {
    await using server = await start()
    await using visit = await browser.visit(`${server.url}/accounts/new`, { javaScriptEnabled })
    const { page } = visit
    await begun(page, 'Get the sign-in link', javaScriptEnabled)
    const [signIn] = await Promise.all([page.waitForEvent('popup'), page.click('text=Continue to ChatGPT')])
    await Promise.all([signIn.waitForURL(/accounts\/new\/browser\?flow=/), signIn.click('text=ada@example.test')])
    expect(await getTitle(signIn)).toBe('Account added')
    if (javaScriptEnabled) await page.waitForSelector('text=Account added')
    expect(await emails(server)).toEqual(['ada@example.test'])
    await until(() => ['/backend-api/wham/usage', '/backend-api/codex/models'].every(wasAsked), server.output)
    expect(upstream.oddities).toEqual([])
    expect(visit.problems).toEqual([])
  })

  test('the URL can be pasted, and a wrong one is explained', async () => {
    await using server = await start()
    await using visit = await browser.visit(`${server.url}/accounts/new/browser`, { javaScriptEnabled })
    const { page } = visit
    await begun(page, 'Get the sign-in link', javaScriptEnabled)
    const href = (await page.locator('text=Continue to ChatGPT').getAttribute('href')) ?? ''
    await page.click('text=Paste the URL')
    await page.fill('[name=callbackUrl]', 'http://localhost:1455/auth/callback?code=x')
    await page.click('text=Finish sign-in')
    await page.waitForSelector('#form-paste .problem-line')
    expect(await getText(page.locator('#form-paste .problem-line'))).toContain('not the URL')
    await page.fill('[name=callbackUrl]', upstream.signIns.approve(href, of('grace')))
    await page.click('text=Finish sign-in')
    await page.waitForSelector('text=Account added')
    expect(await emails(server)).toEqual(['grace@example.test'])
  })

  test.each([
    ['browser', 'Get the sign-in link'],
    ['device', 'Get a code'],
  ])('a pending sign-in is cancelled, and another one begins (%s)', async (method, label) => {
    const port = freePort()
    await using server = await start(port)
    await using visit = await browser.visit(`${server.url}/accounts/new/${method}`, { javaScriptEnabled })
    const { page } = visit
    await begun(page, label, javaScriptEnabled)
    const waiting = page.url()
    await page.click('#form-cancel button')
    await page.waitForSelector('text=Sign-in cancelled')
    await Bun.serve({ hostname: '127.0.0.1', port, fetch: () => new Response() }).stop(true)
    await page.click('text=Start again')
    await page.waitForSelector('.waiting')
    expect(page.url()).not.toBe(waiting)
    expect(visit.problems).toEqual([])
  })

  test('files are previewed before the selected ones are imported', async () => {
    await using server = await start()
    await using visit = await browser.visit(`${server.url}/accounts/new/import`, { javaScriptEnabled })
    const { page } = visit
    await page.setInputFiles('[name=auth_json]', files(server))
    await Promise.all([page.waitForURL(/draft=imp_/), page.click('#form-files button')])
    expect(await getTexts(page.locator('.preflight-verdict .badge'))).toEqual(['New', 'New', 'Invalid'])
    expect(await emails(server)).toEqual([])
    await page.uncheck('.preflight-row:nth-child(2) input')
    await Promise.all([page.waitForEvent('load'), page.click('text=Import selected')])
    expect(await getTitle(page)).toBe('Account imported')
    expect(await overflowsAt(page)).toEqual([])
    expect(await emails(server)).toEqual(['ada@example.test'])
    expect(visit.problems).toEqual([])
  })
})

test('a code is copied and entered elsewhere, and the page notices', async () => {
  await using server = await start()
  await using visit = await browser.visit(`${server.url}/accounts/new/device`)
  const { page } = visit
  await begun(page)
  const code = await getText(page.locator('.device-code-text'))
  expect(code).toMatch(/^WXYZ-\d{5}$/)
  expect(await getText(page.locator('.waiting time'))).toMatch(/^1[45]:\d\d$/)
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await page.getByRole('button', { name: 'Copy code' }).click()
  await page.locator('.device-code .is-done').waitFor()
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(code)
  upstream.signIns.enterCode(code, of('alan'))
  await page.waitForSelector('text=Account added', { timeout: PATIENCE_MS })
  expect(await emails(server)).toEqual(['alan@example.test'])
  expect(visit.problems).toEqual([])
})

test('over another page it is a dialog from the first to the last step, and the page behind is updated', async () => {
  await using server = await start()
  await using visit = await browser.visit(`${server.url}/accounts`)
  const { page } = visit
  await page.click('a[href="/accounts/new"]')
  await page.waitForSelector('dialog[open] #new-account')
  await page.click('dialog .tabs >> text=File')
  await page.waitForSelector('dialog[open] [name=auth_json]')
  await page.setInputFiles('dialog [name=auth_json]', files(server))
  await page.click('dialog #form-files button')
  await page.waitForSelector('dialog[open] .preflight')
  await page.click('dialog >> text=Import selected')
  await page.waitForSelector('dialog[open] .imported')
  expect(new URL(page.url()).pathname).toBe('/accounts')
  await Promise.all([page.waitForEvent('load'), page.click('dialog >> text=Done')])
  expect(await page.locator('main >> text=ada@example.test').count()).toBeGreaterThan(0)
  await page.click('a[href="/accounts/new"]')
  await page.click('dialog #form-cancel button')
  await page.click('dialog >> text=Start again')
  await page.waitForSelector('dialog[open] .waiting')
  const href = (await page.locator('dialog >> text=Continue to ChatGPT').getAttribute('href')) ?? ''
  await fetch(upstream.signIns.approve(href, of('alan')).replace('localhost', '127.0.0.1'), { redirect: 'manual' })
  await page.waitForSelector('dialog[open] >> text=Account added')
  await Promise.all([page.waitForEvent('load'), page.keyboard.press('Escape')])
  expect(visit.problems).toEqual([])
})

test('a code typed while waiting for the browser is not removed by the page', async () => {
  await using server = await start()
  await using visit = await browser.visit(`${server.url}/accounts/new/browser`)
  const { page } = visit
  await begun(page)
  await page.click('text=Paste the URL')
  await page.fill('[name=callbackUrl]', 'half an addr')
  await page.waitForResponse((response) => response.url().includes('waiting=1') && response.status() === 204)
  expect(await page.locator('[name=callbackUrl]').inputValue()).toBe('half an addr')
})

test('an account that was signed out is signed in again from its page, and serves requests', async () => {
  await using server = await start()
  const turing = upstream.addAccount({ email: 'turing@example.test' })
  const accountId = await importAccount(server, turing.authJson())
  turing.revoke('token_invalidated')
  await fetch(`${server.url}/api/accounts/${accountId}/probe`, { method: 'POST' })
  await using visit = await browser.visit(`${server.url}/accounts/${accountId}`)
  const { page } = visit
  const facts = page.locator('.two-facts')
  expect(await getText(facts)).toContain('Not used until you sign in again')
  await page.click('.answers a:text("Sign in again")')
  const dialog = page.getByRole('dialog', { name: 'Sign in again: turing@example.test' })
  await dialog.getByText('Continue to ChatGPT').waitFor()
  turing.signInAgain()
  const [signIn] = await Promise.all([page.waitForEvent('popup'), page.click('text=Continue to ChatGPT')])
  await Promise.all([signIn.waitForURL(/accounts\/new\/browser\?flow=/), signIn.click('text=turing@example.test')])
  expect(await getTitle(signIn)).toBe('Signed in again')
  await page.locator('dialog[open] >> text=Signed in again').waitFor()
  await signIn.close()
  await Promise.all([page.waitForEvent('load'), page.click('dialog >> text=Done')])
  expect(await getText(facts)).toMatch(/Active[\s\S]*Available/)
  await page.click('button:text-is("Probe now")')
  await page.waitForSelector('.probe-result >> text=served the probe')
  expect([await emails(server), visit.problems]).toEqual([['turing@example.test'], []])
})

test('a used port is reported, and an account to be signed in again is named', async () => {
  const port = freePort()
  const other = Bun.serve({ hostname: '127.0.0.1', port, fetch: () => new Response('other') })
  await using server = await start(port)
  const accountId = await importAccount(server, of('ada').authJson())
  await using visit = await browser.visit(`${server.url}/accounts/new/browser?account=${accountId}`)
  const { page } = visit
  expect(await getTitle(page)).toBe('Sign in again: ada@example.test')
  await begun(page)
  expect(await getText(page.locator('#new-account'))).toContain('Another program uses the port')
  const href = (await page.locator('text=Continue to ChatGPT').getAttribute('href')) ?? ''
  await page.fill('[name=callbackUrl]', upstream.signIns.approve(href, of('grace')))
  await Promise.all([page.waitForEvent('load'), page.click('text=Finish sign-in')])
  expect(await getText(page.locator('.problem-line'))).toContain('You signed in as grace@example.test')
  await other.stop(true)
})
