/** E-mail over TLS, to a real mail server with a certificate that the operator trusts through `NODE_EXTRA_CA_CERTS`. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { mailReceiver } from '../support/receivers.ts'
import { cert, key } from './certificate.ts'

const ROOT = resolve(import.meta.dir, '../..')
const HOST = 'hidden-upstream.test' // the name in the certificate

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-mail-'))
  writeFileSync(join(folder, 'ca.pem'), cert)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe.each([
  ['implicit', { secure: true }],
  ['starttls', {}],
] as const)('%s TLS', (tls, how) => {
  const open = async () => {
    const server = await mailReceiver({ key, cert, ...how })
    const mail = { from: 'sluice@example.com', to: ['anna@example.com'], user: 'anna', password: 'letter' }
    const send = async (over: Record<string, unknown> = {}): Promise<string | null> => {
      const child = Bun.spawn(
        [
          process.execPath,
          'tests/process/alerts-mail-child.ts',
          JSON.stringify({ ...mail, host: HOST, port: server.port, tls, ...over }),
        ],
        {
          cwd: ROOT,
          env: { PATH: process.env.PATH ?? '', NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem') },
          stderr: 'inherit',
        },
      )
      return JSON.parse(await new Response(child.stdout).text())
    }
    return { server, send, [Symbol.dispose]: server.stop }
  }

  test('with a valid certificate, the mail arrives encrypted and with the login', async () => {
    using world = await open()
    expect(await world.send()).toBeNull()
    expect(world.server.mails).toMatchObject([{ to: ['anna@example.com'], user: 'anna', isSecure: true }])
  })

  test('a certificate for another name is rejected before the password is sent', async () => {
    using world = await open()
    expect(await world.send({ host: 'mail.example.com' })).toStartWith('The connection failed (E')
    expect([world.server.logins, world.server.mails]).toEqual([[], []])
  })

  test('a rejected login is reported', async () => {
    using world = await open()
    expect(await world.send({ password: 'wrong' })).toBe('The mail server rejected the user name or password (535).')
    expect([world.server.logins, world.server.mails]).toEqual([['anna'], []])
  })
})
