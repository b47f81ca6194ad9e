/** Whether the error means that another connection held the database or a lock for too long. drizzle wraps errors. */
export function isBusy(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code, errno } = error as { code?: unknown; errno?: unknown } // as: both are optional
  const isLocked = String(code).startsWith('SQLITE_BUSY') || errno === LOCK_NOT_AVAILABLE
  return isLocked || isBusy(error.cause)
}

/** The error code after `lock_timeout` (www.postgresql.org/docs/15/errcodes-appendix.html). */
const LOCK_NOT_AVAILABLE = '55P03'

/**
 * The error of a commit that may have been stored: the server ended before it answered. Undo in memory only what is right in
 * both cases.
 */
export const outcomeUnknown = (cause: unknown): Error =>
  Object.assign(new Error('The database may or may not have stored the change.', { cause }), {
    code: 'ERR_POSTGRES_CONNECTION_CLOSED',
    isOutcomeUnknown: true,
  })

export const isOutcomeUnknown = (error: unknown): boolean => error instanceof Error && 'isOutcomeUnknown' in error
