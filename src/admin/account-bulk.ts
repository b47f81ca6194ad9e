/** `/api/accounts/{pause,reactivate,delete}`: the same change to many accounts, a few a commit, each with its own audit row. */
import { z } from 'zod'
import { commit, type Tx } from '../../db/commit.ts'
import { actor } from '../auth/principal.ts'
import type { Ctx } from '../bindings.ts'
import { AppError } from '../errors.ts'
import { body } from '../http/body.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { proceed } from '../http/reply.tsx'
import { pageOf } from '../http/return-path.ts'
import { inSlices } from '../lib/slices.ts'
import { clearLeftovers } from '../model/account-leftovers.ts'
import { deleteAccount, pauseAccount, reactivateAccount } from '../model/accounts.ts'
import type { Actor } from '../model/audit.ts'
import { back } from './back.ts'

const MOST = 1000

const Chosen = z.strictObject({
  accountIds: z.array(z.string().max(255)).min(1).max(MOST).describe('The accounts it is about.'),
})
const ToDelete = Chosen.extend({ deleteHistory: z.boolean().default(false).describe('Their request log goes, too.') })

/** What the change came to: the ids it was made to, and those that were left as they are, with the reason. */
interface Outcome {
  changed: string[]
  refused: { accountId: string; code: string; message: string }[]
}

/** Answers `{status, changed, refused}`; throws the reason when it is about one account alone. */
export const pauseAccounts = createHandlers(
  requires('accounts:write', { audit: 'account_paused' }),
  body(Chosen),
  async (c) => {
    const outcome = await toEach(c, c.req.valid('json').accountIds, pauseAccount)
    return proceed(c, { status: 'paused', ...outcome }, back(c, doneOf(outcome, 'accounts_paused')))
  },
)

export const reactivateAccounts = createHandlers(
  requires('accounts:write', { audit: 'account_reactivated' }),
  body(Chosen),
  async (c) => {
    const outcome = await toEach(c, c.req.valid('json').accountIds, reactivateAccount)
    return proceed(c, { status: 'reactivated', ...outcome }, back(c, doneOf(outcome, 'accounts_reactivated')))
  },
)

/** With `deleteHistory` their log goes, too, behind the answer. */
export const deleteAccounts = createHandlers(
  requires('accounts:write', { audit: 'account_deleted' }),
  body(ToDelete),
  async (c) => {
    const { accountIds, deleteHistory } = c.req.valid('json')
    const outcome = await deleteEach(c, accountIds, { deleteHistory })
    const isOnList = pageOf(c)?.pathname === '/accounts'
    const then = isOnList ? back(c, doneOf(outcome, 'accounts_deleted')) : '/accounts?done=account_deleted'
    return proceed(c, { status: 'deleted', ...outcome }, then)
  },
)

const doneOf = ({ changed, refused }: Outcome, done: string): string => {
  if (refused.length === 0) return done
  return changed.length === 0 ? `${done}_none` : `${done}_partly`
}

type Change = (tx: Tx, id: string, who: Actor) => unknown

const toEach = async (c: Ctx, accountIds: readonly string[], change: Change, atOnce?: number): Promise<Outcome> => {
  const who = actor(c)
  const outcome: Outcome = { changed: [], refused: [] }
  const tries = await inSlices(
    c.env.clock,
    [...new Set(accountIds)],
    (ids) => commit(c.env.db, (tx) => ids.map((id) => ({ id, refusal: refusalOf(() => change(tx, id, who)) }))),
    atOnce,
  )
  for (const { id, refusal } of tries)
    if (refusal) outcome.refused.push({ accountId: id, code: refusal.code, message: refusal.message })
    else outcome.changed.push(id)
  const [first] = tries
  if (tries.length === 1 && first?.refusal) throw first.refusal
  return outcome
}

/** Thousands of events and samples go with each. */
const DELETED_AT_ONCE = 2

/** Also of one account alone. What they leave behind goes behind the answer. */
export const deleteEach = async (
  c: Ctx,
  accountIds: readonly string[],
  { deleteHistory: withHistory }: { deleteHistory: boolean },
): Promise<Outcome> => {
  const remove: Change = (tx, id, who) => deleteAccount(tx, id, who, { withHistory })
  const outcome = await toEach(c, accountIds, remove, DELETED_AT_ONCE)
  const { ledger, lifecycle, log } = c.env
  ledger.flush() // turns that have ended and are not written yet
  void clearBehind(c).catch((err) => {
    if (lifecycle.draining) return // the database is closed; retention goes on with it after the next start
    log.error('what deleted accounts left behind was not removed yet', { err })
  })
  return outcome
}

/** Whoever waited for the commit of the deletion gets the loop first. */
const clearBehind = async ({ env }: Ctx): Promise<void> => {
  await env.clock.sleep(0)
  await clearLeftovers(env)
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
