/** Names of the overview's periods in a sentence. */
import type { Period } from '../../src/model/overview/overview-slots.ts'

export const PERIOD_NAMES: Record<Period, string> = {
  '1h': 'hour',
  '24h': '24 hours',
  '7d': '7 days',
  '30d': '30 days',
}

export const PERIOD_CHOICES = Object.keys(PERIOD_NAMES) as Period[] // as: a record of all periods
