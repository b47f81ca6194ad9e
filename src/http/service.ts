/** What the footer of every page says about the server. */

import type { Service } from '../../views/footer.tsx'
import type { Principal } from '../auth/principal.ts'
import type { Ctx } from '../boot/bindings.ts'
import { iso } from '../lib/iso.ts'
import { serviceLevelNow } from '../model/overview/service-level.ts'
import { holds } from '../model/users/permissions.ts'

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
