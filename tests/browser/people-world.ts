/** Users for the page tests: a server with its first user, signed-in browsers, and a clock for confirmations. */
import { Database } from 'bun:sqlite'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Secret, TOTP } from 'otpauth'
import type { Page } from 'playwright-core'
import { type RunningServer, type SpawnOptions, spawnServer } from '../support/spawn.ts'
import type { PageOptions, TestBrowser, Visit } from './browser.ts'

export const PASSWORD = 'correct horse battery'
export const OTHER_PASSWORD = 'another long password'

/** Passkeys need a host name, so pages are opened on localhost. */
export const getUrl = (server: RunningServer): string => `http://localhost:${server.port}`

export interface ServerWithAdmin {
  server: RunningServer
  url: string
  /** `admin`'s, signed in and confirmed. */
  cookie: string
}

/** A server whose first account is `admin` with `PASSWORD`. */
export const startServerWithAdmin = async (options?: SpawnOptions): Promise<ServerWithAdmin> => {
  const server = await spawnServer(options)
  const url = getUrl(server)
  const response = await send(url, 'POST', '/api/dashboard-auth/password/setup', { password: PASSWORD })
  return { server, url, cookie: toCookie(response) }
}

/** JSON, as a client other than a browser sends it. Throws on an error. */
export const send = async (
  url: string,
  method: string,
  path: string,
  body: unknown,
  cookie = '',
): Promise<Response> => {
  const headers = { 'content-type': 'application/json', accept: 'application/json', cookie }
  const response = await fetch(url + path, { method, headers, body: JSON.stringify(body) })
  if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${await response.text()}`)
  return response
}

/** The link of a new invite. */
export const inviteLink = async (
  { url, cookie }: Pick<ServerWithAdmin, 'url' | 'cookie'>,
  username: string,
  roleId: string,
): Promise<string> => {
  const response = await send(url, 'POST', '/api/dashboard-users', { username, roleId }, cookie)
  const { invite } = (await response.json()) as { invite: { token: string } }
  return `${url}/invite/${invite.token}`
}

const toCookie = (response: Response): string => response.headers.getSetCookie()[0]?.split(';')[0] ?? ''

export const signIn = async (page: Page, url: string, { password = PASSWORD, username = '' } = {}): Promise<void> => {
  await page.goto(`${url}/login`)
  if (username !== '') await page.fill('#form-login [name=username]', username)
  await page.fill('#form-login [name=password]', password)
  await Promise.all([page.waitForURL(`${url}/dashboard`), page.click('#form-login [type=submit]')])
}

/** A page that is signed in and confirmed. The form (`signIn`) costs two more pages. */
export const openAs = async (
  browser: TestBrowser,
  { url }: Pick<ServerWithAdmin, 'url'>,
  path: string,
  { username = 'admin', password = PASSWORD, ...options }: PageOptions & { username?: string; password?: string } = {},
): Promise<Visit> => {
  const cookie = await getCookie(url, { username, password })
  return browser.visit(url + path, { ...options, cookie })
}

/** Signs in and returns the session cookie. Without a user name, signs in the only user. */
export const getCookie = async (url: string, { password = PASSWORD, username = '' } = {}): Promise<string> =>
  toCookie(await send(url, 'POST', '/api/dashboard-auth/password/login', { password, ...(username && { username }) }))

/** Five minutes pass for every confirmation. */
export const expireConfirmations = ({ dataDir }: Pick<RunningServer, 'dataDir'>): void => {
  const file = readdirSync(dataDir).find((name) => name.endsWith('.db') || name.endsWith('.sqlite'))
  if (file === undefined) throw new Error(`There is no database in ${dataDir}.`)
  const db = new Database(join(dataDir, file))
  db.run('PRAGMA busy_timeout = 2000')
  db.run('UPDATE sessions SET confirmed_until = 1')
  db.close()
}

/** What an authenticator app shows; `step` steps of 30 seconds from now. */
export const codeFor = (secret: string, step = 0): string =>
  new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: Date.now() + step * 30_000 })
