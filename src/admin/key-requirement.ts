/** Whether clients need a key, for the key pages: what is not enforced otherwise, and who can change it. */

import type { OptionalKeys } from '../../views/keys/optional.tsx'
import type { Ctx } from '../boot/bindings.ts'
import { holds } from '../model/users/permissions.ts'

/** null: every client needs a key. */
export const optionalKeys = ({ env: { env, settings }, var: { principal } }: Ctx): OptionalKeys | null => {
  if (settings.current().apiKeyAuthEnabled) return null
  const cannotConfirm = principal.kind === 'account' && principal.stepUpMethods.length === 0
  return {
    hasExemptRanges: env.PROXY_UNAUTHENTICATED_CLIENT_CIDRS.length > 0,
    whyNot: !holds(principal.grants, 'security:write') ? 'permission' : cannotConfirm ? 'confirmation' : null,
  }
}
