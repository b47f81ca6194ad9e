/** Why a client was rejected before any account was tried: set on the error, logged by the ledger. */

const MAX_CHARS = 8

/** The loggable part of a secret: its first eight characters, at most half of it. null: nothing. */
export const keyStart = (secret: string): string | null =>
  secret.slice(0, Math.min(MAX_CHARS, Math.floor(secret.length / 2))).replace(/[^\x21-\x7e]/g, '?') || null
