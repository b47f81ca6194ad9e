/** `/api/accounts/{pause,reactivate,routing-policy,tags,delete}`: the same change to many accounts, a few per commit, each with its own audit row. */
import { z } from 'zod'
import { commit, type Tx } from '../../../db/commit.ts'
import { actor } from '../../auth/principal.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { body, parse } from '../../http/body.ts'
import { requires } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { proceed } from '../../http/reply.tsx'
import { getPage } from '../../http/return-path.ts'
import { mapInOrder } from '../../lib/in-order.ts'
import { inSlices } from '../../lib/slices.ts'
import { clearLeftovers } from '../../model/accounts/account-leftovers.ts'
import { ROUTING_POLICIES } from '../../model/accounts/account-summary.ts'
import { getTags, Tags } from '../../model/accounts/account-tags.ts'
import { deleteAccount, editAccount, pauseAccount, reactivateAccount } from '../../model/accounts/accounts.ts'
import type { Actor } from '../../model/audit/audit.ts'
import { back } from '../form-feedback.ts'

const MOST = 1000

const Chosen = z.strictObject({
  accountIds: z.array(z.string().max(255)).min(1).max(MOST).describe('The accounts to change.'),
})
const ToDelete = Chosen.extend({ deleteHistory: z.boolean().default(false).describe('Delete their request log too.') })

const Policies = Chosen.extend({
  routingPolicy: z.enum(ROUTING_POLICIES).describe('The routing policy they get.'),
})

const Tagging = Chosen.extend({
  add: Tags.default([]).describe('Tags they get.'),
  remove: Tags.default([]).describe('Tags they lose.'),
})

/** The changed accounts, and the rejected ones with a reason. */
interface Outcome {
  changed: string[]
  refused: { accountId: string; code: string; message: string }[]
}

/** Answers `{status, changed, refused}`. For a single account the reason is thrown. */
export const pauseAccounts = createHandlers(
  requires('accounts:write', { audit: 'account_paused' }),
  body(Chosen),
  async (c) => {
    const outcome = await toEach(c, c.req.valid('json').accountIds, pauseAccount)
    return proceed(c, { status: 'paused', ...outcome }, back(c, getDone(outcome, 'accounts_paused')))
  },
)

export const reactivateAccounts = createHandlers(
  requires('accounts:write', { audit: 'account_reactivated' }),
  body(Chosen),
  async (c) => {
    const outcome = await toEach(c, c.req.valid('json').accountIds, reactivateAccount)
    return proceed(c, { status: 'reactivated', ...outcome }, back(c, getDone(outcome, 'accounts_reactivated')))
  },
)

/** Sets the routing policy of several accounts. */
export const setRoutingPolicies = createHandlers(
  requires('accounts:write', { audit: 'account_updated' }),
  body(Policies),
  async (c) => {
    const { accountIds, routingPolicy } = c.req.valid('json')
    const outcome = await toEach(c, accountIds, (tx, id, who) => editAccount(tx, id, { routingPolicy }, who))
    return proceed(c, { status: 'updated', ...outcome }, back(c, getDone(outcome, 'accounts_updated')))
  },
)

/** Adds tags to several accounts, or removes them. An account with more than 20 tags is rejected. */
export const changeTags = createHandlers(
  requires('accounts:write', { audit: 'account_updated' }),
  body(Tagging),
  async (c) => {
    const { accountIds, add, remove } = c.req.valid('json')
    const outcome = await toEach(c, accountIds, async (tx, id, who) => {
      const tags = [...(await getTags(tx, id)), ...add].filter((tag) => !remove.includes(tag))
      await editAccount(tx, id, { tags: parse(Tags, [...new Set(tags)]) }, who)
    })
    return proceed(c, { status: 'updated', ...outcome }, back(c, getDone(outcome, 'accounts_tagged')))
  },
)

/** With `deleteHistory` their log is deleted too, after the response. */
export const deleteAccounts = createHandlers(
  requires('accounts:write', { audit: 'account_deleted' }),
  body(ToDelete),
  async (c) => {
    const { accountIds, deleteHistory } = c.req.valid('json')
    const outcome = await deleteEach(c, accountIds, { deleteHistory })
    const isOnList = getPage(c)?.pathname === '/accounts'
    const then = isOnList ? back(c, getDone(outcome, 'accounts_deleted')) : '/accounts?done=account_deleted'
    return proceed(c, { status: 'deleted', ...outcome }, then)
  },
)

const getDone = ({ changed, refused }: Outcome, done: string): string => {
  if (refused.length === 0) return done
  return changed.length === 0 ? `${done}_none` : `${done}_partly`
}

type Change = (tx: Tx, id: string, who: Actor) => Promise<unknown>

const toEach = async (c: Ctx, accountIds: readonly string[], change: Change, atOnce?: number): Promise<Outcome> => {
  const who = actor(c)
  const outcome: Outcome = { changed: [], refused: [] }
  const tries = await inSlices(
    c.env.clock,
    [...new Set(accountIds)],
    (ids) =>
      commit(c.env.db, (tx) =>
        mapInOrder(ids, async (id) => ({ id, refusal: await getRefusal(() => change(tx, id, who)) })),
      ),
    atOnce,
  )
  for (const { id, refusal } of tries)
    if (refusal) outcome.refused.push({ accountId: id, code: refusal.code, message: refusal.message })
    else outcome.changed.push(id)
  const [first] = tries
  if (tries.length === 1 && first?.refusal) throw first.refusal
  return outcome
}

/** Each deletion includes thousands of events and samples. */
const DELETED_AT_ONCE = 2

/** Also used for a single account. What remains is cleaned up after the response. */
export const deleteEach = async (
  c: Ctx,
  accountIds: readonly string[],
  { deleteHistory: withHistory }: { deleteHistory: boolean },
): Promise<Outcome> => {
  const remove: Change = (tx, id, who) => deleteAccount(tx, id, who, { withHistory })
  const outcome = await toEach(c, accountIds, remove, DELETED_AT_ONCE)
  const { ledger, lifecycle, log } = c.env
  await ledger.flush() // finished turns that are not written yet
  void clearBehind(c).catch((err) => {
    if (lifecycle.draining) return // the database is closed; retention continues after the next start
    log.error('leftovers of deleted accounts could not be removed yet', { err })
  })
  return outcome
}

/** Yields first, so that requests waiting for the commit run before. */
const clearBehind = async ({ env }: Ctx): Promise<void> => {
  await env.clock.sleep(0)
  await clearLeftovers(env)
}

/** The model functions throw before writing, so a rejection leaves nothing in the transaction. */
const getRefusal = async (apply: () => Promise<unknown>): Promise<AppError | null> => {
  try {
    await apply()
    return null
  } catch (err) {
    if (err instanceof AppError) return err
    throw err
  }
}
