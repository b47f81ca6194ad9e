/** How many fetches the runtime runs at once, and how many turns that carries: what is beyond it waits inside, and nobody can see it. */

export const CAP_VARIABLE = 'BUN_CONFIG_MAX_HTTP_REQUESTS'

/** What the runtime runs where it is told nothing, or nothing that it takes (measured, Bun 1.4.5). */
const UNTOLD = 256
const MOST = 65_535

/** The value of the variable as the runtime reads it; null where it would not take it (measured, Bun 1.4.5). */
export const outboundCap = (text: string | undefined): number | null => {
  if (text === undefined || !/^\+?\d+(_\d+)*$/.test(text)) return null
  const cap = Number(text.replaceAll('_', ''))
  return cap >= 1 && cap <= MOST ? cap : null
}

/** Turns that fit under `cap`, null being none told: the rest of it is for tokens, usage and catalogs. */
export const turnsUnder = (cap: number | null): number => Math.max(1, Math.floor(((cap ?? UNTOLD) * 200) / UNTOLD))
