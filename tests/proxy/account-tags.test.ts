/** Tags and the order of accounts: which accounts a key can use, what the list shows, and which is used first. */
import { describe, expect, test } from 'bun:test'
import { keyScope } from '../../src/model/keys/key-scope.ts'
import { select } from '../../src/proxy/pool/select.ts'
import { codexBody, getAnswer, testApp } from '../support/app.ts'
import { getFields } from '../support/form.ts'
import { people } from '../support/people.ts'
import { aContext, anAccount, needs, used } from './candidates.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const html = { headers: { accept: 'text/html' } }

const open = async (accounts = 3) => {
  const app = await testApp({ accounts })
  const [first = '', second = '', third = ''] = app.members.map(({ id }) => id)
  const users = people(app)
  const admin = await users.as('admin')
  const patch = (id: string, json: object) => admin.ask(`PATCH /api/accounts/${id}`, { json })
  const listed = async () =>
    (await (await admin.ask('GET /api/accounts')).json()).accounts as {
      tags: string[]
      position: number | null
      accountId: string
    }[] // as: the members tested here
  return { app, first, second, third, admin, patch, listed, ...users }
}

describe('the scope of a key', () => {
  const pool = [anAccount('a', { tags: ['red'] }), anAccount('b', { tags: ['blue', 'green'] }), anAccount('c')]
  test.each([
    ['no list', null, null, ['a', 'b', 'c']],
    ['tags alone: any of them', null, ['green', 'red'], ['a', 'b']],
    ['accounts alone', ['c'], null, ['c']],
    ['tags beside accounts', ['c'], ['red'], ['a', 'c']],
    ['a tag of no account', null, ['gone'], []],
    ['an empty list', [], null, []],
  ])('%s', (_, ids, tags, expected) => {
    const { considered } = select(pool, needs({ scope: keyScope(ids, tags) }), aContext())
    const inScope = considered.filter(({ skipped }) => skipped !== 'out_of_scope').map(({ id }) => id)
    expect(inScope).toEqual(expected)
  })

  test('follows the tags of the accounts, in requests and in the simulator', async () => {
    const { app, admin, second, third, patch } = await open()
    const { key, row } = await app.key({ assignedTags: ['team'] })
    const headers = { authorization: `Bearer ${key}` }
    const serving = async () => {
      const { status } = await getAnswer(app, NATIVE, { json: codexBody(), headers })
      const explained = (await (await admin.ask(`GET /api/explain?key=${row.id}`)).json()) as {
        chosen: { accountId: string } | null
      }
      return [status, (await app.rows()).at(-1)?.accountId ?? null, explained.chosen?.accountId ?? null]
    }
    expect(await serving()).toEqual([400, null, null])
    for (const id of [second, third]) {
      await patch(id, { tags: ['team', 'x'] })
      expect(await serving()).toEqual([200, id, id])
      await patch(id, { tags: ['x'] })
    }
  })

  test('also bounds the usage and the reset credits that the key sees', async () => {
    const { app, first, patch } = await open()
    await patch(first, { tags: ['team'] })
    const headers = { authorization: `Bearer ${(await app.key({ assignedTags: ['team'] })).key}` }
    for (const { sim } of app.members) sim.setResetCredits([{ id: 'credit', expiresAt: null, grantedAt: 0 }])
    for (const { id } of app.members)
      app.bindings.resetCredits.set(id, [{ id: 'credit', status: 'available', expiresAt: null }])
    const credits = (await (await app.ask('GET /v1/reset-credit', { headers })).json()) as { account_id: string }[]
    expect(credits.map(({ account_id }) => account_id)).toEqual([first])
  })

  test('the form of a key sets tags, keeps them, and clears them', async () => {
    const { app, first, admin, patch } = await open()
    await patch(first, { tags: ['team', 'other'] })
    const { row } = await app.key()
    const save = async (change: (fields: [string, string][]) => [string, string][]) => {
      const page = await (await admin.ask(`GET /keys/${row.id}/edit`, html)).text()
      const body = new URLSearchParams(change(getFields(page, 'form-key'))).toString()
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      expect((await admin.ask(`PATCH /api/api-keys/${row.id}`, { body, headers })).status).toBe(200)
      const [{ assignedTags, assignedAccountIds }] = (await (await admin.ask('GET /api/api-keys')).json()) as [
        { assignedTags: string[] | null; assignedAccountIds: string[] | null },
      ]
      return [assignedTags, assignedAccountIds]
    }
    expect(await save((fields) => [...fields, ['accountScope', 'chosen'], ['assignedTags', 'team']])).toEqual([
      ['team'],
      null,
    ])
    expect(await save((fields) => fields)).toEqual([['team'], null])
    expect(await (await admin.ask(`GET /keys/${row.id}`, html)).text()).toContain('tagged team')
    expect(await save((fields) => [...fields, ['accountScope', 'all']])).toEqual([null, null])
  })
})

