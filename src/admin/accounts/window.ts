/** `PUT /api/accounts/:id/limit-warmup`: whether Sluice starts an account's five-hour windows. */
import { z } from 'zod'
import { commit } from '../../../db/commit.ts'
import { actor } from '../../auth/principal.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { body } from '../../http/body.ts'
import { requires } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { getPathId } from '../../http/path-id.ts'
import { proceed } from '../../http/reply.tsx'
import { windowStartRefusal } from '../../model/accounts/preserve-floors.ts'
import { enableWindowStart } from '../../model/accounts/window-starts.ts'
import { back } from '../form-feedback.ts'

const Wish = z.strictObject({ enabled: z.boolean().describe('Whether Sluice starts its five-hour windows.') })

/** Throws `account_not_found`, `window_start_refused`. */
export const setWindowStart = createHandlers(
  requires('accounts:write', { audit: 'account_updated' }),
  body(Wish),
  async (c) => {
    const { enabled } = c.req.valid('json')
    const who = actor(c)
    const refusal = enabled ? getStartObstacle(c, getPathId(c)) : null
    if (refusal !== null) throw new AppError('window_start_refused', { message: refusal })
    await commit(c.env.db, (tx) => enableWindowStart(tx, getPathId(c), enabled, who))
    return proceed(c, { status: 'updated', enabled }, back(c, 'account_updated'))
  },
)

/** Null also where there is no such account. */
export const getStartObstacle = ({ env: { pool, clock } }: Ctx, id: string): string | null => {
  const account = pool.get(id)
  return account && windowStartRefusal(account, pool.all(), clock.now())
}
