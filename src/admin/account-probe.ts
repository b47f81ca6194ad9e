/** `POST /api/accounts/:id/probe`: one small real turn, and the usage right after it. */
import { z } from 'zod'
import { commit } from '../../db/commit.ts'
import { actor } from '../auth/principal.ts'
import type { Ctx } from '../bindings.ts'
import { AppError } from '../errors.ts'
import { body } from '../http/body.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { idOf } from '../http/path-id.ts'
import { proceed } from '../http/reply.tsx'
import { noteAccountEvent } from '../model/account-events.ts'
import { isInUse } from '../model/account-state.ts'
import { append } from '../model/audit.ts'
import { usedNow } from '../model/usage-windows.ts'
import { whyOf } from '../upstream/ask.ts'
import { probe } from '../upstream/probe.ts'
import { fetchUsage } from '../upstream/usage.ts'
import { back } from './back.ts'

const DEFAULT_MODEL = 'gpt-5.5'

const Probe = z.strictObject({
  model: z.string().trim().min(1).max(200).optional().describe('Absent: one that the account offers.'),
})

/** Throws `account_not_found`, `account_not_probable` for an account that is out of use. */
export const probeAccount = createHandlers(
  requires('accounts:write', { audit: 'account_probed' }),
  body(Probe),
  async (c) => {
    const { pool, plane, clock, db } = c.env
    const id = idOf(c)
    const before = standing(c, id)
    if (!isInUse(before)) throw new AppError('account_not_probable')
    const deps = { ...plane.upstream, credentials: plane.credentials }
    const { status, ok } = await probe(deps, id, modelFor(c, id, c.req.valid('json').model))
    pool.apply(id, { kind: 'checked', at: clock.now(), ok })
    if (ok) pool.health(id, { kind: 'success', at: clock.now() })
    await fetchUsage(deps, id).then(
      (snapshot) => pool.observe(id, snapshot),
      (err: unknown) => c.env.log.info('no usage after a probe', { account: id, ...whyOf(err) }),
    )
    const who = actor(c)
    commit(db, (tx) => {
      append(tx, who, 'account_probed', { target: id, details: { status, ok } })
      noteAccountEvent(tx, { accountId: id, at: who.at, kind: 'probe', ...probeNote(status, ok) })
    })
    const after = standing(c, id)
    const answer = {
      status: 'probed',
      accountId: id,
      probeStatusCode: status,
      primaryUsedPercentBefore: before.primary,
      primaryUsedPercentAfter: after.primary,
      secondaryUsedPercentBefore: before.secondary,
      secondaryUsedPercentAfter: after.secondary,
      accountStatusBefore: before.status,
      accountStatusAfter: after.status,
    }
    return proceed(c, answer, back(c, ok ? 'account_probed' : 'account_probe_failed'))
  },
)

const probeNote = (status: number, ok: boolean) => ({
  result: ok ? 'served' : 'failed',
  detail: status === 0 ? 'The upstream could not be reached.' : `The upstream answered ${status}.`,
})

/** One that the account offers, unless the operator says which. */
const modelFor = (c: Ctx, id: string, wanted: string | undefined): string => {
  if (wanted !== undefined) return wanted
  const offered = c.env.catalog.modelsOf(id)
  return offered && !offered.has(DEFAULT_MODEL) ? ([...offered][0] ?? DEFAULT_MODEL) : DEFAULT_MODEL
}

/** Percent used of the five-hour and of the weekly window; null: not reported. Throws `account_not_found`. */
const standing = (c: Ctx, id: string) => {
  const account = c.env.pool.get(id)
  if (!account) throw new AppError('account_not_found')
  const now = c.env.clock.now()
  const used = (window: 'fiveHour' | 'weekly') => usedNow(account.usage?.windows[window] ?? null, now)
  return { status: account.state.status, primary: used('fiveHour'), secondary: used('weekly') }
}
