/** What every page says while a capture runs. Guests do not see it: they send no requests. */

import type { CaptureNotice } from '../../views/capture-line.tsx'
import type { Principal } from '../auth/principal.ts'
import type { Ctx } from '../boot/bindings.ts'
import { iso } from '../lib/iso.ts'
import { holds } from '../model/users/permissions.ts'

/** null: no capture runs, or the user is not signed in. */
export const getCaptureNotice = (c: Ctx): CaptureNotice | null => {
  const principal = c.get('principal') as Principal | undefined // as: an error can occur before any gate
  if (!principal || principal.kind === 'guest') return null
  const running = c.env.captures.running()
  if (running.length === 0) return null
  const { grants } = principal
  return {
    running: running.length,
    endsAt: iso(Math.max(...running.map(({ endsAt }) => endsAt))),
    hasLink: holds(grants, 'security:write') || holds(grants, 'conversations:read'),
  }
}
