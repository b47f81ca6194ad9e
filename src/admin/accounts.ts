/** `/api/accounts`: list, edit, pause, resume and delete accounts. */
import { z } from 'zod'
import { commit, type Sync, type Tx } from '../../db/commit.ts'
import { actor } from '../auth/principal.ts'
import type { Ctx } from '../boot/bindings.ts'
import { body } from '../http/body.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { getPathId } from '../http/path-id.ts'
import { Flag, query } from '../http/query.ts'
import { proceed } from '../http/reply.tsx'
import { tokenHealth } from '../model/accounts/account-export.ts'
import { type AccountSummary, masked, ROUTING_POLICIES, summarise } from '../model/accounts/account-summary.ts'
import { Tags } from '../model/accounts/account-tags.ts'
import { openTokens } from '../model/accounts/account-tokens.ts'
import { getUses, NO_USE } from '../model/accounts/account-totals.ts'
import {
  type AccountEdit,
  type AccountRow,
  editAccount as edit,
  pauseAccount as pause,
  reactivateAccount as reactivate,
} from '../model/accounts/accounts.ts'
import { additionalQuotas } from '../model/accounts/additional-quotas.ts'
import { resetCreditsView } from '../model/accounts/reset-credits.ts'
import { ResetRuleFields } from '../model/accounts/reset-rule-fields.ts'
import { lastWindowStarts } from '../model/accounts/window-starts.ts'
import type { Actor } from '../model/audit/audit.ts'
import { ExpectedVersion } from '../model/edit-version.ts'
import { holds } from '../model/users/permissions.ts'
import { REFRESH_AFTER_MS } from '../upstream/credentials.ts'
import { deleteEach } from './account-bulk.ts'
import { back } from './return-link.ts'

export { changeTags, deleteAccounts, pauseAccounts, reactivateAccounts, setRoutingPolicies } from './account-bulk.ts'
export { importAccounts } from './account-import.ts'
export { probeAccount, probeAccounts } from './account-probe.ts'

/** `{accounts}`: each with its state, whether it is available now, and why not. */
export const listAccounts = createHandlers(requires('dashboard:read', { and: 'accounts:read' }), (c) => {
  const mayWrite = holds(c.var.principal.grants, 'accounts:write')
  const accounts = getSummaries(c, { withTokens: mayWrite })
  return c.json({ accounts: mayWrite ? accounts : accounts.map(masked) })
})

const getSummaries = (c: Ctx, { withTokens }: { withTokens: boolean }): AccountSummary[] => {
  const { db, pool, resetCredits, clock, sealer } = c.env
  const now = clock.now()
  const views = pool.describe()
  const sharing = Map.groupBy(views, ({ email }) => email)
  const uses = getUses(db)
  const starts = lastWindowStarts(db)
  return views.flatMap((view) => {
    const account = pool.get(view.accountId)
    if (!account) return []
    const { row, usage } = account
    const credits = resetCredits.of(view.accountId)
    return summarise(view, row, {
      isEmailDuplicate: (sharing.get(view.email)?.length ?? 0) > 1,
      resetCredits: credits && resetCreditsView(credits, now),
      windowStart: starts.get(view.accountId) ?? null,
      use: uses.get(view.accountId) ?? NO_USE,
      additional: additionalQuotas(usage, now),
      tokens: withTokens ? tokenHealth(row, openTokens(sealer, row), { now, renewAfterMs: REFRESH_AFTER_MS }) : null,
    })
  })
}

/** Throws `account_not_found`, `account_state_transition_invalid`. */
export const pauseAccount = createHandlers(requires('accounts:write', { audit: 'account_paused' }), (c) => {
  write(c, pause)
  return proceed(c, { status: 'paused' }, back(c, 'account_paused'))
})

/** Throws `account_not_found`, `account_state_transition_invalid` for one that needs sign-in. */
export const reactivateAccount = createHandlers(requires('accounts:write', { audit: 'account_reactivated' }), (c) => {
  write(c, reactivate)
  return proceed(c, { status: 'reactivated' }, back(c, 'account_reactivated'))
})

const Deletion = z.object({
  delete_history: Flag.describe('Delete its request log too.'),
})

/** With `delete_history` its log is deleted too, after the response. */
export const deleteAccount = createHandlers(
  requires('accounts:write', { audit: 'account_deleted' }),
  query(Deletion),
  async (c) => {
    await deleteEach(c, [getPathId(c)], { deleteHistory: c.req.valid('query').delete_history })
    return proceed(c, { status: 'deleted' }, '/accounts?done=account_deleted')
  },
)

const AliasText = z
  .string()
  .trim()
  .max(255)
  .nullable()
  .transform((alias) => alias || null)
  .describe('Shown in place of the e-mail address. Blank or null: none.')

const PolicyName = z
  .enum(ROUTING_POLICIES)
  .describe('`burn_first`: used before the others; `normal`: the strategy decides; `preserve`: last resort.')

const Cap = z.int().min(1).max(100).nullable().optional()

/** The routing form sends all but the reset rule; the API also has separate routes for alias and policy. */
const Patch = z.strictObject({
  securityWorkAuthorized: z.boolean().optional().describe('Whether it belongs to the restricted pool.'),
  alias: AliasText.optional(),
  routingPolicy: PolicyName.optional(),
  ...ResetRuleFields.shape,
  maxUsedPercentPrimary: Cap.describe(
    'Percent used of the 5-hour window from which the account is skipped until the reset. Null: no cap.',
  ),
  maxUsedPercentSecondary: Cap.describe('The same for the weekly window, or the monthly one of plans without it.'),
  ownerUserId: z.string().min(1).max(64).nullable().optional().describe('ID of the user whose account it is, or null.'),
  reserveForOwner: z.boolean().optional().describe('Keys of the owner are exempt from the caps. Needs an owner.'),
  tags: Tags.optional().describe('Replaces the tags. At most 20, of 1 to 40 characters; a comma separates two.'),
  position: z
    .int()
    .min(1)
    .nullable()
    .optional()
    .describe('Place from 1 in the order of `fill_first` and `sequential_drain`. Null: after those that have one.'),
  expectedVersion: ExpectedVersion,
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

const Policy = z.strictObject({ routingPolicy: PolicyName })

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
  return commit<T>(c.env.db, (tx) => apply(tx, getPathId(c), who))
}
