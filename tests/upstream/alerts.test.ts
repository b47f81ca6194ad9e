/** Sending alerts to real receivers: what each of them gets, and what a bad one can do. */
import { afterEach, describe, expect, test } from 'bun:test'
import type { Severity } from '../../db/schema/alerts.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { systemRandom } from '../../src/lib/random.ts'
import { type Target, toTarget } from '../../src/model/alerts/channel-input.ts'
import type { AlertMessage } from '../../src/model/alerts/messages.ts'
import { problemOfTarget, sendAlert, sendHeartbeat } from '../../src/upstream/alerts/send.ts'
import { createDial } from '../../src/upstream/dial.ts'
import { GuardedFetch } from '../../src/upstream/guarded-fetch.ts'
import * as certificate from '../process/certificate.ts'
import { ManualClock } from '../support/clock.ts'
import { httpReceiver, mailReceiver, ntfyReceiver, silentServer, verifyingReceiver } from '../support/receivers.ts'
import { until } from '../support/until.ts'

const opened: { stop(): unknown }[] = []
afterEach(() => {
  for (const one of opened.splice(0)) one.stop()
})
const keep = <T extends { stop(): unknown }>(one: T): T => {
  opened.push(one)
  return one
}

const names = new Map([
  ['public.test', ['203.0.113.7']],
  ['inside.test', ['10.0.0.8']],
  ['mixed.test', ['203.0.113.7', '192.168.1.2']],
  ['meta.test', ['169.254.169.254']],
  ['mail.test', ['127.0.0.1']],
  ['mapped.test', ['203.0.113.7', '::ffff:169.254.169.254']],
])

const guarded = (environment: Record<string, string> = {}) =>
  new GuardedFetch({
    dial: createDial(environment, fetch, { trustsSocketEnvironment: true, random: systemRandom }),
    lookup: async (name) => names.get(name) ?? [],
    own: () => ({ port: 1, publicUrl: undefined }),
  })

const deps = { guardedFetch: guarded(), clock: systemClock }

const message = (over: Partial<AlertMessage> = {}): AlertMessage => ({
  id: 'ald_1',
  event: 'account.needs_sign_in',
  edge: 'raised',
  severity: 'bad',
  title: 'Account needs sign-in',
  text: 'a***@example.com needs sign-in. <Ünïcode>',
  url: 'https://sluice.example/accounts/acc_1',
  subject: { kind: 'account', id: 'acc_1', name: 'a***@example.com' },
  since: '2026-01-05T10:00:00.000Z',
  at: '2026-01-05T10:01:00.000Z',
  install: 'sluice.example',
  ...over,
})

const send = (target: Target, { secret = null, sent = message(), isPrivate = true }: Sending = {}) =>
  sendAlert(deps, { target, secret, allowPrivateAddress: isPrivate }, sent)

interface Sending {
  secret?: string | null
  sent?: AlertMessage
  isPrivate?: boolean
}

describe('webhooks', () => {
  test('are signed so that the receiver can verify them', async () => {
    const hook = keep(verifyingReceiver('shared'))
    expect(await send(toTarget('webhook', { url: `${hook.url}/in?x=1` }), { secret: 'shared' })).toBeNull()
    expect(await send(toTarget('webhook', { url: hook.url }), { secret: 'other' })).toContain('401')
    expect(await send(toTarget('webhook', { url: hook.url }))).toContain('401')
    expect(JSON.parse(hook.got[0]!.body)).toEqual(message())
    expect(hook.got[0]?.path).toBe('/in?x=1')
    expect(hook.got[0]?.headers.get('x-sluice-event')).toBe('account.needs_sign_in')
  })

  test('that answer 500 have failed, without the words of the receiver', async () => {
    const hook = keep(httpReceiver(() => new Response('stack trace with secrets', { status: 500 })))
    expect(await send(toTarget('webhook', { url: hook.url }))).toBe('The server answered with HTTP 500.')
  })

  test('are not sent on by a redirect', async () => {
    const other = keep(httpReceiver())
    for (const status of [301, 302, 307, 308]) {
      const hook = keep(httpReceiver(() => new Response('', { status, headers: { location: other.url } })))
      expect(await send(toTarget('webhook', { url: hook.url }))).toContain('redirect')
    }
    expect(other.got).toEqual([])
  })

  test('have ten seconds', async () => {
    const clock = new ManualClock()
    const hook = keep(httpReceiver(() => new Promise<Response>(() => {})))
    const target = toTarget('webhook', { url: hook.url })
    const sent = sendAlert({ ...deps, clock }, { target, secret: null, allowPrivateAddress: true }, message())
    await until(() => hook.got.length === 1)
    await clock.advance('10s')
    expect(await sent).toBe('No answer within 10 seconds.')
  })

  test('to a server that does not listen have failed', async () => {
    const hook = httpReceiver()
    await hook.stop()
    expect(await send(toTarget('webhook', { url: hook.url }))).toStartWith('The connection failed')
  })
})

