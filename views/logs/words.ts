/** How the log is put in words: results, phases, columns, strategies. */
import type { FC } from 'hono/jsx'
import type { MoreColumn, PageStatus, RangeName } from '../../src/model/request-log-page.ts'
import type { LogStatus } from '../../src/model/request-log-query.ts'
import type { Strategy } from '../../src/proxy/policies.ts'
import type { Tone } from '../ui/badge.tsx'
import { CheckIcon, ClockIcon, CrossIcon, LeaveIcon, WarningIcon } from '../ui/icons.tsx'

export const RESULTS: Record<LogStatus, { word: string; tone: Tone; Icon: FC }> = {
  ok: { word: 'Done', tone: 'good', Icon: CheckIcon },
  cancelled: { word: 'Client left', tone: 'idle', Icon: LeaveIcon },
  rate_limit: { word: 'Rate limited', tone: 'wait', Icon: ClockIcon },
  quota: { word: 'Quota used up', tone: 'wait', Icon: WarningIcon },
  error: { word: 'Failed', tone: 'bad', Icon: CrossIcon },
}

export const STATUS_CHOICES: readonly (readonly [PageStatus, string])[] = [
  ['ok', 'Done'],
  ['failed', 'Not served'],
  ['rate_limit', 'Rate limited'],
  ['quota', 'Quota used up'],
  ['error', 'Failed'],
  ['cancelled', 'Client left'],
  ['rejected', 'Rejected'],
]

export const RANGE_CHOICES: readonly (readonly [RangeName, string])[] = [
  ['1h', 'Last hour'],
  ['24h', 'Last 24 hours'],
  ['7d', 'Last 7 days'],
  ['30d', 'Last 30 days'],
]

export const COLUMN_NAMES: Record<MoreColumn, string> = {
  tokens: 'Tokens',
  total: 'Total time',
  effort: 'Effort',
  kind: 'Kind',
  route: 'Route',
  tool: 'Client',
  address: 'Address',
  request: 'Request id',
  paid: 'Paid credits',
}

/** The phases of the request log in words that follow the result. */
const PHASES: Readonly<Record<string, string>> = {
  request: 'in the request itself',
  auth: 'at the key',
  select: 'choosing an account',
  connect: 'connecting',
  first_event: 'before the first token',
  upstream: 'at ChatGPT',
  stream: 'mid-stream',
  finish: 'at the end',
}

export const phaseText = (phase: string): string => PHASES[phase] ?? phase

export const STRATEGY_NAMES: Record<Strategy, string> = {
  capacity_weighted: 'capacity weighted',
  usage_weighted: 'usage weighted',
  round_robin: 'round robin',
  relative_availability: 'relative availability',
  fill_first: 'fill first',
  sequential_drain: 'sequential drain',
  reset_drain: 'reset drain',
  single_account: 'single account',
}
