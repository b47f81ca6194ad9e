/** Users for tests: inserted into the database, and browsers with cookies. */
import * as OTPAuth from 'otpauth'
import { commit } from '../../db/commit.ts'
import { roleGrants, roles, users } from '../../db/schema/people.ts'
import { auditLogs } from '../../db/schema/system.ts'
import { totpContext } from '../../src/model/users/passwords.ts'
import { getPerson, type Person } from '../../src/model/users/people.ts'
import { PERMISSIONS, type Permission, type Scope } from '../../src/model/users/permissions.ts'
import { getRole } from '../../src/model/users/roles.ts'
import { createSession, type SignInMethod } from '../../src/model/users/sessions.ts'
import type { Ask, TestApp } from './app.ts'
import { passwords } from './passwords.ts'

/** The password of every user who has one. */
export const PASSWORD = 'correct horse battery'
/** The secret of every user who has one: 20 bytes in base32. */
export const TOTP_SECRET = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP'
/** An address that is not this machine. */
export const REMOTE = '192.0.2.7'

const PASSWORD_HASH = await passwords.hash(PASSWORD)
const COOKIE = 'sluice_session'

interface NewPerson {
  username?: string
  /** Slug or id. */
  role?: string
  status?: 'invited' | 'active' | 'disabled'
  hasPassword?: boolean
  hasTotp?: boolean
  email?: string | null
  displayName?: string | null
}

export interface SignedIn extends NewPerson {
  /** Whether sensitive changes need no further confirmation. */
  isConfirmed?: boolean
  method?: SignInMethod
  peer?: string
}

export type Fields = Record<string, string | number | boolean>

/** A browser: sends its cookies from one address, and stores those it receives. */
export interface Browser {
  cookie: string | null
  peer: string
  ask: (route: string, ask?: Ask) => Promise<Response>
  /** What a form without scripts sends: the response is a page, or a 303. */
  submit: (route: string, fields?: Fields) => Promise<Response>
  /** The same fields as JSON or as a form. */
  send: (how: RequestFormat, route: string, fields?: Fields) => Promise<Response>
  /** `GET /api/dashboard-auth/session`. */
  session: () => Promise<Session>
}

export type RequestFormat = 'json' | 'form'
export const REQUEST_FORMATS: readonly RequestFormat[] = ['json', 'form']

/** The members that tests look at most; the rest is there, too. */
interface Session {
  authenticated: boolean
  permissions: string[]
  role: string
  authMethod: string | null
  user: { id: string; username: string; displayName: string | null; role: { slug: string } } | null
  login: { usernameField: string; username_field: string; pendingIdentity: boolean }
  stepUp: { verifiedAt: string; expiresAt: string; methods: string[] } | null
  [member: string]: unknown
}

export interface TestUser extends Browser {
  person: Person
}