describe('addresses', () => {
  test.each([
    'http://169.254.169.254/latest/meta-data',
    'http://[fd00:ec2::254]/',
    'http://metadata.google.internal/',
    'http://meta.test/',
    'http://[::ffff:169.254.169.254]/',
    'http://[64:ff9b::169.254.169.254]/',
    'http://mapped.test/',
    'http://2852039166/',
  ])('the metadata address %s is never called, whatever is ticked', async (url) => {
    for (const isPrivate of [true, false])
      expect(await send(toTarget('webhook', { url }), { isPrivate })).toContain('is not allowed')
  })

  test.each([
    'http://127.0.0.1:9/',
    'http://localhost.:9/',
    'http://[::1]:9/',
    'http://0.0.0.0:9/',
    'http://inside.test/',
    'http://mixed.test/',
    'http://100.64.0.1/',
    'http://[fc00::1]/',
    'http://[::ffff:192.168.0.1]/',
    'http://[64:ff9b::10.0.0.1]/',
  ])('%s is private, so it is called only if that is ticked', async (url) => {
    names.set('localhost.', ['127.0.0.1'])
    const target = toTarget('webhook', { url })
    expect(await problemOfTarget(deps, target, false)).toContain('private network')
    expect(await problemOfTarget(deps, target, true)).toBeNull()
    expect(await send(target, { isPrivate: false })).toContain('private network')
  })

  test('a public address is allowed', async () => {
    expect(await problemOfTarget(deps, toTarget('webhook', { url: 'http://public.test/' }), false)).toBeNull()
  })

  test('the rules are the same for mail servers', async () => {
    const mail = { from: 'a@example.com', to: ['b@example.com'] }
    for (const host of ['169.254.169.254', 'meta.test', 'mapped.test', '[fd00:ec2::254]'])
      expect(await send(toTarget('smtp', { ...mail, host }))).toContain('is not allowed')
    for (const host of ['127.0.0.1', '::1', 'inside.test'])
      expect(await send(toTarget('smtp', { ...mail, host }), { isPrivate: false })).toContain('private network')
  })

  test('calls go through the proxy of the environment', async () => {
    const proxy = keep(httpReceiver())
    const through = { ...deps, guardedFetch: guarded({ http_proxy: proxy.url }) }
    const target = toTarget('webhook', { url: 'http://public.test/hook' })
    expect(await sendAlert(through, { target, secret: null, allowPrivateAddress: false }, message())).toBeNull()
    expect(proxy.got.map(({ path, headers }) => [path, headers.get('host')])).toEqual([['/hook', 'public.test']])
  })
})

