/** Points in time as they go over the wire. */

/** ISO 8601 in UTC of ms since epoch. */
export const iso = (ms: number): string => new Date(ms).toISOString()

/** The same where there may be none. */
export const isoOrNull = (ms: number | null | undefined): string | null => (ms == null ? null : iso(ms))
