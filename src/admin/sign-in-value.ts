/** A ChatGPT sign-in as shown: the next step, its expiry, and its result. */

import type { KnownAccount, SignInValue } from '../../views/accounts/new-frame.tsx'
import { isLocal } from '../auth/caller.ts'
import type { Ctx } from '../boot/bindings.ts'
import { iso } from '../lib/iso.ts'
import { displayName, getAccount } from '../model/accounts/accounts.ts'
import { type FlowRow, wasCancelled } from '../model/accounts/oauth-flows.ts'

export const signInValue = (c: Ctx, flow: FlowRow): SignInValue => {
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

/** Null when it was deleted. */
const knownAccount = (c: Ctx, id: string): KnownAccount | null => {
  const row = c.env.pool.get(id)?.row
  return row ? { accountId: id, displayName: displayName(row), planType: row.planType } : null
}

/** The account of `?account=`, to sign in again. Throws `account_not_found`. */
export const targetAccount = (c: Ctx, id: string): KnownAccount => {
  const row = getAccount(c.env.db, id)
  return { accountId: id, displayName: displayName(row), planType: row.planType }
}
