/** What a request requires of its account: all that selection knows about it. */

import type { KeyScope } from '../../model/keys/key-scope.ts'

/** The account that owns the conversation. With `hard`, no other may serve it. */
export interface Owner {
  id: string
  hard: boolean
  /** It serves the request even while it is paused. */
  mayBePaused?: boolean
  /** It has files that the request names. */
  hasFiles?: boolean
  /** Not an owner but the account of the last attempt, which is retried before any other. */
  isRetried?: boolean
  /** The account the conversation moved to from the owner: second choice. */
  successor?: string | null
  /** The request from which a move is priced: the last, or a recent one with more cached tokens. null: not known. */
  lastUse?: LastUse | null
}

/** What a request used of its account, in units of `model/log/request-units.ts`. */
export interface LastUse {
  accountId: string
  /** 0 if not known. */
  units: number
  /** What its cached tokens would have used without the cache. */
  moveUnits: number
  /** How many those are. */
  cachedTokens: number
}

/** What a request does with an account: `turn` is a model request, every other surface is relayed (`relay/relay.ts`). */
export type Surface = 'turn' | 'image' | 'file' | 'audio' | 'control' | 'live' | 'ping'

/** Requests of these surfaces use little or nothing of an account's allowance, so one that is at its limit can serve them. */
export const COSTS_NO_ALLOWANCE: ReadonlySet<Surface> = new Set(['control', 'file'])

export interface SelectionNeeds {
  model: string | null
  /** `turn` when absent. */
  surface?: Surface
  /** Accounts this request has already failed on. */
  tried: ReadonlySet<string>
  /** Accounts the API key may use; null = all. */
  scope: KeyScope
  owner: Owner | null
  /** Only accounts authorised for security work. */
  restricted: boolean
  /** From a key of the traffic class `opportunistic`. */
  isOpportunistic?: boolean
  /** The owner of the request's key, who may be exempt from the caps of their account. */
  keyOwnerId?: string | null
  /** Concurrent turns per account, 0 = unlimited. */
  streamCap: number
}
