/** Unambiguous account names for lists, the log, reports and the overview. */
import type { Db } from '../../../db/commit.ts'
import { accounts } from '../../../db/schema/accounts.ts'
import type { HiddenFields } from '../log/request-view.ts'
import { maskEmails } from './account-summary.ts'
import type { AccountView } from './account-view.ts'
import { displayName } from './accounts.ts'

interface Called {
  id: string
  name: string
  planType: string
}

const ID_CHARS = 8

/**
 * Names by id. One user may have seats in several workspaces with the same e-mail, so shared names get the plan and the
 * start of the id.
 */
export const getUniqueNames = (called: readonly Called[]): ReadonlyMap<string, string> => {
  const namesakes = Map.groupBy(called, ({ name }) => name)
  return new Map(
    called.map(({ id, name, planType }) => {
      const isShared = namesakes.get(name)!.length > 1 // grouped above by this name
      return [id, isShared ? `${name} (${planType}, ${id.slice(0, ID_CHARS)})` : name]
    }),
  )
}

/** The same accounts with unambiguous names. */
export const withUniqueNames = (views: readonly AccountView[]): AccountView[] => {
  const names = getUniqueNames(
    views.map(({ accountId, displayName, planType }) => ({ id: accountId, name: displayName, planType })),
  )
  return views.map((view) => ({ ...view, displayName: names.get(view.accountId)! })) // every view has a name
}

/** Names of all accounts, as visible under `hidesAccounts`. */
export const accountNames = async (
  db: Db,
  { hidesAccounts }: Pick<HiddenFields, 'hidesAccounts'>,
): Promise<ReadonlyMap<string, string>> => {
  const { id, email, alias, planType } = accounts
  const rows = await db.select({ id, email, alias, planType }).from(accounts).all()
  return getUniqueNames(
    rows.map((row) => ({ ...row, name: hidesAccounts ? maskEmails(displayName(row)) : displayName(row) })),
  )
}
