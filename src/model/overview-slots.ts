/** How the overview divides a day. */
import { DAY_MS, MINUTE_MS } from '../lib/durations.ts'

export const SLOT_MS = 30 * MINUTE_MS
export const SLOTS_A_DAY = DAY_MS / SLOT_MS
