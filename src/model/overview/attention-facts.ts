/** The facts for the attention list, read from the server's objects. They are not limited to what a user may see. */
import { MINUTE_MS } from '../../lib/durations.ts'
import type { Settings } from '../../settings/schema.ts'
import type { AccountView } from '../accounts/account-view.ts'
import { type ResetCredit, redeemable } from '../accounts/reset-credits.ts'
import type { FailingEndpoint } from '../egress/routes.ts'
import type { RejectedLately } from '../log/rejected-clients.ts'
import type { Facts } from './attention.ts'
import type { KeyFact } from './overview.ts'

export interface FactSources {
  lifecycle: { startedAt: number }
  ledger: { readonly healthy: boolean; readonly unwrittenTurns: number }
  ops: {
    lostDatabase(): unknown
    outage: { readonly current: Facts['outage'] }
    backups: { readonly failure: string | null }
  }
  settings: { current(): Readonly<Settings> }
  env: { DASHBOARD_AUTH_MODE: string; PROXY_UNAUTHENTICATED_CLIENT_CIDRS: readonly unknown[] }
  overflow: { recent(): Facts['overflow'] }
  egress: { failing(): FailingEndpoint[] }
  pool: { get(id: string): unknown }
  resetCredits: { of(accountId: string): readonly ResetCredit[] | null }
}

interface Read {
  accounts: AccountView[]
  keys: KeyFact[]
  rejected: readonly RejectedLately[]
  lastBackupAt: number | null | undefined
  now: number
}

/** The job runs every ten minutes. The rest is time to make the backup. */
const FIRST_BACKUP_MS = 15 * MINUTE_MS

/** The caller must set `isAuditBroken` and `failingChannels`. */
export const collectFacts = (sources: FactSources, { accounts, now, ...read }: Read): Facts => {
  const { lifecycle, ledger, ops, env, overflow, egress, resetCredits } = sources
  const settings = sources.settings.current()
  return {
    accounts,
    ...read,
    isLedgerHealthy: ledger.healthy,
    isDatabaseLost: ops.lostDatabase() !== null,
    outage: accounts.some(({ eligible }) => eligible) ? ops.outage.current : null,
    isChosenAccountGone: isChosenAccountGone(sources),
    overflow: overflow.recent(),
    failingProxies: egress.failing(),
    unwritten: ledger.unwrittenTurns,
    isDashboardOpen: env.DASHBOARD_AUTH_MODE === 'disabled',
    isKeyless: !settings.apiKeyAuthEnabled && env.PROXY_UNAUTHENTICATED_CLIENT_CIDRS.length > 0,
    isFirstBackupComing: settings.backupIntervalHours > 0 && now - lifecycle.startedAt < FIRST_BACKUP_MS,
    backupFailure: ops.backups.failure,
    credits: accounts.flatMap(({ accountId }) =>
      redeemable(resetCredits.of(accountId) ?? [], now).map(({ id, expiresAt }) => ({ id, accountId, expiresAt })),
    ),
    thresholds: {
      minAccounts: settings.alertMinAccounts,
      accountPercent: settings.alertAccountPercent,
      blockedHours: settings.alertBlockedHours,
    },
    isAuditBroken: false,
    failingChannels: [],
    now,
  }
}

const isChosenAccountGone = ({ settings, pool }: Pick<FactSources, 'settings' | 'pool'>): boolean => {
  const { routingStrategy, singleAccountId } = settings.current()
  return routingStrategy === 'single_account' && singleAccountId !== null && !pool.get(singleAccountId)
}
