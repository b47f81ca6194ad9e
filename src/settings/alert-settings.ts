/** Alert settings: the thresholds from which some conditions need attention. 0 turns a threshold off. */
import { z } from 'zod'
import { setting } from './setting.ts'

export const ALERTS = {
  alertMinAccounts: setting(z.int().min(0).max(10_000), {
    section: 'alerts',
    label: 'Fewer accounts available than',
    help: 'You are alerted while fewer accounts than this can serve requests.',
    unit: 'accounts',
  }),
  alertAccountPercent: setting(z.int().min(0).max(100), {
    section: 'alerts',
    label: 'An account has used',
    help: 'You are alerted about each account that has used this much of a window.',
    unit: 'percent',
  }),
  alertBlockedHours: setting(z.int().min(0).max(720), {
    section: 'alerts',
    label: 'An account stays blocked for more than',
    help: 'You are alerted about accounts that are blocked for longer than this from now on. A block longer than the account’s own window always counts.',
    unit: 'hours',
  }),
}
