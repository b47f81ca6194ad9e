/** The users that a key or an account can belong to, for selection lists. */

import type { Choice } from '../../views/ui/select.tsx'
import type { Ctx } from '../boot/bindings.ts'
import { listPeople } from '../model/users/people.ts'
import { holds } from '../model/users/permissions.ts'

/** Active users, the signed-in one first. Empty for callers who may not give keys to others. */
export const ownerChoices = (c: Ctx): Choice[] => {
  const { principal } = c.var
  if (principal.kind !== 'account' || !holds(principal.grants, 'api_keys:assign')) return []
  return listPeople(c.env.db)
    .filter(({ row }) => row.status === 'active')
    .map(({ row: { id, username } }) => ({ id, name: username }))
    .sort((a, b) => Number(b.id === principal.id) - Number(a.id === principal.id))
}
