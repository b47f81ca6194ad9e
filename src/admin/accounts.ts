/** `/api/accounts`: the upstream accounts, taken in, looked at, set aside and removed. */
import type { Context } from 'hono'
import { z } from 'zod'
import { commit, type Sync, type Tx } from '../../db/commit.ts'
import { actor } from '../auth/principal.ts'
import type { AppEnv } from '../bindings.ts'
import { body } from '../http/body.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { query } from '../http/params.ts'
import { proceed } from '../http/reply.tsx'
import { forgetHistory } from '../model/account-history.ts'
import { masked, ROUTING_POLICIES, summarise } from '../model/account-summary.ts'
import {
  type AccountEdit,
  type AccountRow,
  editAccount as edit,
  pauseAccount as pause,
  reactivateAccount as reactivate,
  deleteAccount as remove,
} from '../model/accounts.ts'
import type { Actor } from '../model/audit.ts'
import { holds } from '../model/permissions.ts'
import { resetCreditsView } from '../model/reset-credits.ts'
import { back } from './back.ts'

export { deleteAccounts, pauseAccounts, reactivateAccounts } from './account-bulk.ts'
export { importAccounts } from './account-import.ts'
export { probeAccount } from './account-probe.ts'

type Ctx = Context<AppEnv>

/** `{accounts}`: each with what is known, whether it would be chosen now, and why not. */
export const listAccounts = createHandlers(requires('dashboard:read'), (c) => {
  const { pool, resetCredits, clock } = c.env
  const now = clock.now()
  const views = pool.describe()
  const sharing = Map.groupBy(views, ({ email }) => email)
  const accounts = views.flatMap((view) => {
    const row = pool.get(view.accountId)?.row
    const isEmailDuplicate = (sharing.get(view.email)?.length ?? 0) > 1
    const credits = resetCredits.of(view.accountId)
    return row
      ? [summarise(view, row, { isEmailDuplicate, resetCredits: credits && resetCreditsView(credits, now) })]
      : []
  })
  return c.json({ accounts: holds(c.var.principal.grants, 'accounts:write') ? accounts : accounts.map(masked) })
})

/** Throws `account_not_found`, `account_state_transition_invalid`. */
export const pauseAccount = createHandlers(requires('accounts:write', { audit: 'account_paused' }), (c) => {
  write(c, pause)
  return proceed(c, { status: 'paused' }, back(c, 'account_paused'))
})

/** Throws `account_not_found`, `account_state_transition_invalid` for one that has to sign in again. */
export const reactivateAccount = createHandlers(requires('accounts:write', { audit: 'account_reactivated' }), (c) => {
  write(c, reactivate)
  return proceed(c, { status: 'reactivated' }, back(c, 'account_reactivated'))
})

const Deletion = z.object({ delete_history: z.enum(['true', 'false', '1', '0']).default('false') })

/** Its log goes too with `delete_history`, behind the answer. */
export const deleteAccount = createHandlers(
  requires('accounts:write', { audit: 'account_deleted' }),
  query(Deletion),
  (c) => {
    const { db, clock, log } = c.env
    const id = idOf(c)
    write(c, remove)
    if (['true', '1'].includes(c.req.valid('query').delete_history))
      void forgetHistory({ db, clock }, id).catch((err) => log.error('the log of an account was not removed', { err }))
    return proceed(c, { status: 'deleted' }, '/accounts?done=account_deleted')
  },
)

/** Only blanks are no alias. */
const AliasText = z
  .string()
  .trim()
  .max(255)
  .nullable()
  .transform((alias) => alias || null)

/** The dashboard API has a route of its own for each of the others; the form of the page sends all three at once. */
const Patch = z.strictObject({
  securityWorkAuthorized: z.boolean().optional(),
  alias: AliasText.optional(),
  routingPolicy: z.enum(ROUTING_POLICIES).optional(),
})

export const editAccount = createHandlers(
  requires('accounts:write', { audit: 'account_updated' }),
  body(Patch),
  (c) => {
    change(c, c.req.valid('json'))
    return proceed(c, { status: 'updated' }, back(c, 'account_updated'))
  },
)

const Alias = z.strictObject({ alias: AliasText })

export const setAlias = createHandlers(requires('accounts:write', { audit: 'account_updated' }), body(Alias), (c) => {
  const { id: accountId, alias } = change(c, c.req.valid('json'))
  return c.json({ accountId, alias })
})

const Policy = z.strictObject({ routingPolicy: z.enum(ROUTING_POLICIES) })

export const setRoutingPolicy = createHandlers(
  requires('accounts:write', { audit: 'account_updated' }),
  body(Policy),
  (c) => {
    const { id: accountId, routingPolicy } = change(c, c.req.valid('json'))
    return c.json({ accountId, routingPolicy })
  },
)

const change = (c: Ctx, what: AccountEdit): AccountRow => write(c, (tx, id, who) => edit(tx, id, what, who))

const write = <T>(c: Ctx, apply: (tx: Tx, id: string, who: Actor) => Sync<T>): T => {
  const who = actor(c)
  return commit<T>(c.env.db, (tx) => apply(tx, idOf(c), who))
}

const idOf = (c: Ctx): string => c.req.param('id') ?? ''
