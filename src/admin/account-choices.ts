/** The accounts in lists to choose from, and where their ids are read. */
import type { Ctx } from '../bindings.ts'
import { tellApart } from '../model/account-names.ts'
import { maskEmails } from '../model/account-summary.ts'
import { blindersOf } from './requests.ts'

export interface Choice {
  id: string
  name: string
}

/** All accounts by name, masked for those who do not work with them. */
export const accountChoices = (c: Ctx): Choice[] => {
  const { hidesAccounts } = blindersOf(c.var.principal)
  const called = c.env.pool.all().map(({ id, displayName, planType }) => {
    return { id, name: hidesAccounts ? maskEmails(displayName) : displayName, planType }
  })
  return [...tellApart(called)].map(([id, name]) => ({ id, name })).toSorted((a, b) => a.name.localeCompare(b.name))
}
