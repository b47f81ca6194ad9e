/** The accounts for selection lists. */

import type { Choice } from '../../views/ui/select.tsx'
import type { Ctx } from '../boot/bindings.ts'
import { naturalOrder } from '../lib/natural-order.ts'
import { getUniqueNames } from '../model/accounts/account-names.ts'
import { maskEmails } from '../model/accounts/account-summary.ts'
import { getHiddenFields } from './requests.ts'

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
