/** The runtime's limit on concurrent fetches, and how many turns fit: further fetches wait invisibly. */

export const CAP_VARIABLE = 'BUN_CONFIG_MAX_HTTP_REQUESTS'

/** The runtime's default, also for invalid values (Bun 1.4.5). */
const DEFAULT_CAP = 256
const MOST = 65_535

/** The variable's value as the runtime reads it; null when invalid (Bun 1.4.5). */
export const outboundCap = (text: string | undefined): number | null => {
  if (text === undefined || !/^\+?\d+(_\d+)*$/.test(text)) return null
  const cap = Number(text.replaceAll('_', ''))
  return cap >= 1 && cap <= MOST ? cap : null
}

/** Turns that fit under `cap` (null: the default); the rest is for tokens, usage and catalogs. */
export const turnsUnder = (cap: number | null): number =>
  Math.max(1, Math.floor(((cap ?? DEFAULT_CAP) * 200) / DEFAULT_CAP))
