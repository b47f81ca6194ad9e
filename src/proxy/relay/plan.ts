/** How a request is relayed: which bytes go where, how long that may take, and when another account may be tried. Types only. */
import type { Owner } from '../pool/selection-needs.ts'

export interface RelayPlan {
  method: 'GET' | 'POST'
  /** Content type of the body; null if there is none. */
  contentType: string | null
  /** For the whole exchange, the answer included. */
  timeoutMs: number
  /**
   * When the request may be sent again. `before-sent`: only while the upstream cannot have acted on it, because it could not
   * be reached or rejected the request with a client error. `idempotent`: as a turn is.
   */
  retry: 'never' | 'before-sent' | 'idempotent'
  /** The account it must go to; null: the owner of the conversation, if there is one. */
  owner?: Owner | null
  /** How many accounts may be tried; as many as for a turn when absent. */
  maxAccounts?: number
  /** Error statuses that are an answer of this route and no failure. */
  answers?: readonly number[]
  /** A client error goes back with its status also where the upstream does not explain it. */
  passesErrors?: boolean
  /** Error messages of ChatGPT may repeat what must not be logged. */
  hidesWords?: boolean
  /** Some accounts do not have this route: there it answers 404 or 405. */
  isRoutePerAccount?: boolean
  /** A 403 with a page comes from what guards the route and says nothing about the account: one other may be tried. */
  isBlockedByPages?: boolean
  /** For answers that are event streams: how an event of this type ends the stream; null: it does not. */
  getEnd?: (type: string) => 'ok' | 'error' | null
  /** One request of the client takes several exchanges, so its body and headers are kept until it ends. */
  isRepeated?: boolean
  /** Reads `usage` of the answer, or of the event that ends it. */
  readsUsage?: boolean
}