describe('ntfy', () => {
  test('gets title, priority, tags and the link', async () => {
    const ntfy = keep(ntfyReceiver('tk_1'))
    const target = toTarget('ntfy', { url: `${ntfy.url}/my-topic` })
    expect(await send(target, { secret: 'tk_1' })).toBeNull()
    expect(ntfy.pushes[0]).toEqual({
      topic: 'my-topic',
      title: 'Account needs sign-in',
      message: 'a***@example.com needs sign-in. <Ünïcode>',
      priority: 5,
      tags: ['rotating_light'],
      click: 'https://sluice.example/accounts/acc_1',
    })
    expect(await send(target, { secret: 'wrong' })).toContain('403')
  })

  test('gets a priority for each severity, and a low one for the end', async () => {
    const ntfy = keep(ntfyReceiver())
    const target = toTarget('ntfy', { url: `${ntfy.url}/t/` })
    const severities: Severity[] = ['info', 'warning', 'bad']
    for (const severity of severities) await send(target, { sent: message({ severity, url: null }) })
    await send(target, { sent: message({ edge: 'recovered' }) })
    expect(ntfy.pushes.map(({ priority }) => priority)).toEqual([3, 4, 5, 2])
    expect(ntfy.pushes[0]).not.toHaveProperty('click')
  })
})

describe('mail', () => {
  const mail = { from: 'sluice@example.com', to: 'anna@example.com, bert@example.com' }
  const login = { user: 'anna', password: 'letter' }

  test('is plain text, to every recipient', async () => {
    const server = keep(await mailReceiver())
    const target = toTarget('smtp', { ...mail, host: '127.0.0.1', port: server.port, tls: 'none' })
    expect(await send(target)).toBeNull()
    const [got] = server.mails
    expect(got).toMatchObject({ from: 'sluice@example.com', to: ['anna@example.com', 'bert@example.com'], user: null })
    expect(got?.text).toContain('Subject: [sluice.example] Account needs sign-in')
    expect(got?.text).toContain('Content-Type: text/plain; charset=utf-8')
    expect(got?.text).toContain('Message-ID: <ald_1.raised@sluice>')
  })

  test('cannot be given more headers by a name', async () => {
    const server = keep(await mailReceiver())
    const target = toTarget('smtp', { ...mail, host: '127.0.0.1', port: server.port, tls: 'none' })
    await send(target, { sent: message({ title: 'Key x\r\nBcc: eve@example.com\r\n\r\nhello' }) })
    expect(server.mails[0]?.to).toEqual(['anna@example.com', 'bert@example.com'])
    expect(server.mails[0]?.text.split('\r\n\r\n')[0]).not.toMatch(/^Bcc:/m)
  })

  test.each([
    ['implicit', { secure: true }],
    ['starttls', {}],
  ] as const)(
    'with %s TLS, an untrusted certificate ends the connection before the password is sent',
    async (tls, how) => {
      const server = keep(await mailReceiver({ ...certificate, ...how }))
      const target = toTarget('smtp', { ...mail, ...login, host: '127.0.0.1', port: server.port, tls })
      expect(await send(target)).toMatch(/^The connection failed \((ESOCKET|ETLS)\)/)
      expect([server.logins, server.mails]).toEqual([[], []])
    },
  )

  test('a server without STARTTLS gets no password if STARTTLS was chosen', async () => {
    const server = keep(await mailReceiver({ hideSTARTTLS: true, allowInsecureAuth: true }))
    const target = toTarget('smtp', { ...mail, ...login, host: '127.0.0.1', port: server.port, tls: 'starttls' })
    expect(await send(target)).not.toBeNull()
    expect([server.logins, server.mails]).toEqual([[], []])
  })

  test.each([
    ['none', ''],
    ['none', '220 mail.test ESMTP\r\n'],
    ['starttls', '220 mail.test ESMTP\r\n'],
    ['implicit', ''],
  ] as const)(
    'a server that stops answering is given ten seconds, and its connection is closed: %s, %j',
    async (tls, said) => {
      const clock = new ManualClock()
      const silent = keep(await silentServer(said))
      const target = toTarget('smtp', { ...mail, host: '127.0.0.1', port: silent.port, tls })
      const sent = sendAlert({ ...deps, clock }, { target, secret: null, allowPrivateAddress: true }, message())
      await until(async () => (await silent.connections()) === 1)
      await clock.advance('10s')
      expect(await sent).toBe('No answer within 10 seconds.')
      await until(async () => (await silent.connections()) === 0)
    },
  )

  test('a rejected login is reported, without the words of the server', async () => {
    const server = keep(await mailReceiver({ allowInsecureAuth: true }))
    const wrong = { user: 'anna', password: 'wrong' }
    const target = toTarget('smtp', { ...mail, ...wrong, host: '127.0.0.1', port: server.port, tls: 'none' })
    expect(await send(target)).toBe('The mail server rejected the user name or password (535).')
    expect([server.logins, server.mails]).toEqual([['anna'], []])
  })
})

