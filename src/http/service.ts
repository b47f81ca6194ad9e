/** What the footer of every page says about the server. */
import type { Principal } from '../auth/principal.ts'
import type { Ctx } from '../boot/bindings.ts'
import { iso } from '../lib/iso.ts'
import { type ServiceLevel, serviceLevelNow } from '../model/overview/service-level.ts'
import { holds } from '../model/users/permissions.ts'

export interface Service {
  level: ServiceLevel
  /** A `routingStrategy` of the settings. */
  strategy: string
  /** ISO 8601; null: usage was never read. */
  usageAt: string | null
  /** ISO 8601: when this was read. */
  now: string
}

/** null: an error came before any gate, or it is hidden from this user. */
export const serviceFor = (c: Ctx): Service | null => {
  const principal = c.get('principal') as Principal | undefined // as: an error can occur before any gate
  return principal && holds(principal.grants, 'dashboard:read') ? getService(c) : null
}

export const getService = ({ env }: Ctx): Service => {
  const usageAt = Math.max(0, ...env.pool.all().map(({ usage }) => usage?.at ?? 0))
  return {
    level: serviceLevelNow(env),
    strategy: env.settings.current().routingStrategy,
    usageAt: usageAt === 0 ? null : iso(usageAt),
    now: iso(env.clock.now()),
  }
}
