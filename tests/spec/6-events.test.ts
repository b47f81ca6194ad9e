/** Spec §6, events: what the audit log records about users, and what it never contains. */
import { describe, expect, test } from 'bun:test'
import { testApp } from '../support/app.ts'
import { PASSWORD, people, REMOTE } from '../support/people.ts'

const AUTH = '/api/dashboard-auth'
const VIA = { 'x-forwarded-for': '192.0.2.7' }

const open = async (options: Parameters<typeof testApp>[0] = {}) => {
  const app = await testApp({ accounts: 0, ...options })
  return { app, ...people(app) }
}

describe('§6 Events', () => {
  test('rows 1 and 2: user_created and identity_linked, once, for a new identity', async () => {
    const { browser, audit } = await open({
      environment: {
        CODEX_LB_DASHBOARD_AUTH_MODE: 'trusted_header',
        CODEX_LB_FIREWALL_TRUST_PROXY_HEADERS: 'true',
        CODEX_LB_FIREWALL_TRUSTED_PROXY_CIDRS: '10.0.0.0/8',
      },
    })
    const headers = { ...VIA, 'remote-user': 'Anna@Example.com' }
    for (let i = 0; i < 3; i++) await browser('10.0.0.1').ask('GET /api/settings', { headers })
    const rows = (await audit()).filter(({ event }) => event === 'user_created' || event === 'identity_linked')
    expect(rows).toMatchObject([
      { event: 'user_created', address: '192.0.2.7', details: { username: 'anna.example.com' } },
      { event: 'identity_linked', address: '192.0.2.7', details: { subject: 'anna@example.com' } },
    ])
    expect(new Set(rows.map(({ target }) => target)).size).toBe(1)
  })

  test('row 3: step_up_verified with each successful confirmation', async () => {
    const { as, audit } = await open()
    const anna = await as('admin', { peer: REMOTE, isConfirmed: false })
    await anna.ask(`POST ${AUTH}/step-up`, { json: { password: 'wrong' } })
    await anna.ask(`POST ${AUTH}/step-up`, { json: { password: PASSWORD } })
    await anna.ask(`POST ${AUTH}/step-up`, { json: { password: PASSWORD } })
    expect((await audit()).map(({ event }) => event)).toEqual(['login_failed', 'step_up_verified', 'step_up_verified'])
    const { id, username } = anna.person.row
    expect((await audit())[0]).toMatchObject({ actor: id, actorName: username, actorRole: 'admin', method: 'step_up' })
    expect((await audit()).at(-1)).toMatchObject({
      actor: id,
      actorName: username,
      actorRole: 'admin',
      method: 'password',
      address: REMOTE,
      severity: 'info',
    })
  })

  test('no row, log line or response contains a secret that was used to sign in', async () => {
    const { app, as, browser, audit, code } = await open({ settings: { guestAccessEnabled: true } })
    const anna = await as('admin', { hasTotp: true })
    const secrets = ['first-secret-1', 'guest-secret-2', 'third-secret-3', code()]
    await anna.ask(`POST ${AUTH}/guest/password`, { json: { password: secrets[1] } })
    await browser(REMOTE).ask(`POST ${AUTH}/guest/login`, { json: { password: secrets[1] } })
    const login = await browser(REMOTE).ask(`POST ${AUTH}/password/login`, {
      json: { username: secrets[2], password: secrets[0] },
    })
    const disable = await anna.ask(`POST ${AUTH}/totp/disable`, { json: { code: secrets[3] } })
    const seen = [
      JSON.stringify((await audit()).map(({ hash, previousHash, ...row }) => row)),
      app.lines.join('\n'),
      await login.text(),
      await disable.text(),
    ].join('\n')
    for (const secret of secrets) expect(seen).not.toContain(secret)
    expect(seen).not.toContain('argon2')
  })
})
