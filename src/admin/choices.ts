/** Selection lists of accounts, owners and models, limited to what the user may see. */
import type { Choice } from '../../views/ui/select.tsx'
import type { Ctx } from '../boot/bindings.ts'
import { getObject, getObjects, getText, parseJson } from '../lib/json.ts'
import { naturalOrder } from '../lib/natural-order.ts'
import { decodeUtf8 } from '../lib/utf8.ts'
import { getUniqueNames } from '../model/accounts/account-names.ts'
import { maskEmails } from '../model/accounts/account-summary.ts'
import type { ModelPolicy } from '../model/catalog/catalog.ts'
import { listPeople } from '../model/users/people.ts'
import { holds } from '../model/users/permissions.ts'
import { getHiddenFields } from './visibility.ts'

/** All accounts by name, masked for users who do not manage them. */
export const accountChoices = (c: Ctx): Choice[] => {
  const { hidesAccounts } = getHiddenFields(c.var.principal)
  const called = c.env.pool.all().map(({ id, displayName, planType }) => {
    return { id, name: hidesAccounts ? maskEmails(displayName) : displayName, planType }
  })
  return [...getUniqueNames(called)]
    .map(([id, name]) => ({ id, name }))
    .toSorted((a, b) => naturalOrder(a.name, b.name))
}

/** Active users, the signed-in one first. Empty for callers who may not give keys to others. */
export const ownerChoices = async (c: Ctx): Promise<Choice[]> => {
  const { principal } = c.var
  if (principal.kind !== 'account' || !holds(principal.grants, 'api_keys:assign')) return []
  return (await listPeople(c.env.db))
    .filter(({ row }) => row.status === 'active')
    .map(({ row: { id, username } }) => ({ id, name: username }))
    .sort((a, b) => Number(b.id === principal.id) - Number(a.id === principal.id))
}

interface ModelChoice {
  id: string
  /** The same as the id, as used by clients and logs. */
  name: string
}

/** The models a client with this policy gets from `GET /v1/models`, in the same order; null: all. */
export const listedModels = (c: Ctx, policy: ModelPolicy | null): ModelChoice[] => {
  const { bytes } = c.env.catalog.public(policy)
  const { data } = getObject(parseJson(decodeUtf8(bytes)))
  return getObjects(data).map((entry) => ({ id: getText(entry.id), name: getText(entry.id) }))
}
