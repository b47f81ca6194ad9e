/** `/api/accounts/:id/probe` and `/api/accounts/probe`: sends one small real request per account, then fetches the usage. */
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
import { recordAccountEvent } from '../../model/accounts/account-events.ts'
import { isInUse } from '../../model/accounts/account-state.ts'
import { usedNow } from '../../model/accounts/usage-windows.ts'
import { append } from '../../model/audit/audit.ts'
import { getWhy } from '../../upstream/account-call.ts'
import { probe } from '../../upstream/probe.ts'
import { fetchUsage } from '../../upstream/usage.ts'
import { back } from '../form-feedback.ts'

const DEFAULT_MODEL = 'gpt-5.5'

const Probe = z.strictObject({
  model: z.string().trim().min(1).max(200).optional().describe('Default: a model the account offers.'),
})

/** Throws `account_not_found`, `account_not_probable` for an account that is not in use. */
export const probeAccount = createHandlers(
  requires('accounts:write', { audit: 'account_probed' }),
  body(Probe),
  async (c) => {
    const answer = await probeOne(c, getPathId(c), c.req.valid('json').model)
    return proceed(c, answer, back(c, 'account_probed'))
  },
)

const MAX_PROBES = 100
const PROBES_AT_ONCE = 10
/** Enough for ten rounds of probes that all time out. */
const PATIENCE_SECONDS = 255

const Chosen = z.strictObject({
  accountIds: z.array(z.string().max(255)).min(1).max(MAX_PROBES).describe('The accounts to probe.'),
})

/** Answers `{status, probed, refused}`. For a single account the reason is thrown. */
export const probeAccounts = createHandlers(
  requires('accounts:write', { audit: 'account_probed' }),
  body(Chosen),
  async (c) => {
    c.env.server?.timeout(c.req.raw, PATIENCE_SECONDS)
    const ids = [...new Set(c.req.valid('json').accountIds)]
    const probed: ProbeAnswer[] = []
    const refused: Refusal[] = []
    for (let at = 0; at < ids.length; at += PROBES_AT_ONCE)
      await Promise.all(
        ids.slice(at, at + PROBES_AT_ONCE).map(async (accountId) => {
          try {
            probed.push(await probeOne(c, accountId))
          } catch (err) {
            if (!(err instanceof AppError) || ids.length === 1) throw err
            refused.push({ accountId, code: err.code, message: err.message })
          }
        }),
      )
    const served = probed.filter(({ served }) => served).length
    const done = served === ids.length ? '' : served === 0 ? '_none' : '_partly'
    return proceed(c, { status: 'probed', probed, refused }, back(c, `accounts_probed${done}`))
  },
)

interface Refusal {
  accountId: string
  code: string
  message: string
}

type ProbeAnswer = Awaited<ReturnType<typeof probeOne>>

/** Sends the request and records its result. Throws `account_not_found`, `account_not_probable`. */
const probeOne = async (c: Ctx, id: string, model?: string) => {
  const { pool, proxyDeps, clock, db } = c.env
  const before = standing(c, id)
  if (!isInUse(before)) throw new AppError('account_not_probable')
  const deps = { ...proxyDeps.upstream, credentials: proxyDeps.credentials }
  const { status, ok } = await probe(deps, id, modelFor(c, id, model))
  pool.apply(id, { kind: 'checked', at: clock.now(), ok, by: 'probe' })
  if (ok) pool.health(id, { kind: 'success', at: clock.now() })
  await fetchUsage(deps, id).then(
    (snapshot) => pool.observe(id, snapshot),
    (err: unknown) => c.env.log.info('no usage after a probe', { account: id, ...getWhy(err) }),
  )
  const who = actor(c)
  await commit(db, async (tx) => {
    await append(tx, who, 'account_probed', { target: id, details: { status, ok } })
    await recordAccountEvent(tx, { accountId: id, at: who.at, kind: 'probe', ...probeNote(status, ok) })
  })
  const after = standing(c, id)
  return {
    status: 'probed',
    served: ok,
    accountId: id,
    probeStatusCode: status,
    primaryUsedPercentBefore: before.primary,
    primaryUsedPercentAfter: after.primary,
    secondaryUsedPercentBefore: before.secondary,
    secondaryUsedPercentAfter: after.secondary,
    accountStatusBefore: before.status,
    accountStatusAfter: after.status,
  }
}

const probeNote = (status: number, ok: boolean) => ({
  result: ok ? 'served' : 'failed',
  detail: status === 0 ? 'ChatGPT could not be reached.' : `ChatGPT answered ${status}.`,
})

/** The requested model, or one the account offers. */
const modelFor = (c: Ctx, id: string, wanted: string | undefined): string => {
  if (wanted !== undefined) return wanted
  const offered = c.env.catalog.getModels(id)
  return offered && !offered.has(DEFAULT_MODEL) ? ([...offered][0] ?? DEFAULT_MODEL) : DEFAULT_MODEL
}

/** Percent used of the five-hour and the weekly window; null: not reported. Throws `account_not_found`. */
const standing = (c: Ctx, id: string) => {
  const account = c.env.pool.get(id)
  if (!account) throw new AppError('account_not_found')
  const now = c.env.clock.now()
  const used = (window: 'fiveHour' | 'weekly') => usedNow(account.usage?.windows[window] ?? null, now)
  return { status: account.state.status, primary: used('fiveHour'), secondary: used('weekly') }
}
