/** How the overview divides a day. */

export const SLOT_MS = 30 * 60_000
export const SLOTS_A_DAY = (24 * 3_600_000) / SLOT_MS
