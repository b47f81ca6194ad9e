/** `/keys` and `/api/api-keys/`: API keys of clients, seven days of one key, and whether clients need one. */
import { z } from 'zod'
import { commit } from '../../../db/commit.ts'
import { KeyPage, type KeyProps } from '../../../views/keys/detail.tsx'
import type { KeyChoices } from '../../../views/keys/form.tsx'
import { KeysPage, type KeysProps } from '../../../views/keys/list.tsx'
import { EditKeyPage, type EditKeyProps, NewKeyPage, type NewKeyProps, shownKeyAt } from '../../../views/keys/new.tsx'
import type { OptionalKeys } from '../../../views/keys/optional.tsx'
import { EXAMPLE_MODEL } from '../../../views/keys/snippets.ts'
import { actor, demand } from '../../auth/principal.ts'
import { canChangeOwnKeys, requireKeyScope, requireScope } from '../../auth/view-scope.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { open, requiresOwn, writesKeys } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { getPathId } from '../../http/path-id.ts'
import { originForLinks, publicOrigin } from '../../http/public-origin.ts'
import { query } from '../../http/query.ts'
import { proceed, reply } from '../../http/reply.tsx'
import { iso } from '../../lib/iso.ts'
import { getDistinctTags } from '../../model/accounts/account-filter.ts'
import { maskEmails } from '../../model/accounts/account-summary.ts'
import { EFFORTS } from '../../model/catalog/efforts.ts'
import { type ShownKey, shownKey } from '../../model/keys/api-key-view.ts'
import {
  createKey,
  deleteKey,
  getKey,
  type IssuedKey,
  listKeys,
  regenerateKey,
  type StoredKey,
  updateKey,
} from '../../model/keys/api-keys.ts'
import { KeyPatch, NewKey, SERVICE_TIERS } from '../../model/keys/key-input.ts'
import { arrangeKeys, KeysQuery, keyState } from '../../model/keys/key-list.ts'
import { type KeyWeek, keyTrends, keyUsage7d } from '../../model/keys/key-trends.ts'
import { newMemberKey, requireMemberPatch } from '../../model/keys/member-keys.ts'
import { sourceNames } from '../../model/sources/source-rows.ts'
import { holds, mayWrite } from '../../model/users/permissions.ts'
import { accountChoices, listedModels, ownerChoices } from '../choices.ts'
import { claudeOffersForKey } from '../claude-models-form.ts'
import { getFormFeedback } from '../form-feedback.ts'
import { toReader } from '../reader-for-caller.ts'
import { storeSettings } from '../settings/settings.ts'
import { getHiddenFields } from '../visibility.ts'
import { keyBody } from './form.ts'

export const listApiKeys = createHandlers(requiresOwn('api_keys:read'), async (c) => {
  const now = c.env.clock.now()
  const scope = requireScope(c.var.principal, 'api_keys:read')
  return c.json((await listKeys(c.env.db, scope)).map((row) => shownKey(row, now, scope)))
})

const KeyToCreate = NewKey.extend({
  requireKeys: z
    .boolean()
    .optional()
    .describe('Also turns `apiKeyAuthEnabled` on, which needs `security:write` and a recent confirmation.'),
})

/** Throws `validation_error`, `key_limit_reached`, and with `requireKeys` the errors of changing that setting. */
export const createApiKey = createHandlers(
  writesKeys({ audit: 'api_key_created' }),
  keyBody(KeyToCreate),
  async (c) => {
    const { requireKeys = false, ...input } = c.req.valid('json')
    const doing = getDoing(c)
    const issued = await commit(c.env.db, async (tx) => {
      const own = ownRules(c, doing)
      const made = await createKey(tx, own ? await newMemberKey(tx, input, own) : input, doing)
      if (requireKeys)
        await storeSettings(tx, { apiKeyAuthEnabled: true }, { principal: c.var.principal, who: doing.actor })
      return made
    })
    return show(c, issued, { doing, isRenewed: false })
  },
)

export const editApiKey = createHandlers(writesKeys({ audit: 'api_key_updated' }), keyBody(KeyPatch), async (c) => {
  const doing = getDoing(c)
  const row = await commit(c.env.db, async (tx) => {
    const patch = c.req.valid('json')
    const own = ownRules(c, doing)
    if (own) requireMemberPatch(await getKey(tx, getPathId(c), doing.scope), patch, own)
    return updateKey(tx, getPathId(c), patch, doing)
  })
  return proceed(c, shownKey(row, doing.actor.at, doing.scope), `/keys/${row.id}?done=api_key_updated`)
})

