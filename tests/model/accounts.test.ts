/** Importing a known account: newer tokens replace older ones, never the reverse. */

import { expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { commit } from '../../db/commit.ts'
import { accounts } from '../../db/schema/accounts.ts'
import { accountEvents } from '../../db/schema/history.ts'
import { mapInOrder } from '../../src/lib/in-order.ts'
import { seededRandom } from '../../src/lib/random.ts'
import { createSealer } from '../../src/lib/seal.ts'
import { importAccounts, mergeByAccount } from '../../src/model/accounts/account-import.ts'
import { findMatchingAccount, importAccount, renewAccount } from '../../src/model/accounts/account-intake.ts'
import { ACTIVE, nextState } from '../../src/model/accounts/account-state.ts'
import { openTokens, storeTokens } from '../../src/model/accounts/account-tokens.ts'
import { getAccount, saveState } from '../../src/model/accounts/accounts.ts'
import { type ImportedAccount, JUST_GIVEN } from '../../src/model/accounts/auth-json.ts'
import { testDb } from '../support/db.ts'

const SIGNED_IN_AT = 1_000_000

const getFile = (name: string, lastRefreshAt: number | null): ImportedAccount => ({
  identity: {
    email: 'ada@example.test',
    chatgptAccountId: 'acct',
    chatgptUserId: 'user',
    planType: 'plus',
    workspaceId: null,
    workspaceLabel: null,
    seatType: null,
  },
  tokens: { accessToken: `${name}-access`, refreshToken: `${name}-refresh`, idToken: `${name}-id` },
  lastRefreshAt,
})

/** An account whose tokens were refreshed an hour after the file was written. */
const setUp = async () => {
  const { db } = testDb()
  const random = seededRandom(3)
  const sealer = createSealer(random.bytes(32), random)
  const doing = { sealer, random, actor: { id: 'test', method: null, address: null, at: SIGNED_IN_AT + 10_000_000 } }
  const take = (file: ImportedAccount) => commit(db, (tx) => importAccount(tx, file, doing))
  const { id, refreshTokenSealed: previousSealed } = await take(getFile('first', SIGNED_IN_AT))
  const rotated = { accessToken: 'rotated-access', refreshToken: 'rotated-refresh', idToken: 'rotated-id' }
  const renewal = { id, previousSealed, tokens: rotated, sealer, at: SIGNED_IN_AT + 3_600_000 }
  await commit(db, (tx) => storeTokens(tx, renewal))
  const refreshToken = async () => openTokens(sealer, await getAccount(db, id)).refreshToken
  return { db, id, doing, take, refreshToken, renewal }
}

test('a file older than the last refresh leaves the tokens unchanged and says so', async () => {
  const { take, id, refreshToken } = await setUp()
  expect(await take(getFile('first', SIGNED_IN_AT))).toMatchObject({ id, tokensKept: true, status: 'active' })
  expect(await refreshToken()).toBe('rotated-refresh')
})

test('a newer file, or a sign-in, replaces them', async () => {
  const { db, take, id, doing, refreshToken } = await setUp()
  expect((await take(getFile('second', SIGNED_IN_AT + 3_600_001))).tokensKept).toBe(false)
  expect(await refreshToken()).toBe('second-refresh')
  expect((await take(getFile('third', JUST_GIVEN))).tokensKept).toBe(false)
  expect(await refreshToken()).toBe('third-refresh')
  expect((await getAccount(db, id)).lastRefreshAt).toBe(doing.actor.at)
})

test('a file of unknown age leaves the tokens unchanged, unless sign-in is needed', async () => {
  const { db, take, id, refreshToken } = await setUp()
  expect(await take(getFile('undated', null))).toMatchObject({ id, tokensKept: true })
  expect(await refreshToken()).toBe('rotated-refresh')
  await commit(db, (tx) =>
    saveState(tx, id, { ...ACTIVE, status: 'reauth_required', cause: 'invalid_grant', since: 1 }),
  )
  expect((await take(getFile('undated', null))).tokensKept).toBe(false)
})

test('details missing from the new tokens are kept, and present ones replaced', async () => {
  const { db, take, id, doing } = await setUp()
  const file = getFile('second', JUST_GIVEN)
  const seat = { workspaceId: 'ws', workspaceLabel: 'Labs', seatType: 'full' }
  await take({ ...file, identity: { ...file.identity, ...seat } })
  const silent = {
    email: 'ada@new.test',
    chatgptAccountId: null,
    chatgptUserId: null,
    planType: 'unknown',
    workspaceId: null,
    workspaceLabel: null,
    seatType: null,
  }
  const renew = (identity: ImportedAccount['identity']) =>
    commit(db, async (tx) =>
      renewAccount(tx, await getAccount(tx, id), { ...getFile('third', JUST_GIVEN), identity }, doing),
    )
  await renew(silent)
  const known = { ...file.identity, ...seat, email: 'ada@new.test' }
  expect(await getAccount(db, id)).toMatchObject(known)
  const plans = () => db.select().from(accountEvents).where(eq(accountEvents.kind, 'plan')).all()
  expect(await plans()).toEqual([])
  await renew({ ...silent, planType: 'team', workspaceLabel: 'Works' })
  expect(await getAccount(db, id)).toMatchObject({ ...known, planType: 'team', workspaceLabel: 'Works' })
})

test('a file dated in the future counts as current: a later refresh replaces it', async () => {
  const { db, id, take, doing, refreshToken } = await setUp()
  expect((await take(getFile('future', Date.UTC(2099, 0, 1)))).tokensKept).toBe(false)
  expect((await getAccount(db, id)).lastRefreshAt).toBe(doing.actor.at)
  doing.actor.at += 1000
  expect((await take(getFile('honest', doing.actor.at))).tokensKept).toBe(false)
  expect(await refreshToken()).toBe('honest-refresh')
})

test.each(['reauth_required', 'deactivated'] as const)('an account that is %s accepts any file', async (status) => {
  const { db, take, id, refreshToken } = await setUp()
  await commit(db, (tx) => saveState(tx, id, { ...ACTIVE, status, cause: status, since: 1 }))
  expect(await take(getFile('second', SIGNED_IN_AT))).toMatchObject({ tokensKept: false, status: 'active' })
  expect(await refreshToken()).toBe('second-refresh')
})

test('an email in another case is the same account; of two older ones the exact match is used', async () => {
  const { db, take, id } = await setUp()
  const file = getFile('second', SIGNED_IN_AT + 3_600_001)
  const asUpper = { ...file, identity: { ...file.identity, email: 'Ada@Example.test' } }
  expect(await take(asUpper)).toMatchObject({ id, email: 'Ada@Example.test', tokensKept: false })
  await commit(db, async (tx) =>
    tx
      .insert(accounts)
      .values({ ...(await getAccount(db, id)), id: 'acc_old', email: 'ada@example.test' })
      .run(),
  )
  expect(
    await mapInOrder([asUpper, file], async ({ identity }) => (await findMatchingAccount(db, identity))?.id),
  ).toEqual([id, 'acc_old'])
})

test('non-ASCII letters are compared without case, too', async () => {
  const { take } = await setUp()
  const file = getFile('second', SIGNED_IN_AT + 3_600_001)
  const called = (email: string) => ({ ...file, identity: { ...file.identity, email } })
  expect((await take(called('JÜRGEN@example.test'))).id).toBe((await take(called('jürgen@example.test'))).id)
})

test('any tokens replace unreadable ones, even before that was detected', async () => {
  const { db, take, id, refreshToken } = await setUp()
  await commit(db, (tx) => tx.update(accounts).set({ idTokenSealed: 'damaged' }).where(eq(accounts.id, id)).run())
  expect(await take(getFile('older', SIGNED_IN_AT - 1))).toMatchObject({ tokensKept: false, status: 'active' })
  expect(await refreshToken()).toBe('older-refresh')
})

test.each(['invalid_grant', 'account_deleted'])(
  'any tokens replace those of an account with %s, even if paused',
  async (code) => {
    const { db, take, id, refreshToken } = await setUp()
    const events = [{ kind: 'pause' }, { kind: 'auth_failed', code, evidence: 'seen' }] as const
    const lost = events.reduce((state, event) => nextState(state, { ...event, at: SIGNED_IN_AT }), ACTIVE)
    await commit(db, (tx) => saveState(tx, id, lost))
    expect(await take(getFile('older', SIGNED_IN_AT - 1))).toMatchObject({
      tokensKept: false,
      status: 'paused',
      cause: 'paused',
    })
    expect(await refreshToken()).toBe('older-refresh')
  },
)

test('a file with the stored tokens does not interrupt a running refresh', async () => {
  const { db, take, id, refreshToken, renewal } = await setUp()
  const previousSealed = (await getAccount(db, id)).refreshTokenSealed
  expect((await take({ ...getFile('rotated', SIGNED_IN_AT + 3_600_000) })).tokensKept).toBe(true)
  const next = { accessToken: 'next-access', refreshToken: 'next-refresh', idToken: 'next-id' }
  expect(await commit(db, (tx) => storeTokens(tx, { ...renewal, previousSealed, tokens: next }))).toBe(true)
  expect(await refreshToken()).toBe('next-refresh')
})

test('the newer of two files imported together wins, and nothing was kept', async () => {
  const { db, doing, refreshToken } = await setUp()
  const files = [getFile('second', SIGNED_IN_AT + 3_600_001), getFile('first', SIGNED_IN_AT)]
  const rows = mergeByAccount(await commit(db, (tx) => importAccounts(tx, files, doing)))
  expect(rows.map(({ tokensKept }) => tokensKept)).toEqual([false])
  expect(await refreshToken()).toBe('second-refresh')
})
