/** What the accounts are called where only a name tells them apart: in lists to choose from, and where their ids are read. */
import type { Ctx } from '../bindings.ts'
import { maskEmails } from '../model/account-summary.ts'
import { blindersOf } from './requests.ts'

export interface Choice {
  id: string
  name: string
}

const ID_CHARS = 8

/**
 * All accounts by name, masked for those who do not work with them. One person may have a seat in several workspaces, all of
 * one e-mail: behind a name that others share stand the plan and the beginning of the id.
 */
export const accountChoices = (c: Ctx): Choice[] => {
  const { hidesAccounts } = blindersOf(c.var.principal)
  const accounts = c.env.pool.all().map(({ id, displayName, planType }) => {
    return { id, name: hidesAccounts ? maskEmails(displayName) : displayName, planType }
  })
  const namesakes = Map.groupBy(accounts, ({ name }) => name)
  return accounts
    .map(({ id, name, planType }) => {
      const isShared = namesakes.get(name)!.length > 1 // grouped above, by this name
      return { id, name: isShared ? `${name} (${planType}, ${id.slice(0, ID_CHARS)})` : name }
    })
    .toSorted((a, b) => a.name.localeCompare(b.name))
}