export const people = (app: TestApp) => {
  const { db, clock } = app
  const { random, sealer } = app.bindings
  const names = { next: 1 }

  /** An account, without anything of it being signed in. */
  const add = async (input: NewPerson = {}): Promise<Person> => {
    const { role = 'viewer', status = 'active', hasPassword = true, hasTotp = false, ...names_ } = input
    const id = random.id('usr')
    const username = input.username ?? `${role}${names.next++}`
    const row = {
      ...names_,
      id,
      username,
      status,
      roleId: (await getRole(db, role)).id,
      passwordHash: hasPassword ? PASSWORD_HASH : null,
      totpSecretSealed: hasTotp ? sealer.seal(TOTP_SECRET, totpContext(id)) : null,
      createdAt: clock.now(),
    }
    await commit(db, async (tx) => void (await tx.insert(users).values(row).run()))
    return getPerson(db, id)
  }

  const addRole = async (slug: string, grants: Partial<Record<Permission, Scope>>): Promise<string> => {
    const id = random.id('role')
    const now = clock.now()
    await commit(db, async (tx) => {
      await tx.insert(roles).values({ id, slug, name: slug, createdAt: now, updatedAt: now }).run()
      for (const permission of PERMISSIONS) {
        const scope = grants[permission]
        if (scope) await tx.insert(roleGrants).values({ roleId: id, permission, scope }).run()
      }
    })
    return id
  }

  const browser = (peer = '127.0.0.1'): Browser => openBrowser(app, peer)

  /** A browser in which `person` is signed in, without a password being hashed. */
  const signInAs = async (
    person: Person,
    { isConfirmed = true, method = 'password', peer }: SignedIn = {},
  ): Promise<TestUser> => {
    const { token } = await commit(db, (tx) =>
      createSession(tx, random, {
        userId: person.row.id,
        method,
        isComplete: true,
        isConfirmed,
        now: clock.now(),
        expiresAt: clock.now() + 7 * 24 * 3_600_000,
        address: peer ?? '127.0.0.1',
        userAgent: 'test',
      }),
    )
    return Object.assign(browser(peer), { cookie: `${COOKIE}=${token}`, person })
  }

  return {
    add,
    addRole,
    browser,
    signInAs,
    /** A new account of this role, signed in. */
    as: async (role: string, input: SignedIn = {}): Promise<TestUser> =>
      signInAs(await add({ ...plain(input), role }), input),
    /** A guest who entered while guest access needs no password. */
    guest: async (peer?: string): Promise<Browser> => {
      await app.change({ guestAccessEnabled: true })
      return browser(peer)
    },
    /** Every audit row, oldest first. */
    audit: () => db.select().from(auditLogs).orderBy(auditLogs.id).all(),
    /** The code of the authenticator now, `steps` of 30 seconds later, or before. */
    code: (steps = 0): string => codeAt(clock.now() + steps * 30_000),
  }
}

export const codeAt = (timestamp: number, secret = TOTP_SECRET): string =>
  OTPAuth.TOTP.generate({ secret: OTPAuth.Secret.fromBase32(secret), timestamp })

/** The error of a response: its status and the code of the dashboard format. */
export const problem = async (response: Response): Promise<[status: number, code: string | null]> => {
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false
  const document = isJson ? (JSON.parse(text) as { error?: { code: string } }) : {} // as: the members used here
  return [response.status, document.error?.code ?? pageCode(text)]
}

/** The response to a successful change: a form without scripts is redirected to a page. */
export const doneStatus = (how: RequestFormat, status: number): number => (how === 'json' ? status : 303)

/** The token of the link that the answer shows once, as JSON or on a page. */
export const getInviteToken = async (response: Response): Promise<string> => {
  const text = await response.text()
  return (/"token":"([\w-]{43})"/.exec(text) ?? /\/invite\/([\w-]{43})/.exec(text))?.[1] ?? ''
}

/** The error page says its code, too. */
const pageCode = (html: string): string | null => /<code>([a-z_]+)<\/code>/.exec(html)?.[1] ?? null

const plain = ({ isConfirmed: _, method: __, peer: ___, ...person }: SignedIn): NewPerson => person

const openBrowser = (app: TestApp, peer: string): Browser => {
  const self: Browser = {
    cookie: null,
    peer,
    ask: async (route, { headers, ...ask } = {}) => {
      const cookie = self.cookie === null ? null : { cookie: self.cookie }
      const response = await app.ask(route, { peer: self.peer, ...ask, headers: { ...cookie, ...headers } })
      keepCookies(self, response)
      return response
    },
    submit: (route, fields = {}) =>
      self.ask(route, {
        body: new URLSearchParams(Object.entries(fields).map(([name, value]) => [name, String(value)])).toString(),
        headers: {
          'content-type': 'application/x-www-form-urlencoded',
          accept: 'text/html,application/xhtml+xml',
          'sec-fetch-site': 'same-origin',
        },
      }),
    send: (how, route, fields = {}) =>
      how === 'json' ? self.ask(route, { json: fields }) : self.submit(route, fields),
    session: async () => (await (await self.ask('GET /api/dashboard-auth/session')).json()) as Session, // as: tests check the fields they use
  }
  return self
}

const keepCookies = (browser: Browser, response: Response): void => {
  for (const line of response.headers.getSetCookie()) {
    const [pair = ''] = line.split(';')
    if (!/sluice_(session|key)=/.test(pair)) continue
    browser.cookie = /max-age=0(;|$)/i.test(line) ? null : pair
  }
}
