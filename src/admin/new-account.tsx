/** `/accounts/new`: the ways to add an account, each a page and, with script, a dialog over the current page. */
import { z } from 'zod'
import { NewBrowser } from '../../views/accounts/new-browser.tsx'
import { NewDevice } from '../../views/accounts/new-device.tsx'
import type { SignInValue } from '../../views/accounts/new-frame.tsx'
import { NewImport } from '../../views/accounts/new-import.tsx'
import type { Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { query } from '../http/query.ts'
import { reply } from '../http/reply.tsx'
import { draftValue } from './account-import.ts'
import { poolChoices } from './egress.ts'
import { getFormFeedback } from './form-feedback.ts'
import { signInValue, targetAccount } from './sign-in-value.ts'

const id = z.string().max(128).optional()
const Asked = z.object({ flow: id, account: id, draft: id, waiting: id })

const gate = () => requires('accounts:write')

export const showBrowserSignIn = createHandlers(gate(), query(Asked), (c) =>
  isStillWaiting(c, c.req.valid('query'))
    ? c.body(null, 204)
    : reply(c, signInPage(c, c.req.valid('query'), 'browser'), NewBrowser),
)

export const showDeviceSignIn = createHandlers(gate(), query(Asked), (c) =>
  isStillWaiting(c, c.req.valid('query'))
    ? c.body(null, 204)
    : reply(c, signInPage(c, c.req.valid('query'), 'device'), NewDevice),
)

export const showImport = createHandlers(gate(), query(Asked), (c) => {
  const { draft } = c.req.valid('query')
  const value = draft ? draftValue(c, draft) : null
  return reply(c, { draft: value, problem: getFormFeedback(c).problem }, NewImport)
})

/**
 * Without a flow it shows the user's pending one, so that reopening the dialog starts no other, or a start button.
 * Throws `oauth_flow_not_found`, `account_not_found`.
 */
const signInPage = (c: Ctx, { flow, account }: z.output<typeof Asked>, method: SignInValue['method']) => {
  const target = getTarget(c, account)
  const who = c.var.principal.id
  const row = flow
    ? c.env.signIns.status(who, flow)
    : c.env.signIns.pending({ who, method, accountId: target?.accountId ?? null })
  const value = row && signInValue(c, row)
  if (value && value.method !== method) throw new AppError('oauth_flow_not_found')
  return {
    flow: value,
    target: value ? value.target : target,
    pools: poolChoices(c) ?? [],
    problem: getFormFeedback(c).problem,
  }
}

/** A waiting page polls with `waiting` and gets 204 until something changes, because users type into it. */
const isStillWaiting = (c: Ctx, { flow, waiting }: z.output<typeof Asked>): boolean =>
  waiting !== undefined && flow !== undefined && c.env.signIns.status(c.var.principal.id, flow).status === 'pending'

const getTarget = (c: Ctx, account: string | undefined) => (account ? targetAccount(c, account) : null)
