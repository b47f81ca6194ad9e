/** Upstream accounts as rows: import, tokens, state, and the small edits an operator makes. Every change is one commit with its audit row. */
import { and, eq, isNull } from 'drizzle-orm'
import { type Db, notice, type Tx } from '../../db/commit.ts'
import { accounts, accountUsage } from '../../db/schema/accounts.ts'
import { AppError } from '../errors.ts'
import type { Random } from '../lib/random.ts'
import { SealError, type Sealer } from '../lib/seal.ts'
import { noteAccountEvent } from './account-events.ts'
import { noteDeleted } from './account-leftovers.ts'
import { type AccountState, nextState } from './account-state.ts'
import { accountVersion } from './account-view.ts'
import { unassignAccount } from './api-keys.ts'
import { type Actor, type AuditEvent, append } from './audit.ts'
import type { AccountIdentity, AccountTokens, ImportedAccount } from './auth-json.ts'
import { changesOf } from './changes-of.ts'
import { demandVersion } from './edit-version.ts'
import type { UsageSnapshot } from './usage-windows.ts'

export type AccountRow = typeof accounts.$inferSelect

export const listAccounts = (db: Db): AccountRow[] => db.select().from(accounts).orderBy(accounts.createdAt).all()

/** Throws `account_not_found`. */
export const getAccount = (db: Db, id: string): AccountRow =>
  db.select().from(accounts).where(eq(accounts.id, id)).get() ?? notFound()

export const displayName = (row: Pick<AccountRow, 'alias' | 'email'>): string => row.alias ?? row.email

export const stateOf = (row: AccountRow): AccountState => ({
  status: row.status,
  cause: row.cause,
  evidence: row.evidence,
  since: row.since,
  until: row.until,
  nextCheckAt: row.nextCheckAt,
  attempts: row.attempts,
})

export const usageOf = (db: Db): Map<string, UsageSnapshot> =>
  new Map(
    db
      .select()
      .from(accountUsage)
      .all()
      .map((row) => [row.accountId, row.snapshot as UsageSnapshot]), // as: only the ledger writes it
  )

export interface ImportedRow extends AccountRow {
  /** The stored tokens stand: they are at least as new as the file's. */
  tokensKept: boolean
}

/** What taking an account in works with. `event` is what the audit log calls it; `account_imported` unless told. */
export interface TakingIn {
  sealer: Sealer
  random: Random
  actor: Actor
  event?: AuditEvent
}

/**
 * Adds the account, or renews the tokens of the one with the same seat (e-mail, workspace, user). A renewed account
 * that needed a sign-in is active again; a paused one stays paused. A file older than the last renewal changes nothing
 * unless a sign-in is needed: its refresh token is spent, and to send it again would end the account.
 */
export const importAccount = (tx: Tx, imported: ImportedAccount, doing: TakingIn): ImportedRow => {
  const { identity, tokens } = imported
  const { sealer, random, actor, event = 'account_imported' } = doing
  const existing = findSeat(tx, identity)
  const tokensKept = existing !== undefined && !isNewer(imported, existing, { sealer, now: actor.at })
  const id = existing?.id ?? random.id('acc')
  if (existing && !tokensKept) renewAccount(tx, existing, imported, doing)
  else if (!existing)
    tx.insert(accounts)
      .values({
        id,
        createdAt: actor.at,
        ...identity,
        ...sealTokens(sealer, id, tokens),
        lastRefreshAt: refreshedAt(imported, actor),
      })
      .run()
  append(tx, actor, event, {
    target: id,
    details: { email: identity.email, renewed: existing !== undefined && !tokensKept, tokensKept },
  })
  const result = existing === undefined ? 'added' : tokensKept ? 'tokens kept' : 'renewed'
  noteAccountEvent(tx, {
    accountId: id,
    at: actor.at,
    kind: 'import',
    result,
    detail: event === 'account_signed_in' ? 'By a sign-in.' : null,
  })
  notice(tx, 'accounts')
  return { ...getAccount(tx, id), tokensKept }
}

/**
 * Gives the row other tokens and what they say of their owner; a paused account stays paused, any other is active. What
 * changes by that stands in the history of the account. Whether it is the same seat was asked before, and the caller writes
 * the audit row.
 */
