/** Files whose wording is still to be revised, by `words.test.ts`. Entries are only ever removed. */

/** With banned phrases. */
export const NOT_YET: ReadonlySet<string> = new Set<string>([
  'src/admin/account-export.ts',
  'src/admin/account-import.ts',
  'src/admin/live.ts',
  'src/model/redemption-record.ts',
  'views/overview/first-steps.tsx',
])

/** That call a user an account. */
export const USERS_NOT_YET: ReadonlySet<string> = new Set<string>([])
