/** Spec §7, errors about users: one request for every code of signing in and managing users. */
import { describe, expect, test } from 'bun:test'
import { PERMISSIONS } from '../../src/model/users/permissions.ts'
import { type TestOptions, testApp } from '../support/app.ts'
import { type Browser, PASSWORD, people, REMOTE, TOTP_SECRET } from '../support/people.ts'
import { dashboardProblem } from './problems.ts'

type House = Awaited<ReturnType<typeof open>>

interface Provocation {
  options?: TestOptions
  ask: (house: House) => Promise<Response>
  status: number
}

const AUTH = '/api/dashboard-auth'
const USERS = '/api/dashboard-users'
const LOGIN = `POST ${AUTH}/password/login`
const PROXY: TestOptions = {
  environment: {
    CODEX_LB_DASHBOARD_AUTH_MODE: 'trusted_header',
    CODEX_LB_FIREWALL_TRUST_PROXY_HEADERS: 'true',
    CODEX_LB_FIREWALL_TRUSTED_PROXY_CIDRS: '10.0.0.0/8',
  },
}
const NEWCOMER = { username: 'berta', role: 'viewer' }

const open = async (options: TestOptions = {}) => {
  const app = await testApp({ accounts: 0, ...options })
  return { app, ...people(app) }
}

const post = (who: Browser, route: string, json: object = {}) => who.ask(`POST ${route}`, { json })
const patch = (who: Browser, route: string, json: object) => who.ask(`PATCH ${route}`, { json })
const announced = (house: House, subject: string) =>
  house
    .browser('10.0.0.1')
    .ask('GET /api/settings', { headers: { 'remote-user': subject, 'x-forwarded-for': '192.0.2.7' } })

/** A user invited by `anna`, with the link. */
const invited = async (anna: Browser, more: object = {}) => {
  const response = await post(anna, USERS, { ...NEWCOMER, ...more })
  return (await response.json()) as { user: { id: string }; invite: { token: string } }
}

const waiting = { ...NEWCOMER, ssoOnly: true, expectedIdentity: { provider: 'trusted_header', subject: 'berta' } }

/** Eight wrong tries at the password, then the route. */
const limited = (route: string, json: object) => async (house: House) => {
  const anna = await house.as('admin', { peer: REMOTE })
  for (let i = 0; i < 8; i++) await post(anna, `${AUTH}/step-up`, { password: 'wrong' })
  return anna.ask(route, route.startsWith('GET') ? {} : { json })
}

const role = (anna: Browser, name: string) => post(anna, '/api/dashboard-roles', { name, grants: [] })

const enterKey = (who: Browser, secret: string) => post(who, '/api/key/session', { secret })
const withKeyPage = (ask: (house: House) => Promise<Response>) => async (house: House) => {
  await house.app.change({ keyHolderPage: true })
  return ask(house)
}

