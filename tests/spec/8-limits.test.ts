/** Spec §8, limits. */
import { describe, expect, test } from 'bun:test'
import { testApp } from '../support/app.ts'
import { people, problem, REMOTE } from '../support/people.ts'
import { nativeModels, publicModels, store } from './catalog.ts'

const listing = async (entry: Record<string, unknown>) => {
  const app = await testApp()
  await store(app, app.members[0]!.id, [{ slug: 'lineup', ...entry }])
  const [native] = await nativeModels(app)
  const [shown] = await publicModels(app)
  return { native, shown }
}

describe('§8 default input budget: 272000', () => {
  test('is used if the upstream names none', async () => {
    const { native, shown } = await listing({})
    expect(native?.context_window).toBe(272_000)
    expect(shown?.context_length).toBe(272_000)
  })

  test('is overridden by the upstream', async () => {
    const { native, shown } = await listing({ context_window: 128_000, max_context_window: 128_000 })
    expect(native).toMatchObject({ context_window: 128_000, max_context_window: 128_000 })
    expect(shown?.context_length).toBe(128_000)
  })
})

describe('§8 maximum input budget: 872000, for the native client only', () => {
  test('is in its listing and in no other', async () => {
    const { native, shown } = await listing({})
    expect(native?.max_context_window).toBe(872_000)
    expect(JSON.stringify(shown)).not.toContain('872000')
  })

  test('a budget above it raises it: a maximum is never below the default', async () => {
    const { native } = await listing({ context_window: 1_000_000 })
    expect(native).toMatchObject({ context_window: 1_000_000, max_context_window: 1_000_000 })
  })
})

describe('§8 auto-compact threshold: 784800', () => {
  test('is 90% of the advertised maximum, with no lower limit of our own', async () => {
    const { native } = await listing({})
    expect(Math.floor((native?.max_context_window ?? 0) * 0.9)).toBe(784_800)
    expect(native).not.toHaveProperty('auto_compact_token_limit')
  })

  test('a limit set by the upstream is passed on', async () => {
    const { native } = await listing({ auto_compact_token_limit: 700_000 })
    expect(native?.auto_compact_token_limit).toBe(700_000)
  })
})

describe('§8 failed sign-in and step-up attempts: 8 per minute per client', () => {
  const wrong = { json: { password: 'wrong' } }
  const LOGIN = 'POST /api/dashboard-auth/password/login'
  const STEP_UP = 'POST /api/dashboard-auth/step-up'

  test('password sign-in and step-up share them, and each minute has eight again', async () => {
    const app = await testApp({ accounts: 0 })
    const anna = await people(app).as('admin', { peer: REMOTE })
    const statuses = async () => {
      const answers = []
      for (let i = 0; i < 5; i++) answers.push(await anna.ask(LOGIN, wrong), await anna.ask(STEP_UP, wrong))
      return answers.map(({ status }) => status)
    }
    const minute = [...Array(8).fill(401), 429, 429]
    expect(await statuses()).toEqual(minute)
    await app.clock.advance(60_000)
    expect(await statuses()).toEqual(minute)
  })

  test('a client is a whole /64 of IPv6, and every other client is separate', async () => {
    const app = await testApp({ accounts: 0 })
    const { add, browser } = people(app)
    await add({ role: 'admin' })
    for (let i = 0; i < 8; i++) await browser(`2001:db8::${i}`).ask(LOGIN, wrong)
    expect((await browser('2001:db8::ffff').ask(LOGIN, wrong)).status).toBe(429)
    expect((await browser('2001:db8:0:1::1').ask(LOGIN, wrong)).status).toBe(401)
  })

  test('behind proxies with contradicting headers the client is the proxy, not a group of all unknown clients', async () => {
    const app = await testApp({
      accounts: 0,
      environment: {
        CODEX_LB_FIREWALL_TRUST_PROXY_HEADERS: 'true',
        CODEX_LB_FIREWALL_TRUSTED_PROXY_CIDRS: '10.0.0.0/8',
      },
    })
    const { add, browser } = people(app)
    await add({ role: 'admin' })
    const headers = { 'x-forwarded-for': '192.0.2.9', forwarded: 'for=192.0.2.10' }
    const status = async (peer: string) => (await browser(peer).ask(LOGIN, { ...wrong, headers })).status
    for (let i = 0; i < 8; i++) expect(await status('10.0.0.1')).toBe(401)
    expect(await status('10.0.0.1')).toBe(429)
    expect(await status('10.0.0.2')).toBe(401)
  })
})

describe('§8 step-up confirmation window: 5 minutes', () => {
  test('is exact to the millisecond', async () => {
    const app = await testApp({ accounts: 0 })
    const anna = await people(app).as('admin')
    const change = async (dashboardSessionTtlSeconds: number) =>
      (await anna.ask('PATCH /api/settings', { json: { dashboardSessionTtlSeconds } })).status
    await app.clock.advance(299_999)
    expect(await change(7200)).toBe(200)
    await app.clock.advance(1)
    expect(await change(3600)).toBe(403)
  })

  test('setting the clock back does not extend it, wherever it is checked', async () => {
    const app = await testApp({ accounts: 0 })
    const anna = await people(app).as('admin')
    app.clock.set(-3_600_000)
    const json = { dashboardSessionTtlSeconds: 7200 }
    expect(await problem(await anna.ask('PATCH /api/settings', { json }))).toEqual([403, 'step_up_required'])
    expect((await anna.session()).stepUp).toBeNull()
    expect(await (await anna.ask('GET /settings/access')).json()).toMatchObject({ mustConfirm: true })
    expect(await (await anna.ask('GET /settings/data')).json()).toMatchObject({ download: 'confirm' })
  })
})
