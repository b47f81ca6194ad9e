/** The tokens of an account: encrypted in its row, and replaced when they rotate. */
import { and, eq } from 'drizzle-orm'
import { notice, type Tx } from '../../../db/commit.ts'
import { accounts } from '../../../db/schema/accounts.ts'
import { SealError, type Sealer } from '../../lib/seal.ts'
import type { AccountRow } from './accounts.ts'
import type { AccountTokens } from './auth-json.ts'

/** Seals each token for its own column and row, so that none can be moved to another. */
export const sealTokens = (sealer: Sealer, id: string, tokens: AccountTokens) => ({
  accessTokenSealed: sealer.seal(tokens.accessToken, `accounts.access_token.${id}`),
  refreshTokenSealed: sealer.seal(tokens.refreshToken, `accounts.refresh_token.${id}`),
  idTokenSealed: sealer.seal(tokens.idToken, `accounts.id_token.${id}`),
})

/** Empty tokens if damaged or sealed with another key: that account needs sign-in, others are unaffected. */
export const openTokens = (sealer: Sealer, row: AccountRow): AccountTokens => {
  try {
    return {
      accessToken: sealer.open(row.accessTokenSealed, `accounts.access_token.${row.id}`),
      refreshToken: sealer.open(row.refreshTokenSealed, `accounts.refresh_token.${row.id}`),
      idToken: sealer.open(row.idTokenSealed, `accounts.id_token.${row.id}`),
    }
  } catch (err) {
    if (err instanceof SealError) return UNREADABLE_TOKENS
    throw err
  }
}

export const UNREADABLE_TOKENS: AccountTokens = Object.freeze({ accessToken: '', refreshToken: '', idToken: '' })

interface Rotated {
  id: string
  previousSealed: string
  tokens: AccountTokens
  sealer: Sealer
  at: number
}

/**
 * Stores rotated tokens. Commit before using the new access token, because the old refresh token is spent. False when
 * the account was deleted or re-imported in the meantime, whose newer tokens are kept.
 */
export const storeTokens = async (tx: Tx, { id, previousSealed, tokens, sealer, at }: Rotated): Promise<boolean> => {
  const stored = await tx
    .update(accounts)
    .set({ ...sealTokens(sealer, id, tokens), lastRefreshAt: at })
    .where(and(eq(accounts.id, id), eq(accounts.refreshTokenSealed, previousSealed)))
    .returning({ id: accounts.id })
    .all()
  notice(tx, 'accounts')
  return stored.length === 1
}

/**
 * Whether the account still has the tokens of `row`. If not, sends a notice, because this process has not loaded the
 * change.
 */
export const holdsTokens = async (tx: Tx, { id, refreshTokenSealed }: AccountRow): Promise<boolean> => {
  const isSame = and(eq(accounts.id, id), eq(accounts.refreshTokenSealed, refreshTokenSealed))
  const isHeld = (await tx.select({ id: accounts.id }).from(accounts).where(isSame).get()) !== undefined
  if (!isHeld) notice(tx, 'accounts')
  return isHeld
}

/** Rewrites the stored token, to test whether another one could be stored. */
export const touchTokens = async (tx: Tx, { id, refreshTokenSealed }: AccountRow): Promise<void> => {
  const isSame = and(eq(accounts.id, id), eq(accounts.refreshTokenSealed, refreshTokenSealed))
  await tx.update(accounts).set({ refreshTokenSealed }).where(isSame).run()
}
