/** Automations as clients send them: shapes as schemas, values as checks with a code of their own. */
import { z } from 'zod'
import { AUTOMATION_KINDS, WEEKDAYS, type Weekday } from '../../../db/schema/automations.ts'
import { AppError } from '../../errors.ts'
import { isZone } from '../../lib/zoned-days.ts'
import { EFFORTS } from '../catalog/efforts.ts'
import type { AutomationFields } from './automations.ts'
import { SERVER_ZONE } from './schedule.ts'

const MAX_ACCOUNTS = 128
const MAX_PROMPT_CHARS = 1000
const MAX_SPREAD_MINUTES = 240
export const DEFAULT_PROMPT = 'ping'

const ScheduleInput = z.strictObject({
  type: z.string().optional().describe('Only `daily`.'),
  time: z.string().optional().describe('HH:MM, local time in `timezone`.'),
  timezone: z.string().optional().describe('IANA name. Default: `server_default`, the zone of the machine.'),
  thresholdMinutes: z
    .number()
    .optional()
    .describe(`The accounts after the first start within this many minutes, 0 to ${MAX_SPREAD_MINUTES}. Default 0.`),
  days: z.array(z.string()).optional().describe('`mon` to `sun`. Default: every day.'),
})

const Name = z.string().trim().min(1).max(200).describe('1 to 200 characters.')

export const AutomationPatch = z.strictObject({
  name: Name.optional(),
  kind: z
    .enum(AUTOMATION_KINDS)
    .optional()
    .describe('`probe` also fetches the usage and adds the result to the events of the account. Default: `ping`.'),
  enabled: z.boolean().optional().describe('Default: true.'),
  includePausedAccounts: z.boolean().optional().describe('Default: false.'),
  schedule: ScheduleInput.optional().describe('Members you leave out stay as they are. A new one needs `time`.'),
  model: z.string().nullable().optional().describe('Null: the cheapest model of each account.'),
  reasoningEffort: z.string().nullable().optional().describe('Null: the lowest of the model.'),
  prompt: z.string().optional().describe(`At most ${MAX_PROMPT_CHARS} characters. Default: \`${DEFAULT_PROMPT}\`.`),
  accountIds: z.array(z.string()).optional().describe(`At most ${MAX_ACCOUNTS}. Empty: every account.`),
})
export type AutomationPatch = z.output<typeof AutomationPatch>

export const NewAutomation = AutomationPatch.extend({ name: Name })

/** What there is to choose from. */
interface Known {
  accountExists: (id: string) => boolean
  /** Null: no catalog is known yet. */
  modelExists: ((model: string) => boolean) | null
  /** Empty: unknown. */
  getEfforts: (model: string) => readonly string[]
}

/**
 * The columns that `patch` changes. `before` completes it; null: a new automation. Throws the 400 code of the first
 * invalid field.
 */
export const fieldsFrom = (patch: AutomationPatch, before: AutomationFields | null, known: Known): AutomationFields => {
  const { schedule = {} } = patch
  if (schedule.type !== undefined && schedule.type !== 'daily') throw invalid('schedule_type', 'schedule.type')
  const model = blankIsNull(patch.model, before?.model ?? null)
  const effort = blankIsNull(patch.reasoningEffort, before?.effort ?? null)
  return {
    name: patch.name ?? before?.name ?? '',
    kind: patch.kind ?? before?.kind ?? 'ping',
    enabled: patch.enabled ?? before?.enabled ?? true,
    includePaused: patch.includePausedAccounts ?? before?.includePaused ?? false,
    time: timeFrom(schedule.time ?? before?.time),
    zone: zoneFrom(schedule.timezone ?? before?.zone ?? SERVER_ZONE),
    spreadMinutes: spreadFrom(schedule.thresholdMinutes ?? before?.spreadMinutes ?? 0),
    days: daysFrom(schedule.days ?? before?.days ?? WEEKDAYS),
    model: modelFrom(model, before, known),
    effort: effortFrom(effort, model, known),
    prompt: promptFrom(patch.prompt ?? before?.prompt ?? DEFAULT_PROMPT),
    accountIds: accountsFrom(patch.accountIds ?? before?.accountIds ?? [], before, known),
  }
}

type Invalid =
  | 'schedule_type'
  | 'schedule_time'
  | 'schedule_timezone'
  | 'schedule_days'
  | 'schedule_threshold'
  | 'account_ids'
  | 'prompt'
  | 'model'
  | 'reasoning_effort'

const invalid = (what: Invalid, param: string): AppError => new AppError(`invalid_${what}`, { param })

/** Forms send an empty choice. */
const blankIsNull = (value: string | null | undefined, otherwise: string | null): string | null =>
  value === undefined ? otherwise : value?.trim() || null

const timeFrom = (time: string | undefined): string => {
  if (time === undefined || !/^([01]\d|2[0-3]):[0-5]\d$/.test(time)) throw invalid('schedule_time', 'schedule.time')
  return time
}

const zoneFrom = (zone: string): string => {
  if (zone !== SERVER_ZONE && !isZone(zone)) throw invalid('schedule_timezone', 'schedule.timezone')
  return zone
}

const spreadFrom = (minutes: number): number => {
  if (!Number.isInteger(minutes) || minutes < 0 || minutes > MAX_SPREAD_MINUTES)
    throw invalid('schedule_threshold', 'schedule.thresholdMinutes')
  return minutes
}

/** In the order of the week. */
const daysFrom = (days: readonly string[]): Weekday[] => {
  const isKnown = days.every((day) => WEEKDAYS.some((known) => known === day))
  if (days.length === 0 || !isKnown || new Set(days).size < days.length) throw invalid('schedule_days', 'schedule.days')
  return WEEKDAYS.filter((day) => days.includes(day))
}

/** A model that has left the catalog may stay. */
const modelFrom = (model: string | null, before: AutomationFields | null, { modelExists }: Known): string | null => {
  if (model === null || model === before?.model) return model
  if (model.length > 200 || modelExists?.(model) === false) throw invalid('model', 'model')
  return model
}

const effortFrom = (effort: string | null, model: string | null, { getEfforts }: Known): string | null => {
  if (effort === null) return null
  const offered = model === null ? [] : getEfforts(model)
  const isKnown = EFFORTS.some((known) => known === effort)
  if (!isKnown || (offered.length > 0 && !offered.includes(effort)))
    throw invalid('reasoning_effort', 'reasoningEffort')
  return effort
}

const promptFrom = (prompt: string): string => {
  if (prompt.length > MAX_PROMPT_CHARS) throw invalid('prompt', 'prompt')
  return prompt.trim() || DEFAULT_PROMPT
}

/** Null: every account. Accounts that have been deleted since may stay. */
const accountsFrom = (
  ids: readonly string[],
  before: AutomationFields | null,
  { accountExists }: Known,
): string[] | null => {
  const isKnown = ids.every((id) => accountExists(id) || before?.accountIds?.includes(id))
  if (ids.length > MAX_ACCOUNTS || new Set(ids).size < ids.length || !isKnown)
    throw invalid('account_ids', 'accountIds')
  return ids.length === 0 ? null : [...ids]
}
