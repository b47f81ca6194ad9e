/** The event stream of the dashboard: permissions, topics, frequency, and when it ends. */
import { describe, expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { sessions } from '../../db/schema/people.ts'
import { LIVE_TOPICS } from '../../src/live.ts'
import { endSessionsOf } from '../../src/model/users/sessions.ts'
import { type Ask, codexBody, getAnswer, type TestApp, testApp } from '../support/app.ts'
import { type Browser, people, problem, REMOTE } from '../support/people.ts'

interface Told {
  event: string
  id: string | null
  data: string
}

/** Listens as `browser`; `told` grows as messages arrive, and `isOver` is set when the server closed the stream. */
const listen = async (browser: Pick<Browser, 'ask'>, headers: Record<string, string> = {}, query = '') => {
  const response = await browser.ask(`GET /api/events${query}`, { headers })
  expect(response.status).toBe(200)
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  const self = { response, told: [] as Told[], text: '', isOver: false, leave: () => reader.cancel() }
  void (async () => {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      self.text += value
      self.told = self.text.split('\n\n').filter(Boolean).map(parse)
    }
    self.isOver = true
  })()
  return self
}

const parse = (block: string): Told => {
  const field = (name: string) =>
    block
      .split('\n')
      .find((line) => line.startsWith(`${name}: `))
      ?.slice(name.length + 2)
  return { event: field('event') ?? '', id: field('id') ?? null, data: field('data') ?? '' }
}

const getTopics = ({ told }: { told: Told[] }): string[] =>
  told.filter(({ event }) => event === 'changed').map(({ data }) => data)

const pause = (app: TestApp, index = 0) => app.ask(`POST /api/accounts/${app.members[index]?.id}/pause`)

