/** `/api/oauth`: ChatGPT sign-ins, to add an account or to sign in to one again. */
import { z } from 'zod'
import { actor, demand } from '../auth/principal.ts'
import { AppError } from '../errors.ts'
import { body } from '../http/body.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { originForLinks } from '../http/public-origin.ts'
import { query } from '../http/query.ts'
import { replyWithSignIn } from './new-account-reply.tsx'
import { signInValue } from './sign-in-value.ts'

const optionalId = z.string().trim().max(128).nullish()

const Start = z.strictObject({
  forceMethod: z.string().trim().max(32).nullish().describe('`device`: with a code. Default: in the browser.'),
  accountId: optionalId.describe(
    'The account to sign in again; only the same user and workspace is accepted. Default: add an account.',
  ),
  egressPoolId: optionalId.describe(
    'The pool of outbound proxies for a new account and its sign-in. Default: as the settings say.',
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

const FlowId = optionalId.describe('Which sign-in. Default: the one started last.')
const Which = z.object({ flowId: FlowId })

/** The status of one of the caller's sign-ins; without `flowId` the one started last. Throws `oauth_flow_not_found`. */
export const showSignIn = createHandlers(requires('accounts:write'), query(Which), (c) =>
  c.json(signInValue(c, c.env.signIns.status(c.var.principal.id, c.req.valid('query').flowId || null))),
)

const Completion = z.strictObject({
  flowId: FlowId,
  deviceAuthId: optionalId.describe('The same as `flowId`, under its older name.'),
  userCode: optionalId.describe('The code that was shown; any other is rejected.'),
})

/** The same, and makes sure that the device sign-in is being polled. It completes by itself. Throws `oauth_flow_not_found`. */
export const completeSignIn = createHandlers(requires('accounts:write'), body(Completion), (c) => {
  const { flowId, deviceAuthId, userCode } = c.req.valid('json')
  const { signIns } = c.env
  signIns.follow()
  const flow = signIns.status(c.var.principal.id, flowId || deviceAuthId || null)
  if (userCode && userCode !== flow.userCode) throw new AppError('oauth_flow_not_found')
  return replyWithSignIn(c, signInValue(c, flow))
})

const Cancellation = z.strictObject({ flowId: z.string().trim().min(1).max(128).describe('Which sign-in.') })

/** Cancels a pending sign-in; for one that has ended it returns the result. Throws `oauth_flow_not_found`. */
export const cancelSignIn = createHandlers(
  requires('accounts:write', { audit: 'account_sign_in_cancelled' }),
  body(Cancellation),
  (c) => replyWithSignIn(c, signInValue(c, c.env.signIns.cancel(c.req.valid('json').flowId, actor(c)))),
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
