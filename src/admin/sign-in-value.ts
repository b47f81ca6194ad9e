/** A ChatGPT sign-in as shown: the next step, its expiry, and its result. */
import { isLocal } from '../auth/caller.ts'
import type { Ctx } from '../boot/bindings.ts'
import { iso } from '../lib/iso.ts'
import { displayName, getAccount } from '../model/accounts/accounts.ts'
import { type FlowRow, wasCancelled } from '../model/accounts/oauth-flows.ts'

export interface KnownAccount {
  accountId: string
  displayName: string
  planType: string
}

export interface SignInValue {
  flowId: string
  method: FlowRow['method']
  status: FlowRow['status']
  /** A sentence, after it failed. */
  errorMessage: string | null
  /** A user cancelled it here, so it is not shown as an error. */
  isCancelled: boolean
  /** The account to sign in again; null: the sign-in adds an account. */
  target: KnownAccount | null
  /** The pool of outbound proxies of a new account; null: as the settings say. */
  egressPoolId: string | null
  /** The result. */
  account: KnownAccount | null
  /** Whether it is still paused. */
  isPaused: boolean
  /** Where to sign in. */
  authorizationUrl: string | null
  /** Where the browser returns, and whether Sluice receives that itself. */
  callbackUrl: string | null
  callback: 'listening' | 'port_busy' | 'remote' | null
  verificationUrl: string | null
  userCode: string | null
  /** The flow's id, like `flowId`. OpenAI's own id is never sent out: with the code it would give access to the account. */
  deviceAuthId: string | null
  intervalSeconds: number | null
  expiresInSeconds: number
  /** ISO 8601, both. */
  expiresAt: string
  generatedAt: string
}

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