export const regenerateApiKey = createHandlers(writesKeys({ audit: 'api_key_regenerated' }), async (c) => {
  const doing = getDoing(c)
  return show(c, await commit(c.env.db, (tx) => regenerateKey(tx, getPathId(c), doing)), { doing, isRenewed: true })
})

export const deleteApiKey = createHandlers(writesKeys({ audit: 'api_key_deleted' }), async (c) => {
  await commit(c.env.db, (tx) => deleteKey(tx, getPathId(c), getDoing(c)))
  return proceed(c, null, '/keys?done=api_key_deleted')
})

/** The gate suffices for one's own key; assigning it to others, or to no one, needs `api_keys:assign`. */
const getDoing = (c: Ctx) => ({
  actor: actor(c),
  scope: requireKeyScope(c.var.principal),
  random: c.env.random,
  requireAssign: () => demand(c.var.principal, 'api_keys:assign'),
})

type Doing = ReturnType<typeof getDoing>

/** The limits for users who manage only their own keys. Null means no limits. */
const ownRules = ({ env }: Ctx, { scope, actor: { at } }: Doing) =>
  typeof scope === 'string'
    ? null
    : { ownerUserId: scope.ownerUserId, defaults: env.settings.current().memberKeyDefaults, now: at }

/** The only answer that contains the key; browsers also get the connection texts. */
const show = (c: Ctx, { row, key }: IssuedKey, { doing, isRenewed }: { doing: Doing; isRenewed: boolean }) => {
  const shown: ShownKey = { ...shownKey(row, doing.actor.at, doing.scope), key }
  return reply(
    c,
    shown,
    shownKeyAt(() => connectionFor(c, row), isRenewed),
  )
}

/** The most rows on a page. More would exceed the page size limit. */
const PAGE_SIZE = 20

export const showKeys = createHandlers(requiresOwn('api_keys:read'), query(KeysQuery), async (c) => {
  const now = c.env.clock.now()
  const asked = c.req.valid('query')
  const scope = requireScope(c.var.principal, 'api_keys:read')
  const all = (await listKeys(c.env.db, scope)).map((row) => shownKey(row, now, scope))
  const found = arrangeKeys(all, asked)
  const pages = Math.max(1, Math.ceil(found.length / PAGE_SIZE))
  const page = Math.min(asked.page, pages)
  const props: KeysProps = {
    generatedAt: iso(now),
    keys: found.slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE).map((key) => ({ ...key, state: keyState(key) })),
    total: all.length,
    optional: optionalKeys(c),
    pages,
    query: { ...asked, page },
    isOwn: scope !== 'all',
    canWrite: canChangeKeys(c),
    done: getFormFeedback(c).done,
  }
  return reply(c, props, KeysPage)
})

/** Redirects from the old address of the page. */
export const goToKeys = createHandlers(open('redirect to the keys'), (c) => c.redirect('/keys', 301))

export const showNewKey = createHandlers(writesKeys(), async (c) => {
  const scope = requireKeyScope(c.var.principal)
  const isFirst = (await listKeys(c.env.db, scope)).length === 0
  const props: NewKeyProps = {
    choices: await choicesFor(c),
    optional: isFirst ? optionalKeys(c) : null,
    problem: getFormFeedback(c).problem,
  }
  return reply(c, props, NewKeyPage)
})

/** Throws `not_found`. */
export const showKey = createHandlers(requiresOwn('api_keys:read'), async (c) => {
  const { db, clock } = c.env
  const scope = requireScope(c.var.principal, 'api_keys:read')
  const row = await getKey(db, getPathId(c), scope)
  const now = clock.now()
  const week = await getWeek(c, row.id)
  const apiKey = shownKey(row, now, scope)
  const { cost, tokens } = keyTrends(row.id, week)
  const names = new Map(accountChoices(c).map(({ id, name }) => [id, name]))
  const props: KeyProps = {
    generatedAt: iso(now),
    apiKey,
    state: keyState(apiKey),
    usage: keyUsage7d(row.id, week),
    shares: week.accounts.map((share) => ({ ...share, name: names.get(share.accountId) ?? null })),
    trends: { cost, tokens },
    connection: connectionFor(c, row),
    optional: optionalKeys(c),
    accountNames: getNames(c, row.assignedAccountIds ?? []),
    sourceNames: row.assignedSourceIds ? await sourceChoices(c) : [],
    isOwn: scope !== 'all',
    canWrite: canChangeKeys(c),
    ...getFormFeedback(c),
  }
  return reply(c, props, KeyPage)
})