describe('chats and push services', () => {
  test('Discord gets an embed that mentions no one', async () => {
    const chat = keep(httpReceiver(() => new Response(null, { status: 204 })))
    expect(await send(toTarget('discord', { url: `${chat.url}/api/webhooks/1/x` }))).toBeNull()
    expect(JSON.parse(chat.got[0]!.body)).toMatchObject({
      allowed_mentions: { parse: [] },
      embeds: [{ title: 'Account needs sign-in', url: 'https://sluice.example/accounts/acc_1' }],
    })
  })

  test('Slack gets escaped text', async () => {
    const chat = keep(httpReceiver())
    await send(toTarget('slack', { url: `${chat.url}/services/x` }), { sent: message({ text: '<!channel> a & b' }) })
    expect(JSON.parse(chat.got[0]!.body).text).toBe(
      '*Account needs sign-in*\n&lt;!channel&gt; a &amp; b\n<https://sluice.example/accounts/acc_1|Open Sluice>',
    )
  })

  test('Telegram gets plain text for the chat', async () => {
    const chat = keep(httpReceiver())
    const target = toTarget('telegram', { url: chat.url, chatId: '-100123' })
    await send(target, { secret: '12:AA', sent: message({ text: 'x'.repeat(9000) }) })
    expect(chat.got[0]?.path).toBe('/bot12%3AAA/sendMessage')
    const { chat_id, text } = JSON.parse(chat.got[0]!.body)
    expect([chat_id, text.length]).toEqual(['-100123', 4096])
  })

  test('Gotify gets its token in a header', async () => {
    const chat = keep(httpReceiver())
    await send(toTarget('gotify', { url: `${chat.url}/gotify/` }), { secret: 'AbC' })
    expect([chat.got[0]?.path, chat.got[0]?.headers.get('x-gotify-key')]).toEqual(['/gotify/message', 'AbC'])
    expect(JSON.parse(chat.got[0]!.body)).toMatchObject({ title: 'Account needs sign-in', priority: 9 })
  })

  test('Uptime Kuma gets its state in the push URL', async () => {
    const kuma = keep(httpReceiver(() => Response.json({ ok: true })))
    const url = `${kuma.url}/api/push/abc?status=up&msg=OK&ping=`
    const target = toTarget('uptime_kuma', { url })
    if (target.kind !== 'uptime_kuma') throw new Error('another kind')
    const recipient = { target, secret: null, allowPrivateAddress: true }
    await sendHeartbeat(deps, recipient, { isUp: false, text: 'Two things & more' })
    await sendHeartbeat(deps, recipient, { isUp: true, text: 'OK' })
    expect(kuma.got.map(({ path }) => path)).toEqual([
      '/api/push/abc?status=down&msg=Two+things+%26+more',
      '/api/push/abc?status=up&msg=OK',
    ])
  })
})

describe('targets', () => {
  test.each([
    ['webhook', { url: 'ftp://example.com' }],
    ['webhook', { url: 'https://user:pass@example.com' }],
    ['webhook', {}],
    ['ntfy', { url: 'https://ntfy.sh' }],
    ['ntfy', { url: 'https://ntfy.sh/a b' }],
    ['smtp', { host: 'x.test', from: 'a@b.c', to: [] }],
    ['smtp', { host: 'x.test', from: 'a@b.c\r\nRCPT', to: ['a@b.c'] }],
    ['smtp', { host: 'x test', from: 'a@b.c', to: ['a@b.c'] }],
    ['telegram', { url: 'https://api.telegram.org' }],
  ] as const)('%s %j is not valid', (kind, given) => {
    expect(() => toTarget(kind, given)).toThrow()
  })
})
