/** Words for automations and their runs. */
import type { AutomationView, RunDetails, RunView } from '../../src/model/automations/view.ts'
import type { Tone } from '../ui/badge.tsx'

export const AUTOMATIONS_PATH = '/settings/automations'

export const automationPath = (id: string): string => `${AUTOMATIONS_PATH}/${encodeURIComponent(id)}`
export const runPath = (id: string): string => `${AUTOMATIONS_PATH}/runs/${encodeURIComponent(id)}`

export const KIND_NAMES: Record<AutomationView['kind'], string> = {
  ping: 'Send a small request',
  probe: 'Check accounts',
}

export const RUN_STATES: Record<RunView['status'], readonly [name: string, tone: Tone]> = {
  running: ['Running', 'wait'],
  success: ['Succeeded', 'good'],
  partial: ['Partly failed', 'bad'],
  failed: ['Failed', 'bad'],
}

export const ACCOUNT_STATES: Record<RunDetails['accounts'][number]['status'], readonly [name: string, tone: Tone]> = {
  pending: ['Waiting', 'idle'],
  running: ['Running', 'wait'],
  success: ['Succeeded', 'good'],
  failed: ['Failed', 'bad'],
  skipped: ['Skipped', 'idle'],
}

export const DAY_NAMES: Record<AutomationView['schedule']['days'][number], string> = {
  mon: 'Mon',
  tue: 'Tue',
  wed: 'Wed',
  thu: 'Thu',
  fri: 'Fri',
  sat: 'Sat',
  sun: 'Sun',
}

/** "Mon to Fri at 07:55, Europe/Berlin". */
export const scheduleText = ({ days, time, timezone }: AutomationView['schedule']): string => {
  const zone = timezone === 'server_default' ? 'time zone of the server' : timezone.replaceAll('_', ' ')
  return `${daysText(days)} at ${time}, ${zone}`
}

const daysText = (days: AutomationView['schedule']['days']): string => {
  const names = days.map((day) => DAY_NAMES[day])
  if (names.length === 7) return 'Every day'
  if (names.join() === 'Mon,Tue,Wed,Thu,Fri') return 'Mon to Fri'
  return names.join(', ')
}