export const renewAccount = (
  tx: Tx,
  row: AccountRow,
  imported: ImportedAccount,
  { sealer, actor }: Pick<TakingIn, 'sealer' | 'actor'>,
): void => {
  const state =
    row.status === 'paused' ? stateOf(row) : nextState(stateOf(row), { kind: 'reauthenticated', at: actor.at })
  tx.update(accounts)
    .set({
      ...imported.identity,
      ...sealTokens(sealer, row.id, imported.tokens),
      lastRefreshAt: refreshedAt(imported, actor),
      ...state,
    })
    .where(eq(accounts.id, row.id))
    .run()
  const { planType } = imported.identity
  const event = { accountId: row.id, at: actor.at }
  if (state.status !== row.status)
    noteAccountEvent(tx, {
      ...event,
      kind: 'state',
      result: state.status,
      detail: `with new tokens; was ${row.status}`,
    })
  if (planType !== row.planType)
    noteAccountEvent(tx, { ...event, kind: 'plan', result: planType, detail: `was ${row.planType}` })
  notice(tx, 'accounts')
}

/** A file that says it is of the future would count as newer than all that comes, also than a refusal of its tokens. */
const refreshedAt = ({ lastRefreshAt }: ImportedAccount, { at }: Actor): number => Math.min(lastRefreshAt ?? at, at)

/**
 * Whether the tokens would replace those of `existing`. Tokens that are stored already are not stored again: a renewal of
 * theirs that is under way would find its row changed.
 */
export const isNewer = (
  { tokens, lastRefreshAt }: ImportedAccount,
  existing: AccountRow,
  { sealer, now }: { sealer: Sealer; now: number },
): boolean => {
  if (existing.status === 'reauth_required' || existing.status === 'deactivated') return true
  const held = openTokens(sealer, existing)
  if (held === UNREADABLE_TOKENS) return true
  if (held.refreshToken === tokens.refreshToken) return false
  return lastRefreshAt === null || Math.min(lastRefreshAt, now) >= Math.min(existing.lastRefreshAt, now)
}

/** The account that an import of this identity would renew, however its e-mail is written; the one written so comes first. */
export const findSeat = (
  db: Db,
  { email, chatgptAccountId, chatgptUserId }: AccountIdentity,
): AccountRow | undefined => {
  const seats = db
    .select()
    .from(accounts)
    .where(
      and(
        chatgptAccountId === null ? isNull(accounts.chatgptAccountId) : eq(accounts.chatgptAccountId, chatgptAccountId),
        chatgptUserId === null ? isNull(accounts.chatgptUserId) : eq(accounts.chatgptUserId, chatgptUserId),
      ),
    )
    .all()
  const wanted = email.toLowerCase() // not by SQLite, which knows the cases of ASCII alone
  return seats.find((seat) => seat.email === email) ?? seats.find((seat) => seat.email.toLowerCase() === wanted)
}

/**
 * Whether somebody who signed in as `identity` is the owner of `row`: the same user in the same workspace. The e-mail
 * counts only where one side does not name the user, because people change their address.
 */
export const isSeatOf = (row: AccountRow, identity: AccountIdentity): boolean => {
  const isSameUser =
    row.chatgptUserId !== null && identity.chatgptUserId !== null
      ? row.chatgptUserId === identity.chatgptUserId
      : row.email.toLowerCase() === identity.email.toLowerCase()
  return (
    isSameUser && agree(row.chatgptAccountId, identity.chatgptAccountId) && agree(row.workspaceId, identity.workspaceId)
  )
}

/** What one side does not say cannot tell them apart. */
const agree = (a: string | null, b: string | null): boolean => a === null || b === null || a === b

/** Seals each token for its own column of its own row, so that none can be moved to another. */
const sealTokens = (sealer: Sealer, id: string, tokens: AccountTokens) => ({
  accessTokenSealed: sealer.seal(tokens.accessToken, `accounts.access_token.${id}`),
  refreshTokenSealed: sealer.seal(tokens.refreshToken, `accounts.refresh_token.${id}`),
  idTokenSealed: sealer.seal(tokens.idToken, `accounts.id_token.${id}`),
})

