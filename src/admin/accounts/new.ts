/**
 * `/accounts/new` and `/api/oauth`: ChatGPT sign-ins, to add an account or to sign in to one again, each way a page
 * and, with script, a dialog over the current page.
 */

import { z } from 'zod'
import { NewBrowser } from '../../../views/accounts/new-browser.tsx'
import { NewDevice } from '../../../views/accounts/new-device.tsx'
import type { KnownAccount, SignInValue } from '../../../views/accounts/new-frame.tsx'
import { NewImport } from '../../../views/accounts/new-import.tsx'
import { isLocal } from '../../auth/caller.ts'
import { actor, demand } from '../../auth/principal.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { body } from '../../http/body.ts'
import { requires } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { originForLinks } from '../../http/public-origin.ts'
import { query } from '../../http/query.ts'
import { reply } from '../../http/reply.tsx'
import { iso } from '../../lib/iso.ts'
import { displayName, getAccount } from '../../model/accounts/accounts.ts'
import { type FlowRow, wasCancelled } from '../../model/accounts/oauth-flows.ts'
import { poolChoices } from '../egress.ts'
import { getFormFeedback } from '../form-feedback.ts'
import { draftValue } from './import.ts'
import { replyWithSignIn } from './new-reply.tsx'

const signInValue = (c: Ctx, flow: FlowRow): SignInValue => {
  const { signIns, clock } = c.env
  const now = clock.now()
  const isDevice = flow.method === 'device'
  return {
    flowId: flow.id,
    method: flow.method,
    status: flow.status,
    errorMessage: flow.errorMessage,
    isCancelled: wasCancelled(flow),
    target: flow.accountId === null ? null : knownAccount(c, flow.accountId),
    egressPoolId: flow.egressPoolId,
    account: flow.resultAccountId === null ? null : knownAccount(c, flow.resultAccountId),
    isPaused: c.env.pool.get(flow.resultAccountId ?? '')?.state.status === 'paused',
    ...signIns.getOffer(flow),
    callbackUrl: isDevice ? null : signIns.callbackUrl,
    callback: isDevice ? null : !signIns.isListening ? 'port_busy' : isLocal(c) ? 'listening' : 'remote',
    userCode: flow.userCode,
    deviceAuthId: isDevice ? flow.id : null,
    intervalSeconds: flow.intervalSeconds,
    expiresInSeconds: Math.max(0, Math.ceil((flow.expiresAt - now) / 1000)),
    expiresAt: iso(flow.expiresAt),
    generatedAt: iso(now),
  }
}

/** Null if the account was deleted. */
const knownAccount = (c: Ctx, id: string): KnownAccount | null => {
  const row = c.env.pool.get(id)?.row
  return row ? { accountId: id, displayName: displayName(row), planType: row.planType } : null
}

/** The account of `?account=`, to sign in again. Throws `account_not_found`. */
const targetAccount = async (c: Ctx, id: string): Promise<KnownAccount> => {
  const row = await getAccount(c.env.db, id)
  return { accountId: id, displayName: displayName(row), planType: row.planType }
}

const optionalId = z.string().trim().max(128).nullish()

const Start = z.strictObject({
  forceMethod: z.string().trim().max(32).nullish().describe('`device` signs in with a code. Default: in the browser.'),
  accountId: optionalId.describe(
    'The account to sign in again; only the same user and workspace is accepted. Default: add an account.',
  ),
  egressPoolId: optionalId.describe(
    'The pool of outbound proxies for a new account and its sign-in. Default: the one in the settings.',
  ),
})

/**
 * Starts a sign-in: with a code when `forceMethod` is `device`, else in the browser. With `accountId` only the same user and
 * workspace is accepted. Throws `account_not_found`, `device_auth_unavailable`, `device_auth_failed`, `upstream_unreachable`, `proxy_pool_not_found`,
 * `egress_unavailable`.
 */
export const startSignIn = createHandlers(
  requires('accounts:write', { audit: 'account_sign_in_started' }),
  body(Start),
  async (c) => {
    const { forceMethod, accountId, egressPoolId } = c.req.valid('json')
    if (egressPoolId) demand(c.var.principal, 'ops:write') // as for any binding
    const flow = await c.env.signIns.begin({
      method: forceMethod === 'device' ? 'device' : 'browser',
      accountId: accountId || null,
      egressPoolId: egressPoolId || null,
      actor: actor(c),
      home: originForLinks(c),
    })
    return replyWithSignIn(c, signInValue(c, flow))
  },
)

const FlowId = optionalId.describe('ID of the sign-in. Default: the newest one.')
const Which = z.object({ flowId: FlowId })