describe('permissions for the live stream', () => {
  test('rejects clients that are not signed in', async () => {
    const app = await testApp()
    await people(app).add({ role: 'admin' })
    expect(await problem(await app.ask('GET /api/events', { peer: REMOTE }))).toEqual([401, 'authentication_required'])
  })

  test('accepts all others, with only the topics they can see', async () => {
    const app = await testApp()
    const { as } = people(app)
    const streams = Object.fromEntries(
      await Promise.all(
        ['admin', 'viewer', 'member'].map(async (role) => [role, await listen(await as(role))] as const),
      ),
    )
    for (const topic of LIVE_TOPICS) app.bindings.live.note(topic)
    await app.clock.advance('5s')
    const told = (role: string) => new Set(getTopics(streams[role]!).flatMap((topics) => topics.split(' ')))
    expect(told('admin')).toEqual(new Set(LIVE_TOPICS))
    expect(told('viewer')).toEqual(
      new Set(['accounts', 'usage', 'settings', 'logs', 'minute', 'health', 'automations', 'alerts']),
    )
    expect(told('member')).toEqual(new Set(['settings', 'minute']))
    for (const stream of Object.values(streams)) await stream.leave()
  })

  test('reports only changes of their own keys and requests to a member, without counts', async () => {
    const app = await testApp()
    const { as } = people(app)
    const mia = await as('member')
    const own = await app.key({ name: 'own', ownerUserId: mia.person.row.id })
    const keys = [
      await app.key({ name: 'others', ownerUserId: (await as('member')).person.row.id }),
      await app.key({ name: 'ownerless', ownerUserId: null }),
    ]
    const stream = await listen(mia)
    const turn = async ({ key }: { key: string }) => {
      await getAnswer(app, 'POST /backend-api/codex/responses', {
        json: codexBody(),
        headers: { authorization: `Bearer ${key}` },
      })
      await app.clock.advance('3s')
    }
    const rename = async ({ row }: { row: { id: string } }) => {
      await (await as('admin')).ask(`PATCH /api/api-keys/${row.id}`, { json: { name: 'renamed' } })
      await app.clock.advance('3s')
    }
    for (const key of keys) {
      await turn(key)
      await rename(key)
    }
    expect(getTopics(stream).filter((topics) => topics !== 'minute')).toEqual([])
    await turn(own)
    await rename(own)
    const told = getTopics(stream).flatMap((topics) => topics.split(' '))
    expect(new Set(told)).toEqual(new Set(['logs', 'keys']))
    expect(new Set(stream.told.flatMap(({ id }) => id ?? []))).toEqual(new Set(['own']))
    await stream.leave()
  })

  test('allows eight streams per address, without affecting other users', async () => {
    const app = await testApp()
    const { as } = people(app)
    const [ada, grace] = [await as('admin'), await as('admin')]
    const streams = await Promise.all(Array.from({ length: 8 }, () => listen(ada)))
    expect(await problem(await ada.ask('GET /api/events'))).toEqual([503, 'busy'])
    streams.push(await listen(grace), await listen({ ask: (route, ask) => ada.ask(route, { ...ask, peer: REMOTE }) }))
    await streams.shift()?.leave()
    streams.push(await listen(ada))
    for (const stream of streams) await stream.leave()
    await app.clock.advance(0)
    expect(app.clock.pending).toBe(0)
  })

  test('allows 64 guests from any addresses, and users in addition', async () => {
    const app = await testApp()
    await people(app).add({ role: 'admin' })
    const guest = (n: number) => people(app).guest(`192.0.2.${n % 32}`)
    const streams = await Promise.all(Array.from({ length: 64 }, async (_, n) => listen(await guest(n))))
    expect(await problem(await (await guest(99)).ask('GET /api/events'))).toEqual([503, 'busy'])
    streams.push(await listen(await people(app).as('viewer')))
    for (const stream of streams) await stream.leave()
    expect(app.clock.pending).toBe(0)
  })

  test('allows 64 streams per user, so that a user with many addresses cannot use up all', async () => {
    const app = await testApp()
    const { as } = people(app)
    const viewer = await as('viewer')
    const from = (n: number) => ({
      ask: (route: string, ask?: Ask) => viewer.ask(route, { ...ask, peer: `2001:db8::${n}` }),
    })
    const streams = await Promise.all(Array.from({ length: 64 }, (_, n) => listen(from(n))))
    expect(await problem(await from(99).ask('GET /api/events'))).toEqual([503, 'busy'])
    streams.push(await listen(await as('viewer')))
    for (const stream of streams) await stream.leave()
    expect(app.clock.pending).toBe(0)
  })

  test('a HEAD request leaves nothing open', async () => {
    const app = await testApp()
    for (let n = 0; n < 20; n++) expect((await app.ask('HEAD /api/events')).status).toBe(200)
    expect(app.clock.pending).toBe(0)
    await (await listen(app)).leave()
  })
})

