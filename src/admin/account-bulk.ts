/** `/api/accounts/{pause,reactivate,delete}`: the same change to many accounts in one commit, each with its own audit row. */
import type { Context } from 'hono'
import { z } from 'zod'
import { commit, type Tx } from '../../db/commit.ts'
import { actor } from '../auth/principal.ts'
import type { AppEnv } from '../bindings.ts'
import { AppError } from '../errors.ts'
import { body } from '../http/body.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { proceed } from '../http/reply.tsx'
import { pageOf } from '../http/return-path.ts'
import { forgetHistory } from '../model/account-history.ts'
import { deleteAccount, pauseAccount, reactivateAccount } from '../model/accounts.ts'
import type { Actor } from '../model/audit.ts'
import { back } from './back.ts'

const MOST = 1000

const Chosen = z.strictObject({ accountIds: z.array(z.string().max(255)).min(1).max(MOST) })
const ToDelete = Chosen.extend({ deleteHistory: z.boolean().default(false) })

/** What the change came to: the ids it was made to, and those that were left as they are, with the reason. */
interface Outcome {
  changed: string[]
  refused: { accountId: string; code: string; message: string }[]
}

/** Answers `{status, changed, refused}`; throws the reason when it is about one account alone. */
export const pauseAccounts = createHandlers(
  requires('accounts:write', { audit: 'account_paused' }),
  body(Chosen),
  (c) => {
    const outcome = toEach(c, c.req.valid('json').accountIds, pauseAccount)
    return proceed(c, { status: 'paused', ...outcome }, back(c, doneOf(outcome, 'accounts_paused')))
  },
)

export const reactivateAccounts = createHandlers(
  requires('accounts:write', { audit: 'account_reactivated' }),
  body(Chosen),
  (c) => {
    const outcome = toEach(c, c.req.valid('json').accountIds, reactivateAccount)
    return proceed(c, { status: 'reactivated', ...outcome }, back(c, doneOf(outcome, 'accounts_reactivated')))
  },
)

/** With `deleteHistory` their log goes, too, behind the answer. */
export const deleteAccounts = createHandlers(
  requires('accounts:write', { audit: 'account_deleted' }),
  body(ToDelete),
  (c) => {
    const { accountIds, deleteHistory } = c.req.valid('json')
    const outcome = toEach(c, accountIds, deleteAccount)
    if (deleteHistory) void forgetAll(c, outcome.changed)
    const isOnList = pageOf(c)?.pathname === '/accounts'
    const then = isOnList ? back(c, doneOf(outcome, 'accounts_deleted')) : '/accounts?done=account_deleted'
    return proceed(c, { status: 'deleted', ...outcome }, then)
  },
)

const doneOf = ({ refused }: Outcome, done: string): string => (refused.length > 0 ? `${done}_partly` : done)

type Change = (tx: Tx, id: string, who: Actor) => unknown

const toEach = (c: Context<AppEnv>, accountIds: readonly string[], change: Change): Outcome => {
  const who = actor(c)
  return commit(c.env.db, (tx) => {
    const outcome: Outcome = { changed: [], refused: [] }
    for (const id of new Set(accountIds)) {
      const refusal = refusalOf(() => change(tx, id, who))
      if (refusal) outcome.refused.push({ accountId: id, code: refusal.code, message: refusal.message })
      else outcome.changed.push(id)
      if (refusal && accountIds.length === 1) throw refusal
    }
    return outcome
  })
}

/** The verbs of the model refuse before they write, so what was refused left nothing in the transaction. */
const refusalOf = (apply: () => unknown): AppError | null => {
  try {
    apply()
    return null
  } catch (err) {
    if (err instanceof AppError) return err
    throw err
  }
}

const forgetAll = async ({ env: { db, clock, log } }: Context<AppEnv>, ids: readonly string[]): Promise<void> => {
  for (const id of ids)
    await forgetHistory({ db, clock }, id).catch((err) => log.error('the log of an account was not removed', { err }))
}