describe('tags of an account', () => {
  test('are sorted, distinct, and separated by commas', async () => {
    const { first, patch, listed } = await open(1)
    await patch(first, { tags: [' b ', 'a, c ,', 'b'] })
    expect((await listed())[0]?.tags).toEqual(['a', 'b', 'c'])
    await patch(first, { alias: 'kept' })
    expect((await listed())[0]?.tags).toEqual(['a', 'b', 'c'])
    await patch(first, { tags: [] })
    expect((await listed())[0]?.tags).toEqual([])
  })

  test.each([
    ['41 characters', ['x'.repeat(41)]],
    ['no character', ['']],
    ['blanks', ['  ']],
    ['a control character', ['a\nb']],
    ['21 tags', Array.from({ length: 21 }, (_, n) => `t${n}`)],
    ['21 tags in one text', [Array.from({ length: 21 }, (_, n) => `t${n}`).join(',')]],
  ])('%s: rejected', async (_, tags) => {
    const { first, patch } = await open(1)
    expect((await patch(first, { tags })).status).toBe(422)
  })

  test('40 characters and 20 tags are accepted', async () => {
    const { first, patch, listed } = await open(1)
    const tags = Array.from({ length: 20 }, (_, n) => `${n}`.padStart(40, '0'))
    expect((await patch(first, { tags })).status).toBe(200)
    expect((await listed())[0]?.tags).toEqual(tags)
  })

  test('are a field of the form, a filter of the list, and gone with the account', async () => {
    const { app, first, second, admin, patch } = await open()
    const page = await (await admin.ask(`GET /accounts/${first}?tab=routing`, html)).text()
    const fields = { ...Object.fromEntries(getFields(page, 'form-routing')), tags: 'team, north' }
    expect((await admin.send('form', `PATCH /api/accounts/${first}`, fields)).status).toBe(303)
    await patch(second, { tags: ['south'] })
    const found = async (tag: string) => {
      const response = await admin.ask(`GET /accounts?tag=${tag}`, { headers: { accept: 'application/json' } })
      return ((await response.json()) as { accounts: { accountId: string }[] }).accounts.map(
        ({ accountId }) => accountId,
      )
    }
    expect(await found('north')).toEqual([first])
    expect(await found('nowhere')).toEqual([])
    expect(await (await admin.ask('GET /accounts', html)).text()).toContain('<option value="south"')
    await admin.ask(`DELETE /api/accounts/${first}`)
    expect(await found('north')).toEqual([])
    expect(app.sqlite.query('SELECT count(*) FROM account_tags').values()).toEqual([[1]])
  })

  test('are added to several accounts and removed from them', async () => {
    const { first, second, admin, patch, listed } = await open()
    await patch(second, { tags: ['b'] })
    const change = (more: object) =>
      admin.ask('POST /api/accounts/tags', { json: { accountIds: [first, second], ...more } })
    expect((await change({ add: ['a'] })).status).toBe(200)
    expect((await listed()).map(({ tags }) => tags)).toEqual([['a'], ['a', 'b'], []])
    expect((await change({ remove: ['a', 'zzz'] })).status).toBe(200)
    expect((await listed()).map(({ tags }) => tags)).toEqual([[], ['b'], []])
    const many = Array.from({ length: 20 }, (_, n) => `t${n}`)
    expect(await (await change({ add: many })).json()).toMatchObject({
      changed: [first],
      refused: [{ accountId: second, code: 'validation_error' }],
    })
  })

  test('are hidden from users who do not manage accounts, also as a filter', async () => {
    const { first, as, patch } = await open()
    await patch(first, { tags: ['secret-tag'] })
    const viewer = await as('viewer')
    expect(await (await viewer.ask('GET /api/accounts')).text()).not.toContain('secret-tag')
    expect(await (await viewer.ask(`GET /accounts/${first}?tab=routing`, html)).text()).not.toContain('secret-tag')
    const response = await viewer.ask('GET /accounts?tag=secret-tag', { headers: { accept: 'application/json' } })
    expect(await response.json()).toMatchObject({ found: 0 })
    expect((await viewer.ask('POST /api/accounts/tags', { json: { accountIds: [first], add: ['x'] } })).status).toBe(
      403,
    )
  })
})

