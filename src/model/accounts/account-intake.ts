/** Imports an account: finds the existing one with the same seat and decides whether the imported tokens are newer. */
import { and, eq, isNull } from 'drizzle-orm'
import { type Db, notice, type Tx } from '../../../db/commit.ts'
import { accounts } from '../../../db/schema/accounts.ts'
import type { Random } from '../../lib/random.ts'
import type { Sealer } from '../../lib/seal.ts'
import { type Actor, type AuditEvent, append } from '../audit/audit.ts'
import { getUnroutedReason, pausedWithout } from '../egress/unrouted.ts'
import { recordAccountEvent } from './account-events.ts'
import { ACTIVE, type AccountState, getStatusUnderPause, nextState } from './account-state.ts'
import { openTokens, sealTokens, UNREADABLE_TOKENS } from './account-tokens.ts'
import { STATE_NAMES } from './account-words.ts'
import { type AccountRow, getAccount, getState } from './accounts.ts'
import { type AccountIdentity, type ImportedAccount, UNKNOWN_PLAN } from './auth-json.ts'

export interface ImportedRow extends AccountRow {
  isNew: boolean
  /** The stored tokens were kept, because the file's are not known to be newer. */
  tokensKept: boolean
}

/** `event` is the audit event, by default `account_imported`. */
export interface TakingIn {
  sealer: Sealer
  random: Random
  actor: Actor
  event?: AuditEvent
  /** Columns of a new account. `state` replaces the default state, unless the account has no route. */
  initial?: Partial<Pick<AccountRow, 'alias' | 'routingPolicy' | 'securityWorkAuthorized'>> & { state?: AccountState }
  /** The pool of outbound proxies of a new account; null or absent: as the settings say. */
  egressPoolId?: string | null
  /** The caller sends one notice after all accounts are stored, because memory views reload the whole table each time. */
  announcesLater?: boolean
}

/**
 * Adds the account, or updates the tokens of the one with the same seat (e-mail, workspace, user). An updated account
 * that needed sign-in becomes active; a paused one stays paused. A file older than the last refresh, or of unknown age,
 * changes nothing unless sign-in is needed: its refresh token is spent, and using it again would end the account. A new
 * account to which no pool of outbound proxies applies, although one is required, starts paused.
 */
export const importAccount = async (tx: Tx, imported: ImportedAccount, doing: TakingIn): Promise<ImportedRow> => {
  const { identity, tokens } = imported
  const { sealer, random, actor, event = 'account_imported', announcesLater = false, egressPoolId = null } = doing
  const { state = ACTIVE, ...columns } = doing.initial ?? {}
  const existing = await findMatchingAccount(tx, identity)
  const tokensKept = existing !== undefined && !isNewer(imported, existing, { sealer, now: actor.at })
  const id = existing?.id ?? random.id('acc')
  if (existing && !tokensKept) await renewAccount(tx, existing, imported, doing)
  else if (!existing)
    await tx
      .insert(accounts)
      .values({
        id,
        createdAt: actor.at,
        ...identity,
        ...sealTokens(sealer, id, tokens),
        lastRefreshAt: refreshedAt(imported, actor),
        egressPoolId,
        ...columns,
        ...(await firstState(tx, egressPoolId, { state, at: actor.at })),
      })
      .run()
  await append(tx, actor, event, {
    target: id,
    details: { email: identity.email, renewed: existing !== undefined && !tokensKept, tokensKept },
  })
  const result = existing === undefined ? 'added' : tokensKept ? 'tokens kept' : 'tokens replaced'
  await recordAccountEvent(tx, {
    accountId: id,
    at: actor.at,
    kind: 'import',
    result,
    detail: event === 'account_signed_in' ? 'By signing in.' : null,
  })
  if (!announcesLater) notice(tx, 'accounts')
  return { ...(await getAccount(tx, id)), isNew: existing === undefined, tokensKept }
}

