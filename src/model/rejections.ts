/** Why a client was rejected before any account was asked: said on the error where it is decided, and logged by the ledger. */
import type { REJECTION_REASONS } from '../../db/schema/rejections.ts'

export type RejectionReason = (typeof REJECTION_REASONS)[number]

export interface Rejection {
  reason: RejectionReason
  /** As `keyStart` makes it. */
  keyStart?: string | null
  /** Of a key that is known. */
  keyId?: string
  model?: string
}

const MOST_CHARS = 8

/** What may be logged of a secret: its first eight characters, and never more than half of it. null: nothing. */
export const keyStart = (secret: string): string | null =>
  secret.slice(0, Math.min(MOST_CHARS, Math.floor(secret.length / 2))).replace(/[^\x21-\x7e]/g, '?') || null
