/** `/keys`: the pages about API keys; each shows a value that JSON clients can get too. */
import { KeyPage, type KeyProps } from '../../views/keys/detail.tsx'
import type { KeyChoices } from '../../views/keys/form.tsx'
import { KeysPage, type KeysProps } from '../../views/keys/list.tsx'
import { EditKeyPage, type EditKeyProps, NewKeyPage, type NewKeyProps } from '../../views/keys/new.tsx'
import { EXAMPLE_MODEL } from '../../views/keys/snippets.ts'
import { canChangeOwnKeys, requireKeyScope, requireScope } from '../auth/view-scope.ts'
import type { Ctx } from '../boot/bindings.ts'
import { open, requiresOwn, writesKeys } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { getPathId } from '../http/path-id.ts'
import { originForLinks, publicOrigin } from '../http/public-origin.ts'
import { query } from '../http/query.ts'
import { reply } from '../http/reply.tsx'
import { iso } from '../lib/iso.ts'
import { getDistinctTags } from '../model/accounts/account-filter.ts'
import { EFFORTS } from '../model/catalog/efforts.ts'
import { shownKey } from '../model/keys/api-key-view.ts'
import { getKey, listKeys, type StoredKey } from '../model/keys/api-keys.ts'
import { SERVICE_TIERS } from '../model/keys/key-input.ts'
import { arrangeKeys, KeysQuery, keyState } from '../model/keys/key-list.ts'
import { keyTrends, keyUsage7d } from '../model/keys/key-trends.ts'
import { sourceNames } from '../model/sources/source-rows.ts'
import { mayWrite } from '../model/users/permissions.ts'
import { accountChoices } from './account-choices.ts'
import { getFormFeedback } from './form-feedback.ts'
import { listedModels } from './key-models.ts'
import { optionalKeys } from './key-requirement.ts'
import { getWeek } from './key-week.ts'
import { ownerChoices } from './owner-choices.ts'
import { getHiddenFields } from './requests.ts'

/** More would exceed the page size limit. */
const PAGE_SIZE = 20

export const showKeys = createHandlers(requiresOwn('api_keys:read'), query(KeysQuery), (c) => {
  const now = c.env.clock.now()
  const asked = c.req.valid('query')
  const scope = requireScope(c.var.principal, 'api_keys:read')
  const all = listKeys(c.env.db, scope).map((row) => shownKey(row, now, scope))
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

/** The page's former name. */
export const goToKeys = createHandlers(open('redirect to the keys'), (c) => c.redirect('/keys', 301))

export const showNewKey = createHandlers(writesKeys(), (c) => {
  const scope = requireKeyScope(c.var.principal)
  const isFirst = listKeys(c.env.db, scope).length === 0
  const props: NewKeyProps = {
    choices: choicesFor(c),
    optional: isFirst ? optionalKeys(c) : null,
    problem: getFormFeedback(c).problem,
  }
  return reply(c, props, NewKeyPage)
})

/** Throws `not_found`. */
export const showKey = createHandlers(requiresOwn('api_keys:read'), async (c) => {
  const { db, clock } = c.env
  const scope = requireScope(c.var.principal, 'api_keys:read')
  const row = getKey(db, getPathId(c), scope)
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
    sourceNames: row.assignedSourceIds ? sourceChoices(c) : [],
    isOwn: scope !== 'all',
    canWrite: canChangeKeys(c),
    ...getFormFeedback(c),
  }
  return reply(c, props, KeyPage)
})

/** Throws `not_found`. */
export const showEditKey = createHandlers(writesKeys(), (c) => {
  const scope = requireKeyScope(c.var.principal)
  const row = getKey(c.env.db, getPathId(c), scope)
  const props: EditKeyProps = {
    apiKey: shownKey(row, c.env.clock.now(), scope),
    choices: choicesFor(c),
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

/** The connect texts of this key, without the key itself. */
export const connectionFor = (c: Ctx, row: Pick<StoredKey, 'keyHash' | 'enforcedModel' | 'allowedModels'>) => {
  const models = listedModels(c, c.env.keys.byHash(row.keyHash))
  const only = row.enforcedModel ?? (row.allowedModels?.length === 1 ? row.allowedModels[0] : undefined)
  return {
    baseUrl: originForLinks(c),
    isGuess: publicOrigin(c) === null,
    model: only ?? models[0]?.id ?? row.allowedModels?.[0] ?? EXAMPLE_MODEL,
  }
}

const sourceChoices = (c: Ctx) => [...sourceNames(c.env.db)].map(([id, name]) => ({ id, name }))

/** The options of the form; owners only for users who may assign keys. */
const choicesFor = (c: Ctx): KeyChoices => {
  const { limits, models, expiresDays } = c.env.settings.current().memberKeyDefaults
  const isOwn = canChangeOwnKeys(c.var.principal)
  const isBlind = getHiddenFields(c.var.principal).hidesAccounts
  return {
    models: listedModels(c, null).filter(({ id }) => !isOwn || models === null || models.includes(id)),
    accounts: isBlind ? [] : accountChoices(c),
    tags: isBlind ? [] : getDistinctTags(c.env.pool.all()),
    sources: isBlind ? [] : sourceChoices(c),
    owners: ownerChoices(c),
    efforts: EFFORTS,
    tiers: SERVICE_TIERS,
    own: isOwn ? { limits, expiresDays } : null,
  }
}
