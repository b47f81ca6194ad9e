/** A row of the request log as a list shows it. */

export interface RecentRequest {
  id: string
  /** What the client was told, and may have chosen. */
  requestId: string
  /** ms since epoch */
  startedAt: number
  /** null: no key was needed, or it is gone. */
  keyName: string | null
  /** null: no account was reached, or it is gone. */
  accountName: string | null
  model: string | null
  status: 'ok' | 'error' | 'cancelled'
  errorCode: string | null
  /** Where it failed or was left: auth · select · connect · first_event · stream · finish. */
  phase: string | null
  httpStatus: number
  firstEventMs: number | null
  totalMs: number
  inputTokens: number | null
  outputTokens: number | null
  /** Millionths of a US dollar; null: the model has no known price. */
  costMicros: number | null
  /** Accounts that were asked. */
  attempts: number
}
