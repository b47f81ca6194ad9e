/** Why routing skips an account, as text for the log, the routing simulator, account pages and client errors. */
import { type EgressReason, egressText } from '../egress/route.ts'

export type Selection =
  /** `moved`: the conversation left its soft owner. `moveAvoidable`: that account could have served it for less. */
  | { kind: 'chosen'; id: string; moved: boolean; moveAvoidable: boolean; considered: Considered[] }
  /** Only caps prevent a choice: wait for a turn to end. */
  | { kind: 'wait'; considered: Considered[] }
  | { kind: 'none'; failure: SelectionFailure; considered: Considered[] }

export interface Cause {
  reason: SkipReason
  count: number
  /** The earliest time one of them ends (ms), if known. */
  nextAt: number | null
  /** Why they have no route. */
  egressReasons: ReadonlySet<EgressReason>
}

/** Why the upstream says an account is out of quota. */
export interface Rejection {
  code: string
  message: string
}

export interface SelectionFailure {
  kind:
    | 'exhausted'
    | 'restricted'
    | 'files'
    | 'owner'
    | 'model'
    | 'plan'
    | 'unconfigured'
    | 'unassigned'
    | 'opportunistic'
    | 'other'
  causes: Cause[]
  /** The earliest known time at which an account is available again (ms). */
  nextAt: number | null
  /** Every cause needs an operator: retrying cannot help. */
  needsOperator: boolean
  /** The earliest reset (ms) among the accounts of an exhausted pool. */
  resetsAt: number | null
  /** What all accounts of an exhausted pool were rejected with, if more specific than a usage limit. */
  sharedRejection: Rejection | null
  model: string | null
  /** Only about the account that owns the conversation. */
  ownerOnly: boolean
}

export interface Considered {
  id: string
  /** The strategy's score; null when not ranked. */
  score: number | null
  /** Null for the chosen account and those ranked after it. */
  skipped: SkipReason | null
  /** When the reason ends (ms), if known. */
  until: number | null
  /** Why it has no route; only with `no_route`. */
  egressReason?: EgressReason
  /** Whole days until its reset, if that took precedence over the score. */
  resetDays?: number
  /**
   * What another such request uses of the previous account, in percent of its remaining quota. Set if a move was weighed
   * or avoidable.
   */
  stayPercent?: number | undefined
  /** On other accounts then: percent of their remaining quota that reading the cached tokens again would use. */
  movePercent?: number | undefined
}

interface SkipWords {
  /** Follows the account's name. */
  reason: string
  /** Follows a count in a client error: one form, or singular and plural. null: not shown to clients. */
  counted: string | readonly [string, string] | null
}

/** In the order of an error's list. */
export const SKIP_REASONS = {
  cooling_down: { reason: 'cooling down after errors', counted: 'cooling down' },
  rate_limited: { reason: 'rate limited', counted: 'rate limited' },
  quota_exceeded: { reason: 'out of quota', counted: 'out of quota' },
  spend_cap_reached: { reason: 'spend cap reached', counted: 'at its spend cap' },
  credits_depleted: { reason: 'out of workspace credits', counted: 'out of workspace credits' },
  not_allowed: {
    reason: 'not allowed to send requests, according to its usage report',
    counted: 'not allowed to send requests',
  },
  paid_credits_off: {
    reason: 'included quota used up, and paid credits are off',
    counted: 'out of included quota',
  },
  reserved: { reason: 'reserved: its usage cap is reached', counted: 'reserved' },
  model_limited: { reason: 'out of quota for this model', counted: 'out of this model’s allowance' },
  burn_window_closed: {
    reason: 'kept for foreground requests, and this key is opportunistic',
    counted: 'kept for foreground requests',
  },
  at_cap: { reason: 'at its limit of parallel requests', counted: 'at the limit of parallel streams' },
  tried: { reason: 'already failed for this request', counted: 'failed in this request' },
  no_route: { reason: 'without an outbound proxy', counted: 'without an outbound proxy' },
  paused: { reason: 'paused', counted: 'paused' },
  needs_sign_in: { reason: 'needs sign-in', counted: ['needs sign-in', 'need sign-in'] },
  deactivated: { reason: 'deactivated by OpenAI', counted: 'deactivated' },
  model_not_supported: { reason: 'does not offer this model', counted: 'without this model' },
  plan_excluded: { reason: 'its plan does not include images', counted: 'on a plan without images' },
  route_missing: { reason: 'does not offer this route', counted: 'without this route' },
  not_authorized: { reason: 'not authorized for security work', counted: 'not authorized for this work' },
  policy_class: {
    reason: 'excluded by its routing policy or the strategy',
    // When also used for other accounts, a candidate remains.
    counted: 'not the account selected in the routing strategy',
  },
  out_of_scope: { reason: 'not assigned to this key', counted: null },
  not_owner: { reason: 'the conversation belongs to another account', counted: null },
  move_costs_more: { reason: 'moving the conversation there costs more than staying', counted: null },
  other_retried: { reason: 'the previous account was retried first', counted: null },
  paid_credits_last: { reason: 'included quota used up; paid credits are used last', counted: null },
  lower_tier: { reason: 'used only when no healthier account is available', counted: null },
} as const satisfies Record<string, SkipWords>

export type SkipReason = keyof typeof SKIP_REASONS

/** Reasons of older versions are shown as they are. `egressReason` says more about `no_route`. */
export const skipText = (reason: string, egressReason: string | null = null): string => {
  const text = Object.hasOwn(SKIP_REASONS, reason) ? SKIP_REASONS[reason as SkipReason].reason : reason // as: checked by hasOwn
  return egressReason === null ? text : `${text}: ${egressText(egressReason)}`
}

/** "2 need sign-in"; null when not shown to clients. */
export const skipCount = (reason: SkipReason, count: number): string | null => {
  const { counted } = SKIP_REASONS[reason]
  if (counted === null) return null
  return `${count} ${typeof counted === 'string' ? counted : counted[count === 1 ? 0 : 1]}`
}