/** Throws `not_found`. */
export const showEditKey = createHandlers(writesKeys(), async (c) => {
  const scope = requireKeyScope(c.var.principal)
  const row = await getKey(c.env.db, getPathId(c), scope)
  const props: EditKeyProps = {
    apiKey: shownKey(row, c.env.clock.now(), scope),
    choices: await choicesFor(c),
    problem: getFormFeedback(c).problem,
  }
  return reply(c, props, EditKeyPage)
})

export const canChangeKeys = ({ var: { principal } }: Ctx): boolean =>
  mayWrite(principal.grants) || canChangeOwnKeys(principal)

/** Users who may not see accounts get ids instead of names. */
const getNames = (c: Ctx, ids: readonly string[]) =>
  getHiddenFields(c.var.principal).hidesAccounts || ids.length === 0
    ? []
    : accountChoices(c).filter(({ id }) => ids.includes(id))

/** The connection texts for this key, without the key itself. */
export const connectionFor = (c: Ctx, row: Pick<StoredKey, 'keyHash' | 'enforcedModel' | 'allowedModels'>) => {
  const models = listedModels(c, c.env.keys.byHash(row.keyHash))
  const only = row.enforcedModel ?? (row.allowedModels?.length === 1 ? row.allowedModels[0] : undefined)
  return {
    baseUrl: originForLinks(c),
    isGuess: publicOrigin(c) === null,
    model: only ?? models[0]?.id ?? row.allowedModels?.[0] ?? EXAMPLE_MODEL,
  }
}

const sourceChoices = async (c: Ctx) => [...(await sourceNames(c.env.db))].map(([id, name]) => ({ id, name }))

/** The options of the form; owners only for users who may assign keys. */
const choicesFor = async (c: Ctx): Promise<KeyChoices> => {
  const { limits, models, expiresDays } = c.env.settings.current().memberKeyDefaults
  const isOwn = canChangeOwnKeys(c.var.principal)
  const isBlind = getHiddenFields(c.var.principal).hidesAccounts
  return {
    models: listedModels(c, null).filter(({ id }) => !isOwn || models === null || models.includes(id)),
    accounts: isBlind ? [] : accountChoices(c),
    tags: isBlind ? [] : getDistinctTags(c.env.pool.all()),
    sources: isBlind ? [] : await sourceChoices(c),
    owners: await ownerChoices(c),
    efforts: EFFORTS,
    tiers: SERVICE_TIERS,
    claude: claudeOffersForKey(c),
    own: isOwn ? { limits, expiresDays } : null,
  }
}

/** Null if every client needs a key. */
const optionalKeys = ({ env: { env, settings }, var: { principal } }: Ctx): OptionalKeys | null => {
  if (settings.current().apiKeyAuthEnabled) return null
  const cannotConfirm = principal.kind === 'account' && principal.stepUpMethods.length === 0
  return {
    hasExemptRanges: env.PROXY_UNAUTHENTICATED_CLIENT_CIDRS.length > 0,
    whyNot: !holds(principal.grants, 'security:write') ? 'permission' : cannotConfirm ? 'confirmation' : null,
  }
}

/** Throws `not_found`. */
export const showKeyTrends = createHandlers(requiresOwn('api_keys:read'), async (c) => {
  const { id } = await getKey(c.env.db, getPathId(c), requireScope(c.var.principal, 'api_keys:read'))
  return c.json(keyTrends(id, await getWeek(c, id)))
})

/** Throws `not_found`. */
export const showKeyUsage7d = createHandlers(requiresOwn('api_keys:read'), async (c) => {
  const { id } = await getKey(c.env.db, getPathId(c), requireScope(c.var.principal, 'api_keys:read'))
  return c.json(keyUsage7d(id, await getWeek(c, id)))
})

/** Accounts are masked for users who do not manage them, and left out for users who see only their own keys. */
const getWeek = async (c: Ctx, keyId: string): Promise<KeyWeek> => {
  const week = await toReader(c).keyWeek(keyId, c.env.clock.now())
  if (requireScope(c.var.principal, 'api_keys:read') !== 'all') return { ...week, accounts: [] }
  if (!getHiddenFields(c.var.principal).hidesAccounts) return week
  const masked = week.accounts.map((share) => ({
    ...share,
    email: share.email && maskEmails(share.email),
  }))
  return { ...week, accounts: masked }
}
