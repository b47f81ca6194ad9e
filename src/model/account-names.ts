/** What accounts are called where only a name tells them apart: in lists to choose from, the log, reports and the overview. */
import type { Db } from '../../db/commit.ts'
import { accounts } from '../../db/schema/accounts.ts'
import { maskEmails } from './account-summary.ts'
import type { AccountView } from './account-view.ts'
import { displayName } from './accounts.ts'
import type { Blinders } from './request-view.ts'

interface Called {
  id: string
  name: string
  planType: string
}

const ID_CHARS = 8

/**
 * Names by id. One person may have a seat in several workspaces, all of one e-mail: behind a name that others share stand the
 * plan and the beginning of the id.
 */
export const tellApart = (called: readonly Called[]): ReadonlyMap<string, string> => {
  const namesakes = Map.groupBy(called, ({ name }) => name)
  return new Map(
    called.map(({ id, name, planType }) => {
      const isShared = namesakes.get(name)!.length > 1 // grouped above, by this name
      return [id, isShared ? `${name} (${planType}, ${id.slice(0, ID_CHARS)})` : name]
    }),
  )
}

/** The same accounts, each by a name of its own. */
export const namedApart = (views: readonly AccountView[]): AccountView[] => {
  const names = tellApart(
    views.map(({ accountId, displayName, planType }) => ({ id: accountId, name: displayName, planType })),
  )
  return views.map((view) => ({ ...view, displayName: names.get(view.accountId)! })) // of each there is one
}

/** Of every account there is, as those read them who are told no more than `hidesAccounts` leaves. */
export const accountNames = (
  db: Db,
  { hidesAccounts }: Pick<Blinders, 'hidesAccounts'>,
): ReadonlyMap<string, string> => {
  const { id, email, alias, planType } = accounts
  const rows = db.select({ id, email, alias, planType }).from(accounts).all()
  return tellApart(
    rows.map((row) => ({ ...row, name: hidesAccounts ? maskEmails(displayName(row)) : displayName(row) })),
  )
}