const firstState = async (
  tx: Tx,
  egressPoolId: string | null,
  { state, at }: { state: AccountState; at: number },
): Promise<AccountState> => {
  const reason = state === ACTIVE ? await getUnroutedReason(tx, egressPoolId) : null
  return reason === null ? state : pausedWithout(reason, at)
}

/**
 * Replaces the row's tokens and the identity they state; what they do not state stays. A paused account stays paused,
 * any other becomes active. Adds to the account's history. The caller has checked the seat and writes the audit row.
 */
export const renewAccount = async (
  tx: Tx,
  row: AccountRow,
  imported: ImportedAccount,
  { sealer, actor }: Pick<TakingIn, 'sealer' | 'actor'>,
): Promise<void> => {
  const state = nextState(getState(row), { kind: 'reauthenticated', at: actor.at })
  const identity = fillIn(imported.identity, row)
  await tx
    .update(accounts)
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
    await recordAccountEvent(tx, {
      ...event,
      kind: 'state',
      result: state.status,
      detail: `New tokens were stored. Before: ${STATE_NAMES[row.status].toLowerCase()}.`,
    })
  if (planType !== row.planType)
    await recordAccountEvent(tx, { ...event, kind: 'plan', result: planType, detail: `Before: ${row.planType}.` })
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

/** A date in the future would count as newer than all later ones, including a rejection of the tokens. */
const refreshedAt = ({ lastRefreshAt }: ImportedAccount, { at }: Actor): number => Math.min(lastRefreshAt ?? at, at)

/**
 * Whether the tokens should replace those of `existing`. Identical tokens are not stored again, because a running
 * refresh would find its row changed.
 */
export const isNewer = (
  { tokens, lastRefreshAt }: ImportedAccount,
  existing: AccountRow,
  { sealer, now }: { sealer: Sealer; now: number },
): boolean => {
  const status = getStatusUnderPause(existing)
  if (status === 'reauth_required' || status === 'deactivated') return true
  const held = openTokens(sealer, existing)
  if (held === UNREADABLE_TOKENS) return true
  if (held.refreshToken === tokens.refreshToken) return false
  return lastRefreshAt !== null && Math.min(lastRefreshAt, now) >= Math.min(existing.lastRefreshAt, now)
}

/** The account this identity would update, comparing e-mails case-insensitively; an exact match comes first. */
export const findMatchingAccount = async (
  db: Db,
  { email, chatgptAccountId, chatgptUserId }: AccountIdentity,
): Promise<AccountRow | undefined> => {
  const seats = await db
    .select()
    .from(accounts)
    .where(
      and(
        chatgptAccountId === null ? isNull(accounts.chatgptAccountId) : eq(accounts.chatgptAccountId, chatgptAccountId),
        chatgptUserId === null ? isNull(accounts.chatgptUserId) : eq(accounts.chatgptUserId, chatgptUserId),
      ),
    )
    .all()
  const wanted = email.toLowerCase() // not in SQLite, whose lower() handles only ASCII
  return seats.find((seat) => seat.email === email) ?? seats.find((seat) => seat.email.toLowerCase() === wanted)
}

/**
 * Whether `identity` owns `row`: same user in the same workspace. The e-mail counts only if one side has no user id,
 * because addresses change.
 */
export const isSameSeat = (row: AccountIdentity, identity: AccountIdentity): boolean => {
  const isSameUser =
    row.chatgptUserId !== null && identity.chatgptUserId !== null
      ? row.chatgptUserId === identity.chatgptUserId
      : row.email.toLowerCase() === identity.email.toLowerCase()
  return (
    isSameUser &&
    isSameOrUnknown(row.chatgptAccountId, identity.chatgptAccountId) &&
    isSameOrUnknown(row.workspaceId, identity.workspaceId)
  )
}

/** A missing value matches anything. */
const isSameOrUnknown = (a: string | null, b: string | null): boolean => a === null || b === null || a === b
