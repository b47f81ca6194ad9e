/** `POST /v1/warmup`: starts the five-hour windows of the key's accounts, with one small model request each. */

import { z } from 'zod'
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { withInput } from '../../http/body.ts'
import { IDLE_SECONDS } from '../../lib/idle-limit.ts'
import { inLanes } from '../../lib/lanes.ts'
import { isInUse } from '../../model/accounts/account-state.ts'
import { pingModel } from '../../model/accounts/ping-model.ts'
import { isUnstarted } from '../../model/accounts/usage-windows.ts'
import { isInScope } from '../../model/keys/key-scope.ts'
import { invalid, parseAt } from '../formats/invalid-request.ts'
import { OTHER_BODY_BYTES, readBody } from '../ingress/raw-body.ts'
import type { LiveAccount } from '../pool/live-account.ts'
import { ping } from '../relay/ping.ts'
import { turnRoute } from '../relay/relay.ts'

const MODES = ['normal', 'strict', 'force'] as const
type Mode = (typeof MODES)[number]
const LANES = 5

const Wish = z.strictObject({
  mode: z
    .string()
    .describe('`normal` skips accounts whose window has started, `strict` rejects them, `force` uses all.'),
})

/** What became of one account; a skipped one has no request. */
interface Report {
  mode: Mode
  total_accounts: number
  submitted: { account_id: string; request_id: string; model: string }[]
  skipped: { account_id: string; reason: 'ineligible_primary_usage' }[]
  failed: { account_id: string; error_code: string; error_message: string }[]
}

/** 200 also when some fail. Throws `warmup_ineligible` in strict mode, before anything is sent. */
const warmUp = async (c: Ctx, mode: Mode): Promise<Response> => {
  const { pool, clock } = c.env
  const { key } = c.var.client
  const scope = key?.scope ?? null
  const targets = pool.all().filter((account) => isInUse(account.state) && isInScope(scope, account))
  const now = clock.now()
  const chosen = mode === 'force' ? targets : targets.filter(({ usage }) => isUnstarted(usage, now))
  if (mode === 'strict' && chosen.length < targets.length) throw ineligible(targets.length - chosen.length)
  const skipped = targets.filter((target) => !chosen.includes(target))
  const report: Report = {
    mode,
    total_accounts: targets.length,
    submitted: [],
    skipped: skipped.map(({ id }) => ({ account_id: id, reason: 'ineligible_primary_usage' })),
    failed: [],
  }
  c.env.server?.timeout(c.req.raw, 0)
  await inLanes(chosen, LANES, (account) => warmUpOne(c, account, report))
  return c.json(report)
}

const warmUpOne = async (c: Ctx, { id }: LiveAccount, report: Report): Promise<void> => {
  const { env, req } = c
  if (req.raw.signal.aborted) return
  const { client } = c.var
  const requestId = env.random.id('req')
  const { model, effort } = pingModel(env.catalog, id, client.key)
  const { signal, headers } = req.raw
  try {
    await ping(env, { accountId: id, model, effort, client, headers, requestId, route: '/v1/warmup', signal })
    report.submitted.push({ account_id: id, request_id: requestId, model })
  } catch (err) {
    const { code, message, extra } = AppError.from(err)
    report.failed.push({ account_id: id, error_code: extra.upstream?.code ?? code, error_message: message })
  }
}

const ineligible = (count: number): AppError =>
  new AppError('warmup_ineligible', {
    message: `The five-hour window of ${count === 1 ? '1 account' : `${count} accounts`} has started or is unknown.`,
    param: 'mode',
  })

/** Throws `invalid_request_error`. */
const getMode = (name: string): Mode => {
  const mode = MODES.find((known) => known === name)
  if (!mode) throw invalid('mode', `Invalid warmup mode. Supported values: ${MODES.join(', ')}.`)
  return mode
}

const byBody = turnRoute(async (c) => {
  const { json, hold } = await readBody(c.req.raw, { env: c.env, maxBytes: OTHER_BODY_BYTES, tooLargeStatus: 413 })
  hold.release()
  c.env.server?.timeout(c.req.raw, IDLE_SECONDS)
  await c.get('passAgain')(c)
  return warmUp(c, getMode(parseAt(Wish, json).mode))
})

const [key, capability, serve] = byBody
export const warmUpByBody = [key, capability, withInput(serve, { in: 'body', schema: Wish })] as const

export const warmUpByPath = turnRoute((c) => warmUp(c, getMode(c.req.param('mode') ?? '')))
