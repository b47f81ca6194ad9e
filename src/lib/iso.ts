/** Timestamps for the API. */

/** ISO 8601 in UTC of ms since epoch. */
export const iso = (ms: number): string => new Date(ms).toISOString()

/** The same for optional times. */
export const isoOrNull = (ms: number | null | undefined): string | null => (ms == null ? null : iso(ms))
