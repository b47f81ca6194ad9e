/** The credentials of one account in the formats of other programs, and how fresh they are. The only place that exposes tokens. */
import { iso, isoOrNull } from '../../lib/iso.ts'
import { getStatusUnderPause } from './account-state.ts'
import type { AccountRow } from './accounts.ts'
import { type AccountTokens, getExpiry } from './auth-json.ts'

export const EXPORT_FORMATS = ['codex', 'opencode'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]

/** The `auth.json` of the Codex CLI, in its own spelling. */
export const codexAuthJson = (row: AccountRow, tokens: AccountTokens) => ({
  auth_mode: 'chatgpt',
  OPENAI_API_KEY: null,
  tokens: {
    id_token: tokens.idToken,
    access_token: tokens.accessToken,
    refresh_token: tokens.refreshToken,
    account_id: row.chatgptAccountId,
  },
  last_refresh: iso(row.lastRefreshAt),
})

/** `expires` is ms since epoch; 0: unknown, so OpenCode refreshes it before use. */
export const opencodeAuthJson = (row: AccountRow, tokens: AccountTokens) => ({
  openai: {
    type: 'oauth',
    refresh: tokens.refreshToken,
    access: tokens.accessToken,
    expires: getExpiry(tokens.accessToken) ?? 0,
    accountId: row.chatgptAccountId,
  },
})

/** All formats together (`export/auth`). */
export const exportedAuth = (row: AccountRow, tokens: AccountTokens) => ({
  filename: fileNameFor(row, 'codex'),
  account: { accountId: row.id, chatgptAccountId: row.chatgptAccountId, email: row.email },
  tokens: { ...tokens, expiresAtMs: getExpiry(tokens.accessToken) },
  codexAuthJson: codexAuthJson(row, tokens),
  opencodeAuthJson: opencodeAuthJson(row, tokens),
})

/** ASCII letters, digits, dots and dashes only, because it goes into a header. */
export const fileNameFor = ({ alias, email }: AccountRow, format: ExportFormat): string => {
  const name = (alias ?? email).toLowerCase().replace(/[^a-z0-9.]+/g, '-')
  return `${format === 'codex' ? 'auth' : 'opencode-auth'}-${name.replace(/^-+|-+$/g, '').slice(0, 60) || 'account'}.json`
}

type TokenState = 'valid' | 'expired' | 'unknown'

export interface TokenHealth {
  access: { expiresAt: string | null; state: TokenState }
  refresh: { expiresAt: string | null; state: TokenState }
  idToken: { expiresAt: string | null; state: TokenState }
  lastRefreshAt: string
  /** When the tokens are refreshed next, at the latest; null: never, the account needs sign-in. */
  nextRefreshAt: string | null
}

/** `renewAfterMs`: the age at which tokens are refreshed before they expire. Times are ISO 8601. */
export const tokenHealth = (
  row: AccountRow,
  tokens: AccountTokens,
  { now, renewAfterMs }: { now: number; renewAfterMs: number },
): TokenHealth => {
  const of = (token: string): TokenHealth['access'] => {
    const expiresAt = getExpiry(token)
    const state = expiresAt === null ? 'unknown' : expiresAt <= now ? 'expired' : 'valid'
    return { expiresAt: isoOrNull(expiresAt), state }
  }
  const due = Math.min(row.lastRefreshAt + renewAfterMs, getExpiry(tokens.accessToken) ?? Number.POSITIVE_INFINITY)
  return {
    access: of(tokens.accessToken),
    refresh: of(tokens.refreshToken),
    idToken: of(tokens.idToken),
    lastRefreshAt: iso(row.lastRefreshAt),
    nextRefreshAt: getStatusUnderPause(row) === 'reauth_required' ? null : iso(due),
  }
}
