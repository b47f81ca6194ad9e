/** A presented key applies whether or not keys are required: attribution, limits, allowlist, enforced values. */
import { describe, expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { apiKeys } from '../../db/schema/keys.ts'
import { users } from '../../db/schema/people.ts'
import { updateKey } from '../../src/model/keys/api-keys.ts'
import type { NewKey } from '../../src/model/keys/key-input.ts'
import { codexBody, getAnswer, type TestApp, type TestOptions, testApp } from '../support/app.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const PUBLIC = 'POST /v1/responses'
const CHAT = 'POST /v1/chat/completions'
const COMPACT = 'POST /v1/responses/compact'

const TURNS: [route: string, json: Record<string, unknown>][] = [
  [NATIVE, codexBody()],
  [PUBLIC, { model: 'gpt-5.5', input: 'hello' }],
  [CHAT, { model: 'gpt-5.5', messages: [{ role: 'user', content: 'hello' }] }],
  [COMPACT, { model: 'gpt-5.5', input: 'hello' }],
]

/** Keys are optional here, which is the default. */
const withKey = async (input: Partial<NewKey> = {}, options: TestOptions = {}) => {
  const app = await testApp(options)
  const { key, row } = await app.key(input)
  return { app, id: row.id, headers: { authorization: `Bearer ${key}` } }
}

const lastUsedAt = async ({ db }: TestApp) => (await db.select().from(apiKeys).all())[0]?.lastUsedAt

describe('while keys are optional', () => {
  test.each(TURNS)('%s: a valid key is recorded and has a "last used"', async (route, json) => {
    const { app, id, headers } = await withKey()
    expect((await getAnswer(app, route, { json, headers })).status).toBe(200)
    expect(await app.rows()).toMatchObject([{ keyId: id, unrecognizedKey: false }])
    expect(await lastUsedAt(app)).not.toBeNull()
  })

  test.each(TURNS)('%s: its limit applies', async (route, json) => {
    const limits = [{ limitType: 'requests' as const, limitWindow: 'daily' as const, maxValue: 2, modelFilter: '' }]
    const { app, headers } = await withKey({ limits })
    const statuses: number[] = []
    for (let turn = 0; turn < 4; turn++) statuses.push((await getAnswer(app, route, { json, headers })).status)
    expect(statuses).toEqual([200, 200, 429, 429])
  })

  test.each(TURNS)('%s: its allowlist applies', async (route, json) => {
    const { app, headers } = await withKey({ allowedModels: ['other'] })
    expect((await getAnswer(app, route, { json, headers })).status).toBe(route === NATIVE ? 404 : 403)
    expect(app.upstream.requests).toEqual([])
  })

  test('its enforced values reach the upstream', async () => {
    const { app, headers } = await withKey({ enforcedReasoningEffort: 'high', enforcedModel: 'gpt-5.4' })
    for (const [route, json] of TURNS.slice(0, 3)) await getAnswer(app, route, { json, headers })
    for (const { body } of app.upstream.requests)
      expect(body).toMatchObject({ model: 'gpt-5.4', reasoning: { effort: 'high' } })
    expect(app.upstream.requests).toHaveLength(3)
  })

  test('its allowlist restricts the catalog', async () => {
    const { app, headers } = await withKey({ allowedModels: ['no-such-model'] })
    const all = await (await app.ask('GET /v1/models')).json()
    expect((all as { data: unknown[] }).data.length).toBeGreaterThan(0)
    const narrowed = await (await app.ask('GET /v1/models', { headers })).json()
    expect(narrowed).toMatchObject({ data: [] })
  })

  test('it also applies to a client in a range that needs no key', async () => {
    const environment = { CODEX_LB_PROXY_UNAUTHENTICATED_CLIENT_CIDRS: '203.0.113.0/24' }
    const { app, id, headers } = await withKey({}, { environment })
    const from = { json: codexBody(), peer: '203.0.113.9' }
    await getAnswer(app, NATIVE, { ...from, headers })
    await getAnswer(app, NATIVE, from)
    await getAnswer(app, NATIVE, { ...from, headers: { authorization: 'Bearer x' } })
    expect((await app.rows()).map(({ keyId, unrecognizedKey }) => [keyId, unrecognizedKey])).toEqual([
      [id, false],
      [null, false],
      [null, true],
    ])
  })

  test.each(['Bearer sk-anything', 'Bearer sk-clb-unknown', 'Basic a2V5', 'sk-clb-naked'])(
    '%p is served and logged as an unrecognized key',
    async (authorization) => {
      const app = await testApp()
      for (const [route, json] of TURNS)
        expect((await getAnswer(app, route, { json, headers: { authorization } })).status).toBe(200)
      expect((await app.rows()).map(({ keyId, unrecognizedKey }) => [keyId, unrecognizedKey])).toEqual(
        TURNS.map(() => [null, true]),
      )
      const logged = await (await app.ask('GET /api/request-logs')).json()
      expect(logged).toMatchObject({ requests: TURNS.map(() => ({ apiKeyId: null, unrecognizedKey: true })) })
      expect(await (await app.ask('GET /logs', { headers: { accept: 'text/html' } })).text()).toContain(
        'unrecognized key',
      )
    },
  )

  test.each([undefined, '', 'Bearer '])('no key (%p) is not an unrecognized one', async (authorization) => {
    const app = await testApp()
    const headers: Record<string, string> = authorization === undefined ? {} : { authorization }
    for (const [route, json] of TURNS) expect((await getAnswer(app, route, { json, headers })).status).toBe(200)
    expect((await app.rows()).map(({ unrecognizedKey }) => unrecognizedKey)).toEqual(TURNS.map(() => false))
  })
})

describe('a revoked key does not give open access while keys are optional', () => {
  const ways: [name: string, take: (app: TestApp, id: string) => Promise<unknown>][] = [
    ['switched off', (app, id) => change(app, id, { isActive: false })],
    ['expired', (app, id) => change(app, id, { expiresAt: 1 })],
    [
      'of a disabled owner',
      async (app, id) => {
        const owner = { id: 'usr_1', username: 'ann', roleId: 'role_admin', status: 'disabled' as const, createdAt: 0 }
        await commit(app.db, async (tx) => {
          await tx.insert(users).values(owner).run()
          await tx.update(apiKeys).set({ ownerUserId: owner.id }).run()
        })
        await app.bindings.keys.reload()
        expect(app.bindings.keys.byHash((await app.db.select().from(apiKeys).all())[0]!.keyHash)).toMatchObject({ id })
      },
    ],
  ]
  const change = async ({ db, bindings }: TestApp, id: string, patch: Parameters<typeof updateKey>[2]) =>
    void (await commit(db, (tx) =>
      updateKey(tx, id, patch, {
        actor: { id: 'test', method: null, address: null, at: 0 },
        random: bindings.random,
        scope: 'all',
      }),
    ))

  test.each(ways)('%s', async (_name, take) => {
    const { app, id, headers } = await withKey()
    await take(app, id)
    for (const [route, json] of [...TURNS, ['GET /v1/models', undefined] as const]) {
      const answer = await getAnswer(app, route, { json, headers })
      expect([route, answer.status, JSON.parse(answer.text).error.code]).toEqual([route, 401, 'invalid_api_key'])
    }
    expect(app.upstream.requests).toEqual([])
    expect((await getAnswer(app, NATIVE, { json: codexBody() })).status).toBe(200) // without a key
  })
})