describe('the order', () => {
  test.each(['fill_first', 'sequential_drain'] as const)('%s uses accounts by position', (strategy) => {
    const pool = [
      anAccount('a', { planType: 'free', usage: used(90, 90) }),
      anAccount('b', { position: 2 }),
      anAccount('c', { planType: 'pro', position: 1 }),
    ]
    const { considered } = select(pool, needs(), aContext({ strategy }))
    expect(considered.every(({ skipped }) => skipped === null)).toBe(true)
    const first = select(pool, needs(), aContext({ strategy }))
    expect(first).toMatchObject({ kind: 'chosen', id: 'c' })
    expect(select(pool.slice(0, 2), needs(), aContext({ strategy }))).toMatchObject({ id: 'b' })
  })

  test('other strategies do not, and a used-up account still comes last', () => {
    const pool = [anAccount('a', { usage: used(100, 100), position: 1 }), anAccount('b', { usage: used(1, 1) })]
    expect(select(pool, needs(), aContext({ strategy: 'fill_first' }))).toMatchObject({ id: 'b' })
    const pair = [anAccount('a', { usage: used(50, 50), position: 1 }), anAccount('b', { usage: used(1, 1) })]
    expect(select(pair, needs(), aContext({ strategy: 'usage_weighted' }))).toMatchObject({ id: 'b' })
  })

  test('moving one account renumbers all, and the buttons move it by one', async () => {
    const { app, first, second, third, admin, patch, listed } = await open()
    const positions = async () => (await listed()).map(({ position }) => position)
    expect(await positions()).toEqual([null, null, null])
    await patch(third, { position: 1 })
    expect(await positions()).toEqual([2, 3, 1])
    expect(app.bindings.pool.get(third)?.position).toBe(1)
    await patch(first, { position: 99 })
    expect(await positions()).toEqual([3, 2, 1])
    const page = await (await admin.ask(`GET /accounts/${second}?tab=routing`, html)).text()
    expect(page).toContain('2 of 3')
    const up = Object.fromEntries(getFields(page, 'form-move-up'))
    expect(up).toEqual({ position: '1' })
    expect(Object.fromEntries(getFields(page, 'form-move-down'))).toEqual({ position: '3' })
    await admin.send('form', `PATCH /api/accounts/${second}`, up)
    expect(await positions()).toEqual([3, 1, 2])
    await patch(second, { position: null })
    expect(await positions()).toEqual([2, null, 1])
  })

  test.each(['taken out', 'deleted'])('an account that is %s leaves no gap, so every button moves', async (how) => {
    const { first, second, third, admin, patch, listed } = await open()
    await patch(first, { position: 1 })
    if (how === 'deleted') await admin.ask(`DELETE /api/accounts/${first}`)
    else await patch(first, { position: null })
    const placed = async () => (await listed()).flatMap(({ position }) => position ?? [])
    expect(await placed()).toEqual([1, 2])
    const page = await (await admin.ask(`GET /accounts/${second}?tab=routing`, html)).text()
    await admin.send('form', `PATCH /api/accounts/${second}`, Object.fromEntries(getFields(page, 'form-move-down')))
    const all = await listed()
    const getPosition = (id: string) => all.find(({ accountId }) => accountId === id)?.position
    expect([getPosition(second), getPosition(third)]).toEqual([2, 1])
  })

  test.each([0, -1, 1.5, 'first'])('the position %p is rejected', async (position) => {
    const { first, patch } = await open(1)
    expect((await patch(first, { position })).status).toBe(422)
  })
})
