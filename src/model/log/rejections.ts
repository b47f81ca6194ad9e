/** Why a client was rejected before any account was tried: set on the error, logged by the ledger. */
import type { REJECTION_REASONS } from '../../../db/schema/rejections.ts'

export type RejectionReason = (typeof REJECTION_REASONS)[number]

export interface Rejection {
  reason: RejectionReason
  /** As returned by `keyStart`. */
  keyStart?: string | null
  /** Id of a known key. */
  keyId?: string
  model?: string
}

const MAX_CHARS = 8

/** The loggable part of a secret: its first eight characters, at most half of it. null: nothing. */
export const keyStart = (secret: string): string | null =>
  secret.slice(0, Math.min(MAX_CHARS, Math.floor(secret.length / 2))).replace(/[^\x21-\x7e]/g, '?') || null
