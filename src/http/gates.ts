/** The gates of a route: middleware that enforces a rule and carries it as data for the route table. */
import type { MiddlewareHandler } from 'hono'
import { isLocal } from '../auth/caller.ts'
import {
  authenticateClient,
  type ClientAuthRequest,
  capability,
  isKnownKey,
  notOwnerError,
  ownerToken,
} from '../auth/client-key.ts'
import { recordLastSeen } from '../auth/last-seen.ts'
import {
  demand,
  type Principal,
  requireAccount,
  requireOwnAccount,
  requireStepUp,
  requireWrite,
} from '../auth/principal.ts'
import { resolvePrincipal } from '../auth/resolve.ts'
import { type OwnRead, requireKeyScope, requireScope } from '../auth/view-scope.ts'
import type { AppEnv, Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import type { AuditEvent } from '../model/audit/audit.ts'
import { holds, type Permission } from '../model/users/permissions.ts'
import { getAuthorization, listedOrigin } from './cors.ts'
import { rejectForeignPages } from './cross-site.ts'
import { isMessagesPath } from './model-path.ts'
import { requirePlainHost } from './request-context.ts'

/** The access rule; every route has exactly one. */
export type AccessRule =
  | {
      access: 'permission'
      permission: Permission
      or?: Permission
      and?: Permission
      stepUp: boolean
      account?: true
      /** The scope `own` is enough: the handler takes its rows from `requireScope`. */
      own?: true
      audit?: AuditEvent
    }
  | { access: 'writes'; audit?: AuditEvent; sometimes?: Sometimes; ownKeys?: true }
  | { access: 'signed-in'; account?: true; stepUp?: true; audit?: AuditEvent }
  | { access: 'client-key'; key: KeyNeed | OwnerNeed }
  | { access: 'open'; reason: string; audit?: AuditEvent }

/**
 * A permission, with step-up, that the handler requires only `when` the body changes certain things. Replaces the write
 * check, which the handler applies otherwise.
 */
interface Sometimes {
  permission: Permission
  when: string
}

/** How the route treats requests for the restricted pool (spec §1). Comes after the access gate. */
export interface CapabilityRule {
  capability: Restriction
}

export type Rule = AccessRule | CapabilityRule
export type Gate<R extends Rule = Rule> = MiddlewareHandler<AppEnv> & {
  readonly rule: R
}

/** `optional`: depends on the key authentication setting; `always`: a valid key is required. */
export type KeyNeed = 'optional' | 'always'

/**
 * `owner`: the ChatGPT token of an account of the pool; `key-or-owner`: that, or a valid key. The proof needs ChatGPT
 * and follows the gate (`proxy/ingress/owner-proofs.ts`).
 */
export type OwnerNeed = 'owner' | 'key-or-owner'

/**
 * `refuse`: rejects restricted turns; `narrow`: limits selection to the restricted pool; `local`: uses no upstream
 * account.
 */
export type Restriction = 'refuse' | 'narrow' | 'local'

export const CAPABILITY_HEADER = 'x-codex-lb-required-capability'

/**
 * Requires `permission` (or the one in `or`) and the one in `and`; `account` requires a user, `stepUp` a recent
 * confirmation. `audit` names the recorded event. Throws what `resolvePrincipal` does, `permission_required`,
 * `admin_account_required`, `step_up_required`, `step_up_unavailable`.
 */
export const requires = (permission: Permission, { or, and, stepUp = false, account = false, audit }: Needs = {}) =>
  gate(
    {
      access: 'permission',
      permission,
      ...(or && { or }),
      ...(and && { and }),
      stepUp,
      ...(account && { account }),
      ...(audit && { audit }),
    },
    async (c) => {
      const principal = await enter(c)
      if (!or || !holds(principal.grants, or)) demand(principal, permission)
      if (and) demand(principal, and)
      if (account) requireAccount(principal)
      if (stepUp) requireStepUp(principal, c.env.clock.now())
    },
  )

/**
 * Requires `permission` for all keys or for own ones: the handler passes `requireScope` to what it reads. Throws as
 * `requires` does.
 */
export const requiresOwn = (permission: OwnRead) =>
  gate({ access: 'permission', permission, stepUp: false, own: true }, async (c) => {
    requireScope(await enter(c), permission)
  })

interface Needs extends SignedInNeeds {
  or?: Permission
  and?: Permission
}

/**
 * Requires the general write check, or the permission in `sometimes`: the handler enforces which. Throws
 * `bootstrap_required`, and what `requireWrite` does.
 */
export const writes = ({ audit, sometimes }: { audit?: AuditEvent; sometimes?: Sometimes } = {}) =>
  gate({ access: 'writes', ...(audit && { audit }), ...(sometimes && { sometimes }) }, async (c) => {
    const principal = await enter(c)
    if (!sometimes || !holds(principal.grants, sometimes.permission)) requireWrite(principal)
  })

/**
 * Requires the general write check, or `api_keys:write` for own keys: the handler passes `requireKeyScope` to what it
 * changes. Throws what `requireWrite` does.
 */
export const writesKeys = ({ audit }: { audit?: AuditEvent } = {}) =>
  gate({ access: 'writes', ...(audit && { audit }), ownKeys: true }, async (c) => {
    requireKeyScope(await enter(c))
  })

/**
 * Any dashboard principal; `account` requires a user. `stepUp` and `audit` as above. Throws `user_account_required`,
 * and what step-up does.
 */
export const signedIn = ({ account = false, stepUp = false, audit }: SignedInNeeds = {}) =>
  gate(
    { access: 'signed-in', ...(account && { account }), ...(stepUp && { stepUp }), ...(audit && { audit }) },
    async (c) => {
      const principal = await enter(c)
      if (account) requireOwnAccount(principal)
      if (stepUp) requireStepUp(principal, c.env.clock.now())
    },
  )

interface SignedInNeeds {
  account?: boolean
  stepUp?: boolean
  audit?: AuditEvent
}

/**
 * Open to everyone, for the given `reason`; the handler does the checks. Those that need no body go in `check`, so that
 * rejected requests are not read.
 */
export const open = (reason: string, { audit, check = async () => {} }: OpenNeeds = {}) =>
  gate({ access: 'open', reason, ...(audit && { audit }) }, check)

interface OpenNeeds {
  audit?: AuditEvent
  check?: (c: Ctx) => Promise<unknown>
}

/**
 * Model clients: checks Host, firewall, then the API key, and without a key the sending site. Sets `c.var.client`.
 * Throws `bad_host`, `ip_forbidden`, `invalid_api_key`, `cross_site_request_rejected`.
 */
export const clientKey = (need: KeyNeed, { from = toAuthRequest }: { from?: typeof toAuthRequest } = {}) =>
  gate({ access: 'client-key', key: need }, async (c) => {
    requirePlainHost(c)
    const clientIp = c.get('clientIp')
    if (!c.env.firewall.allows(clientIp)) throw new AppError('ip_forbidden', { rejection: { reason: 'firewall' } })
    const { settings, clock } = c.env
    const { apiKeyAuthEnabled: keyAuthEnabled } = settings.current()
    const client = authenticateClient({ ...from(c, need), keyAuthEnabled, now: clock.now() })
    if (client.key === null) rejectForeignPages(c)
    c.set('client', client)
  })

/**
 * For Anthropic clients, which may send the key in `x-api-key`. If both headers are sent, one valid key is enough.
 * Routes that other clients also use accept `x-api-key` only with `anthropic-version`.
 */
export const messagesKey = (need: KeyNeed) => clientKey(need, { from: withApiKeyHeader })

const withApiKeyHeader = (c: Ctx, need: KeyNeed): ReturnType<typeof toAuthRequest> => {
  const authRequest = toAuthRequest(c, need)
  const apiKey = c.req.header('x-api-key') ?? ''
  const isAnthropic = isMessagesPath(c.req.path) || c.req.header('anthropic-version') !== undefined
  return apiKey === '' || !isAnthropic || isKnownKey(authRequest, c.env.clock.now())
    ? authRequest
    : { ...authRequest, authorization: `Bearer ${apiKey}` }
}

/**
 * Like `clientKey` for routes that owners of accounts may use. Sets `c.var.client`, and `c.var.ownerToken` for a client
 * that has yet to prove what it owns. The capability header requires a key where one is accepted.
 */
export const keyOrOwner = (need: OwnerNeed) =>
  gate({ access: 'client-key', key: need }, async (c) => {
    requirePlainHost(c)
    const ip = c.get('clientIp')
    if (!c.env.firewall.allows(ip)) throw new AppError('ip_forbidden', { rejection: { reason: 'firewall' } })
    const authRequest = {
      ...toAuthRequest(c, 'always'),
      keyAuthEnabled: c.env.settings.current().apiKeyAuthEnabled,
      now: c.env.clock.now(),
    }
    const mayOwn = need === 'owner' || authRequest.capability === null
    const token = mayOwn ? ownerToken(authRequest, c.req.header('chatgpt-account-id') ?? null) : null
    if (token === null && need === 'owner') throw notOwnerError(authRequest.authorization)
    c.set('ownerToken', token)
    c.set('client', token === null ? authenticateClient(authRequest) : { key: null, hasUnrecognizedKey: false, ip })
  })

/** Credentials and origin of the client; kept for sockets, whose later turns are checked with the same. */
export const toAuthRequest = (c: Ctx, need: KeyNeed): Omit<ClientAuthRequest, 'keyAuthEnabled' | 'now'> => ({
  authorization: getAuthorization(c),
  capability: c.req.header(CAPABILITY_HEADER) ?? null,
  isLocal: () => isLocal(c),
  ip: c.get('clientIp'),
  peer: c.get('peer'),
  unauthenticatedCidrs: c.env.env.PROXY_UNAUTHENTICATED_CLIENT_CIDRS,
  keys: c.env.keys,
  need: listedOrigin(c) === null ? need : 'always',
})

/**
 * The capability rule of a model route (spec §1). Must come after `clientKey`, so that clients without a key learn
 * nothing. Throws `unsupported_required_capability`, `required_capability_transport_unsupported`.
 */
export const restricted = (restriction: Restriction) =>
  gate({ capability: restriction }, async (c) => {
    const wanted = capability(c.req.header(CAPABILITY_HEADER) ?? null)
    if (wanted !== null && restriction === 'refuse')
      throw new AppError('required_capability_transport_unsupported', { param: CAPABILITY_HEADER })
  })

const enter = async (c: Ctx): Promise<Principal> => {
  const principal = await resolvePrincipal(c)
  c.set('principal', principal)
  await recordLastSeen(c, principal)
  return principal
}

const gate = <R extends Rule>(rule: R, check: (c: Ctx) => Promise<unknown>): Gate<R> => {
  const enforce: MiddlewareHandler<AppEnv> = async (c, next) => {
    await check(c)
    if ('access' in rule) c.set('passAgain', check)
    return next()
  }
  return Object.assign(enforce, { rule: Object.freeze(rule) })
}
