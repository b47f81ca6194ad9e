/** Settings of the quota planner. */
import { z } from 'zod'
import { isZone } from '../lib/zoned-days.ts'
import { setting } from './setting.ts'
import { HOUR, HOUR_HINT, WorkingDays, ZONE_HINT } from './texts.ts'

export const PLANNER_MODES = ['off', 'advise', 'act'] as const

export const PLANNER = {
  plannerMode: setting(z.enum(PLANNER_MODES), {
    section: 'planner',
    label: 'Quota planner',
    help: 'Whether Sluice computes when an earlier start of a five-hour window would serve more requests, and starts it.',
  }),
  plannerZone: setting(z.string().trim().max(64).refine(isZone, ZONE_HINT), {
    section: 'planner',
    label: 'Time zone of the working hours',
    help: 'A name like Europe/Berlin.',
  }),
  plannerWorkingDays: setting(WorkingDays, {
    section: 'planner',
    label: 'Working days',
    help: 'Days like mon tue wed, separated by spaces.',
  }),
  plannerWorkingHoursStart: setting(z.string().trim().regex(HOUR, HOUR_HINT), {
    section: 'planner',
    label: 'Work starts',
    help: 'Windows are started at the earliest five hours before.',
  }),
  plannerWorkingHoursEnd: setting(z.string().trim().regex(HOUR, HOUR_HINT), {
    section: 'planner',
    label: 'Work ends',
    help: 'An end before the start is on the next day.',
  }),
  plannerMaxStartsPerDay: setting(z.int().min(1).max(100), {
    section: 'planner',
    label: 'Starts per day',
    help: 'At most this many windows are started in a day, each account once.',
    unit: 'starts',
  }),
  plannerMinGainPercent: setting(z.int().min(1).max(100), {
    section: 'planner',
    label: 'Smallest gain',
    help: 'A start must serve at least this much more of the expected requests.',
    unit: 'percent',
  }),
}
