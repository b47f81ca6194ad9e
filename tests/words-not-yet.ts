/** Files whose wording is still to be revised, by `words.test.ts`. Entries are only ever removed. */

/** With banned phrases. */
export const NOT_YET: ReadonlySet<string> = new Set<string>([
  'src/admin/account-export.ts',
  'src/admin/account-import.ts',
  'src/admin/live.ts',
  'src/admin/settings-pages.ts',
  'src/model/redemption-record.ts',
  'src/ops/folder-checks.ts',
  'src/ops/proxy-checks.ts',
  'src/ops/upstream-checks.ts',
  'src/settings/schema.ts',
  'views/logs/report.tsx',
  'views/measures.ts',
  'views/overview/first-steps.tsx',
  'views/settings.tsx',
  'views/settings/network.tsx',
  'views/settings/words.ts',
])

/** That call a user an account. */
export const USERS_NOT_YET: ReadonlySet<string> = new Set<string>([])
