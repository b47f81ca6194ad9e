/** The session cookie: on https its name and flags keep others from writing or reading it. */
import { expect, test } from 'bun:test'
import { testApp } from '../support/app.ts'
import { PASSWORD, people } from '../support/people.ts'

const LOGIN = 'POST /api/dashboard-auth/password/login'
const ME = 'GET /api/dashboard-auth/me'
const SECURE = /^__Host-sluice_session=([\w-]{43}); Max-Age=\d+; Path=\/; HttpOnly; Secure; SameSite=Lax$/

/** A server that trusts a proxy at 10.0.0.1, and what a browser sends through it. */
const behindTls = async () => {
  const environment = {
    CODEX_LB_FIREWALL_TRUST_PROXY_HEADERS: 'true',
    CODEX_LB_FIREWALL_TRUSTED_PROXY_CIDRS: '10.0.0.1/32',
  }
  const app = await testApp({ accounts: 0, environment })
  await people(app).add({ username: 'anna', role: 'admin' })
  const json = { username: 'anna', password: PASSWORD }
  const headers = { host: 'sluice.test', 'x-forwarded-for': '192.0.2.7', 'x-forwarded-proto': 'HTTPS' }
  return { ...app, headers, json }
}

test('behind a TLS proxy it is for this host and https only', async () => {
  const { ask, headers, json } = await behindTls()
  const peer = '10.0.0.1'
  const set = (await ask(LOGIN, { json, headers, peer })).headers.getSetCookie()[0] ?? ''
  expect(set).toMatch(SECURE)
  const token = SECURE.exec(set)?.[1]
  const meAs = async (name: string) =>
    (await ask(ME, { headers: { ...headers, cookie: `${name}=${token}` }, peer })).status
  expect([await meAs('__Host-sluice_session'), await meAs('sluice_session')]).toEqual([200, 401])
  const cookie = `__Host-sluice_session=${token}`
  const gone = await ask('POST /api/dashboard-auth/logout', { headers: { ...headers, cookie }, peer })
  expect(gone.headers.getSetCookie()[0]).toBe('__Host-sluice_session=; Max-Age=0; Path=/; Secure')
})

test('it outlives its session, so that an expired session is not mistaken for none', async () => {
  const { ask, headers, json, bindings } = await behindTls()
  const set = (await ask(LOGIN, { json, headers, peer: '10.0.0.1' })).headers.getSetCookie()[0]
  expect(Number(/Max-Age=(\d+)/.exec(set ?? '')?.[1])).toBeGreaterThan(
    bindings.settings.current().dashboardSessionTtlSeconds,
  )
})

test('it is also replaced if the clock was ahead when a year-long session began', async () => {
  const app = await testApp({ accounts: 0, settings: { dashboardSessionTtlSeconds: 31_536_000 } })
  const { add, browser } = people(app)
  await add({ username: 'anna', role: 'admin' })
  const anna = browser('192.0.2.7')
  await anna.ask(LOGIN, { json: { username: 'anna', password: PASSWORD } })
  app.clock.set(-6 * 86_400_000)
  const confirmed = await anna.ask('POST /api/dashboard-auth/step-up', { json: { password: PASSWORD } })
  expect(confirmed.headers.getSetCookie()[0]).toContain('Max-Age=34560000;')
  expect((await anna.session()).authenticated).toBe(true)
})

test('an https cookie from the other scheme is replaced by the new one', async () => {
  const { ask, headers, json } = await behindTls()
  const peer = '192.0.2.7'
  const stray = { ...headers, cookie: `__Host-sluice_session=${'x'.repeat(43)}` }
  for (const route of [LOGIN, 'POST /api/dashboard-auth/logout']) {
    const lines = (await ask(route, { json: route === LOGIN ? json : {}, headers: stray, peer })).headers.getSetCookie()
    expect(lines).toContain('__Host-sluice_session=; Max-Age=0; Path=/; Secure')
    expect(lines.some((line) => line.startsWith('sluice_session='))).toBe(true)
  }
})

test('an untrusted proxy does not make it an https cookie', async () => {
  const { ask, headers, json } = await behindTls()
  const set = (await ask(LOGIN, { json, headers, peer: '192.0.2.7' })).headers.getSetCookie()[0]
  expect(set).toMatch(/^sluice_session=[\w-]{43}; Max-Age=\d+; Path=\/; HttpOnly; SameSite=Lax$/)
})