const PROVOCATIONS = {
  permission_required: {
    ask: async ({ as }) => (await as('operator')).ask('POST /api/firewall/ips', { json: { ipAddress: '192.0.2.1' } }),
    status: 403,
  },
  read_only_access: {
    ask: async ({ as }) => patch(await as('viewer'), '/api/settings', { capacityWaitSeconds: 1 }),
    status: 403,
  },
  step_up_required: {
    ask: async ({ as }) => post(await as('admin', { isConfirmed: false }), USERS, NEWCOMER),
    status: 403,
  },
  step_up_unavailable: {
    ask: async ({ as }) => post(await as('admin', { hasPassword: false }), USERS, NEWCOMER),
    status: 403,
  },
  totp_enrollment_required: {
    options: { settings: { totpRequiredOnLogin: true } },
    ask: async ({ as }) => (await as('admin')).ask('GET /api/settings'),
    status: 403,
  },
  insufficient_delegation: {
    ask: async ({ as, addRole }) => {
      await addRole('inviter', { 'users:manage': 'all', 'dashboard:read': 'all', 'accounts:read': 'all' })
      return post(await as('inviter'), USERS, { ...NEWCOMER, role: 'admin' })
    },
    status: 403,
  },
  authentication_required: {
    ask: async ({ add, browser }) => {
      await add({ role: 'admin' })
      return browser(REMOTE).ask('GET /api/settings')
    },
    status: 401,
  },
  totp_required: {
    ask: async ({ add, browser }) => {
      await add({ username: 'anna', hasTotp: true })
      const here = browser(REMOTE)
      await here.ask(LOGIN, { json: { password: PASSWORD } })
      return here.ask('GET /api/settings')
    },
    status: 401,
  },
  invalid_credentials: {
    ask: async ({ add, browser }) => {
      await add({ role: 'admin' })
      return browser(REMOTE).ask(LOGIN, { json: { password: 'wrong' } })
    },
    status: 401,
  },
  proxy_auth_required: {
    options: PROXY,
    ask: ({ browser }) => browser(REMOTE).ask('GET /api/settings'),
    status: 401,
  },
  identity_not_provisioned: {
    options: PROXY,
    ask: async (house) => {
      const anna = await house.as('admin', { peer: '10.0.0.9' })
      await patch(anna, '/api/auth-providers/idp_trusted_header', { unknownIdentityRoleId: null })
      return announced(house, 'stranger')
    },
    status: 401,
  },
  account_disabled: {
    options: PROXY,
    ask: async (house) => {
      await announced(house, 'berta')
      house.app.sqlite.run("UPDATE users SET status = 'disabled'")
      return announced(house, 'berta')
    },
    status: 401,
  },
  user_account_required: { ask: ({ browser }) => browser().ask(`GET ${AUTH}/me`), status: 401 },
  bootstrap_unavailable: {
    ask: ({ browser }) => post(browser(REMOTE), `${AUTH}/password/setup`, { password: PASSWORD }),
    status: 401,
  },
  invalid_bootstrap_token: {
    ask: ({ app, browser }) => {
      app.sqlite.run("INSERT INTO facts (name, value) VALUES ('bootstrap_token_hash', 'of another')")
      return post(browser(REMOTE), `${AUTH}/password/setup`, { password: PASSWORD, bootstrapToken: 'guess' })
    },
    status: 401,
  },
  password_management_disabled: {
    options: { environment: { CODEX_LB_DASHBOARD_AUTH_MODE: 'disabled' } },
    ask: ({ browser }) => post(browser(), `${AUTH}/password/setup`, { password: PASSWORD }),
    status: 400,
  },
  password_not_configured: {
    ask: ({ browser }) => browser().ask(LOGIN, { json: { password: 'x' } }),
    status: 400,
  },
  guest_access_disabled: { ask: ({ browser }) => post(browser(), `${AUTH}/guest/login`), status: 400 },
  invalid_totp_setup: {
    ask: async ({ as }) => post(await as('admin', { hasTotp: true }), `${AUTH}/totp/setup/start`),
    status: 400,
  },
  invalid_totp_code: {
    ask: async ({ as }) => post(await as('admin'), `${AUTH}/totp/setup/confirm`, { secret: TOTP_SECRET, code: '1' }),
    status: 400,
  },
  invalid_totp_config: {
    ask: async ({ as }) => patch(await as('admin'), '/api/settings', { totpRequiredOnLogin: true }),
    status: 400,
  },
  invalid_passkey: {
    ask: async ({ as }) => {
      const part = 'AAAA'
      const response = {
        id: part,
        rawId: part,
        type: 'public-key',
        clientExtensionResults: {},
        response: { clientDataJSON: part, authenticatorData: part, signature: part },
      }
      return post(await as('admin'), `${AUTH}/passkeys/sign-in/finish`, { response })
    },
    status: 400,
  },
  passkeys_unavailable: {
    ask: async ({ as }) =>
      (await as('admin')).ask(`POST ${AUTH}/passkeys/register/start`, {
        headers: { host: '127.0.0.1:2455' },
        json: {},
      }),
    status: 409,
  },
  username_required: {
    ask: async ({ add, browser }) => {
      await add()
      await add()
      return browser(REMOTE).ask(LOGIN, { json: { password: PASSWORD } })
    },
    status: 422,
  },
  username_locked: {
    ask: async ({ as, browser }) => {
      const { invite } = await invited(await as('admin'), { usernameLocked: true })
      const json = { token: invite.token, username: 'other', password: PASSWORD }
      return post(browser(REMOTE), `${AUTH}/invite/accept`, json)
    },
    status: 422,
  },
  invalid_key: { ask: withKeyPage(({ browser }) => enterKey(browser(REMOTE), 'wrong')), status: 401 },
  key_session_ended: { ask: withKeyPage(({ browser }) => post(browser(REMOTE), '/api/key/secret')), status: 401 },
  key_rate_limited: {
    ask: withKeyPage(async ({ browser }) => {
      const visitor = browser(REMOTE)
      for (let n = 0; n < 8; n++) await enterKey(visitor, 'wrong')
      return enterKey(visitor, 'wrong')
    }),
    status: 429,
  },
  holder_may_not_regenerate: {
    ask: withKeyPage(async ({ app, browser }) => {
      const visitor = browser(REMOTE)
      await enterKey(visitor, (await app.key()).key)
      return post(visitor, '/api/key/secret')
    }),
    status: 403,
  },
  key_limit_reached: {
    ask: async ({ as }) => {
      const mia = await as('member')
      for (let n = 0; n < 5; n++) await post(mia, '/api/api-keys', { name: `key ${n}` })
      return post(mia, '/api/api-keys', { name: 'one more' })
    },
    status: 409,
  },
  role_not_assignable: {
    ask: async ({ as }) => post(await as('admin'), USERS, { ...NEWCOMER, role: 'guest' }),
    status: 422,
  },
  password_already_configured: {
    ask: async ({ as }) => post(await as('admin'), `${AUTH}/password/setup`, { password: PASSWORD }),
    status: 409,
  },
  other_users_exist: {
    ask: async ({ as, add }) => {
      await add({ status: 'disabled' })
      return (await as('admin')).ask(`DELETE ${AUTH}/password`, { json: { password: PASSWORD } })
    },
    status: 409,
  },
  last_admin_protected: {
    ask: async ({ as, add, addRole }) => {
      await addRole('everything', Object.fromEntries(PERMISSIONS.map((permission) => [permission, 'all'])))
      const { row } = await add({ role: 'admin' })
      return patch(await as('everything'), `${USERS}/${row.id}`, { status: 'disabled' })
    },
    status: 409,
  },
  username_taken: {
    ask: async ({ as, add }) => {
      await add({ username: 'berta' })
      return post(await as('admin'), USERS, NEWCOMER)
    },
    status: 409,
  },
  email_taken: {
    ask: async ({ as, add }) => {
      await add({ email: 'anna@example.com' })
      return patch(await as('viewer'), `${AUTH}/me`, { email: 'Anna@Example.com' })
    },
    status: 409,
  },
  admin_account_required: { ask: ({ browser }) => post(browser(), USERS, NEWCOMER), status: 409 },
  self_modification_forbidden: {
    ask: async ({ as }) => {
      const anna = await as('admin')
      return patch(anna, `${USERS}/${anna.person.row.id}`, { status: 'disabled' })
    },
    status: 409,
  },
  invite_pending: {
    ask: async ({ as }) => {
      const anna = await as('admin')
      return patch(anna, `${USERS}/${(await invited(anna)).user.id}`, { status: 'disabled' })
    },
    status: 409,
  },
  invite_not_pending: {
    ask: async ({ as, add }) => post(await as('admin'), `${USERS}/${(await add()).row.id}/invite`),
    status: 409,
  },
  sso_only_invite: {
    options: PROXY,
    ask: async ({ as }) => {
      const anna = await as('admin')
      return post(anna, `${USERS}/${(await invited(anna, waiting)).user.id}/invite`)
    },
    status: 409,
  },
  sso_not_available: { ask: async ({ as }) => post(await as('admin'), USERS, waiting), status: 409 },
  identity_taken: {
    options: PROXY,
    ask: async ({ as }) => {
      const anna = await as('admin')
      await invited(anna, waiting)
      return post(anna, USERS, { ...waiting, username: 'carla' })
    },
    status: 409,
  },
  credential_required: {
    ask: async ({ as, add }) => {
      const { row } = await add({ status: 'disabled', hasPassword: false })
      return patch(await as('admin'), `${USERS}/${row.id}`, { status: 'active' })
    },
    status: 409,
  },
  already_signed_in: {
    ask: async ({ as }) => {
      const anna = await as('admin')
      const { invite } = await invited(anna)
      return post(anna, `${AUTH}/invite/accept`, { token: invite.token, password: PASSWORD })
    },
    status: 409,
  },
  role_in_use: {
    ask: async ({ as, add, addRole }) => {
      const id = await addRole('helper', { 'dashboard:read': 'all' })
      await add({ role: 'helper' })
      return (await as('admin')).ask(`DELETE /api/dashboard-roles/${id}`)
    },
    status: 409,
  },
  role_taken: {
    ask: async ({ as }) => {
      const anna = await as('admin')
      await role(anna, 'Helper')
      return role(anna, 'Helper')
    },
    status: 409,
  },
  edit_conflict: {
    ask: async ({ as, addRole }) =>
      (await as('admin')).ask(`PATCH /api/dashboard-roles/${await addRole('looker', {})}`, {
        json: { expectedVersion: 'older' },
      }),
    status: 409,
  },
  role_locked: {
    ask: async ({ as }) => (await as('admin')).ask('DELETE /api/dashboard-roles/role_viewer'),
    status: 409,
  },
  password_rate_limited: { ask: limited(LOGIN, { password: PASSWORD }), status: 429 },
  guest_password_rate_limited: {
    options: { settings: { guestAccessEnabled: true } },
    ask: async (house) => {
      await post(await house.as('admin'), `${AUTH}/guest/password`, { password: 'for all guests' })
      return limited(`POST ${AUTH}/guest/login`, { password: 'for all guests' })(house)
    },
    status: 429,
  },
  totp_rate_limited: { ask: limited(`POST ${AUTH}/totp/disable`, { code: '123456' }), status: 429 },
  step_up_rate_limited: { ask: limited(`POST ${AUTH}/step-up`, { password: PASSWORD }), status: 429 },
  invite_rate_limited: { ask: limited(`GET ${AUTH}/invite/guess`, {}), status: 429 },
  own_account_rate_limited: {
    ask: async ({ as }) => {
      const anna = await as('viewer')
      for (let n = 0; n < 30; n++) await patch(anna, `${AUTH}/me`, { displayName: `Anna ${n % 2}` })
      return patch(anna, `${AUTH}/me`, { displayName: 'Anna' })
    },
    status: 429,
  },
  user_not_found: { ask: async ({ as }) => (await as('admin')).ask(`DELETE ${USERS}/usr_unknown`), status: 404 },
  role_not_found: {
    ask: async ({ as }) => post(await as('admin'), USERS, { ...NEWCOMER, role: 'emperor' }),
    status: 404,
  },
  provider_not_found: {
    ask: async ({ as }) => patch(await as('admin'), '/api/auth-providers/other', { linkByEmail: true }),
    status: 404,
  },
  invite_not_found: { ask: ({ browser }) => browser(REMOTE).ask(`GET ${AUTH}/invite/guess`), status: 404 },
} as const satisfies Record<string, Provocation>

/** The codes provoked here. */
export type PeopleCode = keyof typeof PROVOCATIONS

describe('§7 every code about users can be returned, with its status and its format', () => {
  for (const [code, { options = {}, ask, status }] of Object.entries<Provocation>(PROVOCATIONS))
    test(code, async () => {
      const response = await ask(await open(options))
      const problem = await dashboardProblem(response)
      expect([problem.code, response.status]).toEqual([code, status])
      expect(problem.message).toMatch(/^.{5,}$/)
      if (status === 429) expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    })
})

describe('§7 permission failures', () => {
  test('name the missing permission in param', async () => {
    const { as } = await open()
    const refused = await (await as('operator')).ask('POST /api/firewall/ips', { json: { ipAddress: '192.0.2.1' } })
    expect(Object.keys((await refused.json()).error).toSorted()).toEqual(['code', 'message', 'param'])
  })

  test('a browser gets a page, not JSON', async () => {
    const { as } = await open()
    const refused = await (await as('viewer')).submit('POST /api/dashboard-auth/guest/logout-all')
    expect([refused.status, refused.headers.get('content-type')]).toEqual([403, 'text/html; charset=UTF-8'])
  })
})
