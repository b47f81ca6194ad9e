/** How long Sluice remembers which account has an uploaded file. */
import { MINUTE_MS } from '../../lib/durations.ts'

/** After the last use. */
export const FILE_LIFE_MS = 30 * MINUTE_MS