/** Empty ones where they were damaged, or sealed with another key: that account has to sign in again, and the rest go on. */
export const openTokens = (sealer: Sealer, row: AccountRow): AccountTokens => {
  try {
    return {
      accessToken: sealer.open(row.accessTokenSealed, `accounts.access_token.${row.id}`),
      refreshToken: sealer.open(row.refreshTokenSealed, `accounts.refresh_token.${row.id}`),
      idToken: sealer.open(row.idTokenSealed, `accounts.id_token.${row.id}`),
    }
  } catch (err) {
    if (err instanceof SealError) return UNREADABLE_TOKENS
    throw err
  }
}

export const UNREADABLE_TOKENS: AccountTokens = Object.freeze({ accessToken: '', refreshToken: '', idToken: '' })

interface Rotated {
  id: string
  previousSealed: string
  tokens: AccountTokens
  sealer: Sealer
  at: number
}

/**
 * Stores rotated tokens. Must be committed before the new access token is used: the old refresh token is dead.
 * Returns false when the account was deleted or re-imported meanwhile: those newer tokens stand.
 */
export const storeTokens = (tx: Tx, { id, previousSealed, tokens, sealer, at }: Rotated): boolean => {
  const stored = tx
    .update(accounts)
    .set({ ...sealTokens(sealer, id, tokens), lastRefreshAt: at })
    .where(and(eq(accounts.id, id), eq(accounts.refreshTokenSealed, previousSealed)))
    .returning({ id: accounts.id })
    .all()
  notice(tx, 'accounts')
  return stored.length === 1
}

/** Writes the token that is stored once more, to see whether another could be. */
export const touchTokens = (tx: Tx, { id, refreshTokenSealed }: AccountRow): void => {
  const isSame = and(eq(accounts.id, id), eq(accounts.refreshTokenSealed, refreshTokenSealed))
  tx.update(accounts).set({ refreshTokenSealed }).where(isSame).run()
}

export const saveState = (tx: Tx, id: string, state: AccountState): void => {
  tx.update(accounts).set(state).where(eq(accounts.id, id)).run()
  notice(tx, 'accounts')
}

export const savePlan = (tx: Tx, id: string, planType: string): void => {
  tx.update(accounts).set({ planType }).where(eq(accounts.id, id)).run()
  notice(tx, 'accounts')
}

export const pauseAccount = (tx: Tx, id: string, actor: Actor): AccountState => transition(tx, id, actor, 'pause')

export const reactivateAccount = (tx: Tx, id: string, actor: Actor): AccountState =>
  transition(tx, id, actor, 'reactivate')

/** What stands already is no event: the first one known of an account tells what it was before. */
const transition = (tx: Tx, id: string, actor: Actor, kind: 'pause' | 'reactivate'): AccountState => {
  const before = stateOf(getAccount(tx, id))
  const state = nextState(before, { kind, at: actor.at })
  if (state === before) return state
  saveState(tx, id, state)
  append(tx, actor, kind === 'pause' ? 'account_paused' : 'account_reactivated', { target: id })
  noteAccountEvent(tx, { accountId: id, at: actor.at, kind: 'state', result: state.status, detail: 'by hand' })
  return state
}

export type AccountEdit = Partial<Pick<AccountRow, 'alias' | 'routingPolicy' | 'securityWorkAuthorized'>> & {
  expectedVersion?: string
}

/** What it has already is no change. Throws `account_not_found`, `edit_conflict`. */
export const editAccount = (tx: Tx, id: string, input: AccountEdit, actor: Actor): AccountRow => {
  const { expectedVersion, ...edit } = input
  const before = getAccount(tx, id)
  demandVersion(expectedVersion, accountVersion(before))
  const change = changesOf(before, edit)
  if (Object.keys(change).length === 0) return before
  tx.update(accounts).set(change).where(eq(accounts.id, id)).run()
  append(tx, actor, 'account_updated', { target: id, details: change })
  notice(tx, 'accounts')
  return getAccount(tx, id)
}

/** Keys lose it. Its log rows stay, with the id of an account that no longer is, unless they are to go `withHistory`. */
export const deleteAccount = (tx: Tx, id: string, actor: Actor, { withHistory = false } = {}): void => {
  const { email } = getAccount(tx, id)
  tx.delete(accounts).where(eq(accounts.id, id)).run()
  unassignAccount(tx, id)
  noteDeleted(tx, id, { at: actor.at, withHistory })
  append(tx, actor, 'account_deleted', { target: id, details: { email } })
  notice(tx, 'accounts')
  notice(tx, 'affinity')
}

const notFound = (): never => {
  throw new AppError('account_not_found')
}