describe('the messages', () => {
  test('name a topic but not what changed', async () => {
    const app = await testApp({ accounts: 2 })
    const stream = await listen(app)
    await pause(app)
    await app.clock.advance('1s')
    expect(getTopics(stream)).toEqual(['accounts'])
    expect(stream.text.replaceAll(/id: \S+\n/g, '')).toBe(
      'retry: 2000\nevent: hello\ndata: \n\nevent: changed\ndata: accounts\n\n',
    )
    await stream.leave()
  })

  test('the first event comes immediately, uncompressed and unbuffered', async () => {
    const app = await testApp()
    const stream = await listen(app, { 'accept-encoding': 'gzip' })
    await app.clock.advance(0)
    expect(stream.told.map(({ event }) => event)).toEqual(['hello'])
    const { headers } = stream.response
    expect([headers.get('x-accel-buffering'), headers.get('cache-control'), headers.get('content-encoding')]).toEqual([
      'no',
      'no-store, no-transform',
      null,
    ])
    await stream.leave()
  })

  test('many changes within a second are one message', async () => {
    const app = await testApp({ accounts: 6 })
    const stream = await listen(app)
    for (let index = 0; index < 5; index++) await pause(app, index)
    await app.key()
    await app.clock.advance('1s')
    expect(getTopics(stream)).toEqual(['accounts keys'])
    await app.clock.advance('3s')
    expect(getTopics(stream)).toHaveLength(1)
    await stream.leave()
  })

  test('an ended request is announced, account numbers every five seconds, a minute when it is complete', async () => {
    const app = await testApp()
    const stream = await listen(app)
    await getAnswer(app, 'POST /backend-api/codex/responses', { json: codexBody() })
    await app.bindings.ledger.flush()
    app.bindings.live.note('usage')
    await app.clock.advance('5s')
    expect(getTopics(stream).join(' ').split(' ').toSorted()).toEqual(['logs', 'usage'])
    await app.clock.advance('60s')
    expect(getTopics(stream)).toContain('minute')
    await stream.leave()
  })

  test('many requests in a second are announced every five seconds', async () => {
    const app = await testApp()
    const stream = await listen(app)
    const each = async (turns: number) => {
      for (let second = 0; second < 5; second++) {
        app.bindings.live.ended(turns)
        await app.clock.advance('1s')
      }
      return getTopics(stream).length
    }
    expect(await each(100)).toBe(5)
    expect(await each(101)).toBe(6)
    expect(await each(1)).toBe(11)
    app.bindings.live.ended(500)
    await stream.leave()
    const later = await listen(app)
    app.bindings.live.ended(1)
    await app.clock.advance('1s')
    expect(getTopics(later)).toEqual(['logs'])
    await later.leave()
  })

  test('announces that no account is available, and when one is again', async () => {
    const app = await testApp({ accounts: 2 })
    const stream = await listen(app)
    await pause(app, 0)
    await app.clock.advance('1s')
    await pause(app, 1)
    await app.clock.advance('1s')
    await app.ask(`POST /api/accounts/${app.members[0]?.id}/reactivate`)
    await app.clock.advance('1s')
    expect(getTopics(stream)).toEqual(['accounts', 'accounts health', 'accounts health'])
    await stream.leave()
  })

  test('readiness, when it changes', async () => {
    const app = await testApp()
    const stream = await listen(app)
    app.bindings.lifecycle.draining = true
    await app.clock.advance('1s')
    expect(getTopics(stream)).toEqual(['health'])
    await stream.leave()
  })

  test('announces when all requests fail, and the first success', async () => {
    const app = await testApp()
    const stream = await listen(app)
    const row = { kind: 'normal', status: 'error', errorMessage: 'It failed.' } as const
    for (let n = 0; n < 3; n++) app.bindings.ops.outage.count({ row, isServiceFault: true })
    await app.clock.advance('1s')
    expect(getTopics(stream)).toEqual(['health'])
    app.bindings.ops.outage.count({ row: { ...row, status: 'ok' }, isServiceFault: false })
    await app.clock.advance('1s')
    expect(getTopics(stream)).toEqual(['health', 'health'])
    await stream.leave()
  })

  test('a heartbeat every eight seconds', async () => {
    const app = await testApp()
    const stream = await listen(app)
    await app.clock.advance('24s')
    expect(stream.told.filter(({ event }) => event === 'beat')).toHaveLength(3)
    await stream.leave()
    expect(app.clock.pending).toBe(0)
  })

  test('after losing the stream, missed topics are sent, and all topics after a restart', async () => {
    const app = await testApp({ accounts: 2 })
    const stream = await listen(app)
    await app.clock.advance(0)
    const seen = stream.told[0]?.id ?? ''
    await stream.leave()
    await pause(app)
    const back = await listen(app, { 'last-event-id': seen })
    const later = await listen(app, { 'last-event-id': 'other.7' })
    await app.clock.advance(0)
    expect(back.told[0]).toMatchObject({ event: 'hello', data: 'accounts' })
    expect(later.told[0]?.data.split(' ')).toEqual([...LIVE_TOPICS])
    await back.leave()
    await later.leave()
  })
})

