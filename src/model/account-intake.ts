/** Taking an account in: whose seat it is, and whether what was brought is newer than what is held. */
import { and, eq, isNull } from 'drizzle-orm'
import { type Db, notice, type Tx } from '../../db/commit.ts'
import { accounts } from '../../db/schema/accounts.ts'
import type { Random } from '../lib/random.ts'
import type { Sealer } from '../lib/seal.ts'
import { noteAccountEvent } from './account-events.ts'
import { nextState, statusBeneath } from './account-state.ts'
import { openTokens, sealTokens, UNREADABLE_TOKENS } from './account-tokens.ts'
import { STATE_NAMES } from './account-words.ts'
import { type AccountRow, getAccount, stateOf } from './accounts.ts'
import { type Actor, type AuditEvent, append } from './audit.ts'
import { type AccountIdentity, type ImportedAccount, UNKNOWN_PLAN } from './auth-json.ts'

export interface ImportedRow extends AccountRow {
  /** The stored tokens stand: nothing says that the file's are newer. */
  tokensKept: boolean
}

/** What taking an account in works with. `event` is what the audit log calls it; `account_imported` unless told. */
export interface TakingIn {
  sealer: Sealer
  random: Random
  actor: Actor
  event?: AuditEvent
  /** The caller announces new accounts once all are stored: every memory view reads the whole table after an announcement. */
  announcesLater?: boolean
}

/**
 * Adds the account, or renews the tokens of the one with the same seat (e-mail, workspace, user). A renewed account
 * that needed a sign-in is active again; a paused one stays paused. A file older than the last renewal, or of no known age,
 * changes nothing unless a sign-in is needed: its refresh token is spent, and to send it again would end the account.
 */
export const importAccount = (tx: Tx, imported: ImportedAccount, doing: TakingIn): ImportedRow => {
  const { identity, tokens } = imported
  const { sealer, random, actor, event = 'account_imported', announcesLater = false } = doing
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
  const result = existing === undefined ? 'added' : tokensKept ? 'tokens kept' : 'tokens replaced'
  noteAccountEvent(tx, {
    accountId: id,
    at: actor.at,
    kind: 'import',
    result,
    detail: event === 'account_signed_in' ? 'By signing in.' : null,
  })
  if (!announcesLater) notice(tx, 'accounts')
  return { ...getAccount(tx, id), tokensKept }
}

/**
 * Gives the row other tokens and what they say of their owner; what they are silent about stays. A paused account stays
 * paused, any other is active. What changes by that stands in the history of the account. Whether it is the same seat was asked before, and the caller writes
 * the audit row.
 */
export const renewAccount = (
  tx: Tx,
  row: AccountRow,
  imported: ImportedAccount,
  { sealer, actor }: Pick<TakingIn, 'sealer' | 'actor'>,
): void => {
  const state = nextState(stateOf(row), { kind: 'reauthenticated', at: actor.at })
  const identity = fillIn(imported.identity, row)
  tx.update(accounts)
    .set({
      ...identity,
      ...sealTokens(sealer, row.id, imported.tokens),
      lastRefreshAt: refreshedAt(imported, actor),
      ...state,
    })
    .where(eq(accounts.id, row.id))
    .run()
  const { planType } = identity
  const event = { accountId: row.id, at: actor.at }
  if (state.status !== row.status)
    noteAccountEvent(tx, {
      ...event,
      kind: 'state',
      result: state.status,
      detail: `New tokens were stored. Before: ${STATE_NAMES[row.status].toLowerCase()}.`,
    })
  if (planType !== row.planType)
    noteAccountEvent(tx, { ...event, kind: 'plan', result: planType, detail: `Before: ${row.planType}.` })
  notice(tx, 'accounts')
}

const fillIn = (said: AccountIdentity, known: AccountIdentity): AccountIdentity => ({
  email: said.email,
  chatgptAccountId: said.chatgptAccountId ?? known.chatgptAccountId,
  chatgptUserId: said.chatgptUserId ?? known.chatgptUserId,
  planType: said.planType === UNKNOWN_PLAN ? known.planType : said.planType,
  workspaceId: said.workspaceId ?? known.workspaceId,
  workspaceLabel: said.workspaceLabel ?? known.workspaceLabel,
  seatType: said.seatType ?? known.seatType,
})

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
  const status = statusBeneath(existing)
  if (status === 'reauth_required' || status === 'deactivated') return true
  const held = openTokens(sealer, existing)
  if (held === UNREADABLE_TOKENS) return true
  if (held.refreshToken === tokens.refreshToken) return false
  return lastRefreshAt !== null && Math.min(lastRefreshAt, now) >= Math.min(existing.lastRefreshAt, now)
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