/** The status of one of the user's sign-ins. Without `flowId`, the newest one. Throws `oauth_flow_not_found`. */
export const showSignIn = createHandlers(requires('accounts:write'), query(Which), async (c) =>
  c.json(signInValue(c, await c.env.signIns.status(c.var.principal.id, c.req.valid('query').flowId || null))),
)

const Completion = z.strictObject({
  flowId: FlowId,
  deviceAuthId: optionalId.describe('The older name of `flowId`.'),
  userCode: optionalId.describe('The code that was shown; any other is rejected.'),
})

/** The same, and makes sure that the device sign-in is being polled. It completes by itself. Throws `oauth_flow_not_found`. */
export const completeSignIn = createHandlers(requires('accounts:write'), body(Completion), async (c) => {
  const { flowId, deviceAuthId, userCode } = c.req.valid('json')
  const { signIns } = c.env
  await signIns.follow()
  const flow = await signIns.status(c.var.principal.id, flowId || deviceAuthId || null)
  if (userCode && userCode !== flow.userCode) throw new AppError('oauth_flow_not_found')
  return replyWithSignIn(c, signInValue(c, flow))
})

const Cancellation = z.strictObject({ flowId: z.string().trim().min(1).max(128).describe('ID of the sign-in.') })

/** Cancels a pending sign-in; for one that has ended it returns the result. Throws `oauth_flow_not_found`. */
export const cancelSignIn = createHandlers(
  requires('accounts:write', { audit: 'account_sign_in_cancelled' }),
  body(Cancellation),
  async (c) => replyWithSignIn(c, signInValue(c, await c.env.signIns.cancel(c.req.valid('json').flowId, actor(c)))),
)

const Pasted = z.strictObject({
  callbackUrl: z.string().trim().min(1).max(8192).describe('The full URL the browser ended on.'),
  flowId: optionalId.describe('The sign-in it must belong to. Default: any of yours.'),
})

/** Takes the URL that the browser ended on. Throws `invalid_callback` for one that belongs to no sign-in, or to another. */
export const pasteCallback = createHandlers(
  requires('accounts:write', { audit: 'account_signed_in' }),
  body(Pasted),
  async (c) => {
    const { callbackUrl, flowId } = c.req.valid('json')
    const from = { who: c.var.principal.id, flowId: flowId || null, address: c.var.clientIp }
    return replyWithSignIn(c, signInValue(c, await c.env.signIns.receive(callbackUrl, from)))
  },
)

const id = z.string().max(128).optional()
const Asked = z.object({ flow: id, account: id, draft: id, waiting: id })

const gate = () => requires('accounts:write')

export const showBrowserSignIn = createHandlers(gate(), query(Asked), async (c) =>
  (await isStillWaiting(c, c.req.valid('query')))
    ? c.body(null, 204)
    : reply(c, await signInPage(c, c.req.valid('query'), 'browser'), NewBrowser),
)

export const showDeviceSignIn = createHandlers(gate(), query(Asked), async (c) =>
  (await isStillWaiting(c, c.req.valid('query')))
    ? c.body(null, 204)
    : reply(c, await signInPage(c, c.req.valid('query'), 'device'), NewDevice),
)

export const showImport = createHandlers(gate(), query(Asked), (c) => {
  const { draft } = c.req.valid('query')
  const value = draft ? draftValue(c, draft) : null
  return reply(c, { draft: value, problem: getFormFeedback(c).problem }, NewImport)
})

/**
 * Without a flow, it shows the user's pending sign-in, so that reopening the dialog does not start another, or else a
 * start button. Throws `oauth_flow_not_found`, `account_not_found`.
 */
const signInPage = async (c: Ctx, { flow, account }: z.output<typeof Asked>, method: SignInValue['method']) => {
  const target = await getTarget(c, account)
  const who = c.var.principal.id
  const row = flow
    ? await c.env.signIns.status(who, flow)
    : await c.env.signIns.pending({ who, method, accountId: target?.accountId ?? null })
  const value = row && signInValue(c, row)
  if (value && value.method !== method) throw new AppError('oauth_flow_not_found')
  return {
    flow: value,
    target: value ? value.target : target,
    pools: (await poolChoices(c)) ?? [],
    problem: getFormFeedback(c).problem,
  }
}

/** A waiting page polls with `waiting` and gets 204 until something changes, because users type into it. */
const isStillWaiting = async (c: Ctx, { flow, waiting }: z.output<typeof Asked>): Promise<boolean> =>
  waiting !== undefined &&
  flow !== undefined &&
  (await c.env.signIns.status(c.var.principal.id, flow)).status === 'pending'

const getTarget = async (c: Ctx, account: string | undefined) => (account ? await targetAccount(c, account) : null)
