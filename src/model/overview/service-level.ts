/** Whether requests are answered now, in one word that the overview, the footer and the browser tab share. */
import type { Bindings } from '../../boot/bindings.ts'

/**
 * `failing`: request after request fails though accounts are available; `empty`: no accounts; `blocked`: none is
 * available; `isFaultCondition`: readiness is red; `draining`: shutting down.
 */
export type ServiceLevel = 'serving' | 'failing' | 'empty' | 'blocked' | 'faulty' | 'draining'

interface Facts {
  isDraining: boolean
  isLedgerHealthy: boolean
  accounts: readonly { eligible: boolean }[]
  isFailing: boolean
}

/** The readiness route fails for `isFaultCondition` and `draining`. On PostgreSQL it can succeed despite a fault. */
export const serviceLevel = ({ isDraining, isLedgerHealthy, accounts, isFailing }: Facts): ServiceLevel => {
  if (isDraining) return 'draining'
  if (!isLedgerHealthy) return 'faulty'
  if (accounts.length === 0) return 'empty'
  if (!accounts.some(({ eligible }) => eligible)) return 'blocked'
  return isFailing ? 'failing' : 'serving'
}

export const serviceLevelNow = ({
  lifecycle,
  ledger,
  ops,
  pool,
}: Pick<Bindings, 'lifecycle' | 'ledger' | 'ops' | 'pool'>): ServiceLevel =>
  serviceLevel({
    isDraining: lifecycle.draining,
    isLedgerHealthy: ledger.healthy,
    accounts: pool.describe(),
    isFailing: ops.outage.current !== null,
  })
