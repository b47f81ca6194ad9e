/** Spec §5, step-up confirmation 1 and 2: which changes require it. */
import { describe, expect, test } from 'bun:test'
import { everyRoute } from '../../src/routes/every-route.ts'
import { SETTING_NAMES, Settings } from '../../src/settings/schema.ts'
import { testApp } from '../support/app.ts'
import { people, problem } from '../support/people.ts'

/** For each setting that is neither a switch nor a number, a value other than its default. */
const OTHERS: Partial<Settings> = {
  routingStrategy: 'round_robin',
  upstreamStreamTransport: 'websocket',
  singleAccountId: 'acc_other',
  paidCredits: 'never',
  windowStart: 'at_reset',
  windowStartHours: '08:00',
  windowStartZone: 'Europe/Berlin',
  windowStartModel: 'gpt-5.5',
  plannerMode: 'advise',
  plannerZone: 'Europe/Berlin',
  plannerWorkingDays: 'sat sun',
  plannerWorkingHoursStart: '10:00',
  plannerWorkingHoursEnd: '17:00',
  resetPolicy: 'before_expiry',
  overflowSourceId: 'src_other',
  overflowModel: 'llama-4',
  overflowKeys: 'marked',
  egressDefaultPoolId: 'pool_other',
  clientRateLimits: 'hidden',
  prohibitFastMode: 'strip',
  claudeModels: { opus: { model: 'gpt-5.5', effort: null }, sonnet: null, haiku: null },
  corsOrigins: 'https://app.example',
  memberKeyDefaults: { maxKeys: 6, models: null, limits: [], expiresDays: null },
}

const open = async () => {
  const app = await testApp({ accounts: 0 })
  const { as } = people(app)
  return { app, anna: await as('admin', { isConfirmed: false }), berta: await as('admin') }
}

describe('§5 Step-up confirmation 1: changes that decide who can sign in', () => {
  test.each([
    ['the guest password', 'POST /api/dashboard-auth/guest/password', { password: 'for all guests' }],
    ['its removal', 'DELETE /api/dashboard-auth/guest/password', undefined],
    ['its removal by a form', 'POST /api/dashboard-auth/guest/password/remove', undefined],
    ['logging all guests out', 'POST /api/dashboard-auth/guest/logout-all', undefined],
    ['a TOTP requirement', 'PATCH /api/settings', { totpRequiredOnLogin: true }],
    ['session lifetime', 'PATCH /api/settings', { dashboardSessionTtlSeconds: 3600 }],
    ['guest access', 'PATCH /api/settings', { guestAccessEnabled: true }],
    ['API-key authentication', 'PUT /api/settings', { apiKeyAuthEnabled: true }],
    ['firewall rules', 'POST /api/firewall/ips', { ipAddress: '192.0.2.1' }],
    ['removing one', 'DELETE /api/firewall/ips/192.0.2.1', undefined],
  ] as const)('%s', async (_what, route, json) => {
    const { anna } = await open()
    expect(await problem(await anna.ask(route, { json }))).toEqual([403, 'step_up_required'])
  })

  test('every security setting, and no other', async () => {
    const { app, anna } = await open()
    for (const name of SETTING_NAMES) {
      const isSecurity = Settings.shape[name].meta()?.security === true
      const before = app.bindings.settings.current()[name]
      const other = typeof before === 'boolean' ? !before : typeof before === 'number' ? before + 1 : OTHERS[name]
      expect([name, other]).not.toEqual([name, before])
      expect([name, other]).not.toEqual([name, undefined])
      expect([name, Settings.shape[name].safeParse(other).success]).toEqual([name, true])
      const json = { [name]: other }
      const response = await anna.ask('PATCH /api/settings', { json })
      if (isSecurity) expect([name, ...(await problem(response))]).toEqual([name, 403, 'step_up_required'])
      else expect([name, [200, 422].includes(response.status)]).toEqual([name, true]) // 422: names a missing record
    }
  })

  test('every route that manages users, roles or providers declares it', () => {
    const unconfirmed = [
      '/doctor/upload', // changes nothing
      // Only starting a capture needs a confirmation: these end one, or delete its content.
      '/api/captures/:id',
      '/api/captures/:id/requests',
      '/api/conversation-archive/:id',
    ]
    const managing = everyRoute.filter(({ method, path, access: [rule] }) => {
      return (
        method !== 'GET' &&
        !unconfirmed.includes(path) &&
        rule?.access === 'permission' &&
        ['users:manage', 'roles:manage', 'security:write'].includes(rule.permission)
      )
    })
    expect(managing.length).toBeGreaterThan(4)
    expect(managing.filter(({ access: [rule] }) => !(rule?.access === 'permission' && rule.stepUp))).toEqual([])
  })
})

describe('§5 Step-up confirmation 2: within the last five minutes', () => {
  test('an unchanged security setting is no change', async () => {
    const { app, anna } = await open()
    const { status } = await anna.ask('PUT /api/settings', { json: app.bindings.settings.current() })
    expect(status).toBe(200)
  })

  test('a confirmed user passes', async () => {
    const { berta } = await open()
    const json = { dashboardSessionTtlSeconds: 3600 }
    expect((await berta.ask('PATCH /api/settings', { json })).status).toBe(200)
  })

  test('the permission is checked before the confirmation', async () => {
    const { app } = await open()
    const operator = await people(app).as('operator', { isConfirmed: false })
    for (const [route, json] of [
      ['PATCH /api/settings', { guestAccessEnabled: true }],
      ['POST /api/firewall/ips', { ipAddress: '192.0.2.1' }],
      ['POST /api/dashboard-auth/guest/logout-all', undefined],
    ] as const) {
      const refused = await operator.ask(route, { json })
      expect((await refused.json()).error).toMatchObject({ code: 'permission_required', param: 'security:write' })
    }
  })
})

describe('§2 Permissions: security:write changes the security settings', () => {
  const guard = async (isConfirmed: boolean) => {
    const { addRole, as } = people(await testApp({ accounts: 0 }))
    await addRole('guard', { 'dashboard:read': 'all', 'ops:write': 'all', 'security:write': 'all' })
    const self = await as('guard', { isConfirmed })
    return async (json: object) => problem(await self.ask('PATCH /api/settings', { json }))
  }

  test('also for users who do not pass the write check, after a confirmation', async () => {
    expect(await (await guard(true))({ guestAccessEnabled: true })).toEqual([200, null])
    expect(await (await guard(false))({ guestAccessEnabled: true })).toEqual([403, 'step_up_required'])
  })

  test('and no others, alone or together; unchanged ones do not count', async () => {
    expect(await (await guard(true))({ capacityWaitSeconds: 9 })).toEqual([403, 'read_only_access'])
    expect(await (await guard(true))({ capacityWaitSeconds: 9, guestAccessEnabled: true })).toEqual([
      403,
      'read_only_access',
    ])
    expect(await (await guard(true))({ capacityWaitSeconds: 5, guestAccessEnabled: true })).toEqual([200, null])
  })
})
