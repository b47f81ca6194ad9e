/** How the log is put in words: results, phases, strategies, amounts. */
import type { FC } from 'hono/jsx'
import type { MoreColumn, RangeName } from '../../src/model/request-log-page.ts'
import type { LogStatus, StatusFilter } from '../../src/model/request-log-query.ts'
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

export const STATUS_CHOICES: readonly (readonly [StatusFilter, string])[] = [
  ['ok', 'Done'],
  ['failed', 'Not served'],
  ['rate_limit', 'Rate limited'],
  ['quota', 'Quota used up'],
  ['error', 'Failed'],
  ['cancelled', 'Client left'],
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
}

/** The phases of the request log in words that follow the result. */
const PHASES: Readonly<Record<string, string>> = {
  auth: 'at the key',
  select: 'choosing an account',
  connect: 'connecting',
  first_event: 'before the first token',
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

export const countText = (count: number): string => count.toLocaleString('en')

/** Tokens in few signs: "840", "12.4 k", "3.1 M". */
export const shortCount = (count: number): string => {
  if (count < 1000) return String(count)
  if (count < 999_500) return `${trim(count / 1000)} k`
  return count < 999_500_000 ? `${trim(count / 1e6)} M` : `${trim(count / 1e9)} G`
}

const trim = (value: number): string => value.toFixed(value < 99.95 ? 1 : 0).replace(/\.0$/, '')

/** Dollars with as many digits as a small amount needs; null: unpriced. */
export const usdText = (usd: number): string => {
  if (usd === 0) return '$0'
  if (usd < 0.0001) return '<$0.0001'
  if (usd >= 1000) return `$${Math.round(usd).toLocaleString('en')}`
  return `$${usd.toFixed(usd < 0.1 ? 4 : usd < 10 ? 3 : 2)}`
}

/** "2026-01-10 14:20:31" in UTC. */
export const momentText = (at: string): string => `${at.slice(0, 10)} ${at.slice(11, 19)}`