describe('a page', () => {
  const getPage = async (app: TestApp, path = '/keys') =>
    (await app.ask(`GET ${path}`, { headers: { accept: 'text/html' } })).text()
  const idOn = (html: string) => /<html[^>]* data-live-id="([^"]+)"/.exec(html)?.[1]
  /** The first message on the stream of a page created with `id`. */
  const missed = async (app: TestApp, id = '', headers = {}) => {
    const stream = await listen(app, headers, `?since=${id}`)
    await app.clock.advance(0)
    await stream.leave()
    return stream.told[0]?.data
  }

  test('the first stream announces changes since the page was rendered', async () => {
    const app = await testApp({ accounts: 2 })
    const id = idOn(await getPage(app))
    expect(await missed(app, id)).toBe('')
    await pause(app)
    expect(await missed(app, id)).toBe('accounts')
    expect(await missed(app, idOn(await getPage(app)))).toBe('')
  })

  test('including a new minute or changed readiness while there were no listeners', async () => {
    const app = await testApp()
    await (await listen(app)).leave()
    app.bindings.lifecycle.draining = true
    const id = idOn(await getPage(app))
    app.bindings.lifecycle.draining = false
    await app.clock.advance('60s')
    expect(await missed(app, id)).toBe('minute health')
  })

  test('a page of an earlier process gets all topics; after an interruption the last message decides', async () => {
    const app = await testApp()
    const id = idOn(await getPage(app))
    await pause(app)
    expect((await missed(app, 'other.7'))?.split(' ')).toEqual([...LIVE_TOPICS])
    expect(await missed(app, id, { 'last-event-id': idOn(await getPage(app)) ?? '' })).toBe('')
  })

  test('the sign-in page gets no stream', async () => {
    expect(idOn(await getPage(await testApp(), '/setup'))).toBeUndefined()
  })
})

describe('the end of a stream', () => {
  test('ends immediately with its session, and not for others', async () => {
    const app = await testApp()
    const { as } = people(app)
    const [ada, grace] = [await as('admin'), await as('viewer')]
    const [hers, other] = [await listen(ada), await listen(grace)]
    await commit(app.db, (tx) => endSessionsOf(tx, ada.person.row.id))
    await app.clock.advance(0)
    expect([hers.isOver, other.isOver]).toEqual([true, false])
    expect(hers.told.at(-1)?.event).toBe('bye')
    await other.leave()
  })

  test('ends immediately when the user is disabled', async () => {
    const app = await testApp()
    const { as } = people(app)
    const admin = await as('admin')
    const viewer = await as('viewer')
    const stream = await listen(viewer)
    const answer = await admin.ask(`PATCH /api/dashboard-users/${viewer.person.row.id}`, {
      json: { status: 'disabled' },
    })
    expect(answer.status).toBe(200)
    await app.clock.advance(0)
    expect(stream.isOver).toBe(true)
  })

  test('with the next heartbeat when the session has expired', async () => {
    const app = await testApp()
    const stream = await listen(await people(app).as('viewer'))
    const soon = app.clock.now() + 10_000
    await commit(app.db, async (tx) => void (await tx.update(sessions).set({ expiresAt: soon }).run()))
    await app.clock.advance('9s')
    expect(stream.isOver).toBe(false)
    await app.clock.advance('8s')
    expect(stream.isOver).toBe(true)
    expect(app.clock.pending).toBe(0)
  })

  test('ends for guests when guest access is turned off', async () => {
    const app = await testApp()
    await people(app).add({ role: 'admin' })
    const stream = await listen(await people(app).guest(REMOTE))
    await app.change({ guestAccessEnabled: false })
    await app.bindings.settings.reload()
    app.bindings.live.committed(new Set(['settings']))
    await app.clock.advance(0)
    expect(stream.isOver).toBe(true)
  })

  test('topics stop when the permission is lost', async () => {
    const app = await testApp()
    const { as, addRole } = people(app)
    await addRole('auditor', { 'dashboard:read': 'all' })
    const admin = await as('admin')
    const somebody = await as('viewer')
    const stream = await listen(somebody)
    const answer = await admin.ask(`PATCH /api/dashboard-users/${somebody.person.row.id}`, {
      json: { role: 'auditor' },
    })
    expect(answer.status).toBe(200)
    await pause(app)
    await app.clock.advance('1s')
    expect(getTopics(stream).join(' ')).not.toContain('accounts')
    await stream.leave()
  })
})
