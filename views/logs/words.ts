/** Texts of the log: phases, filters, columns, strategies. Results are in `model/log/request-result.ts`. */
import type { FC } from 'hono/jsx'
import type { LogEntry } from '../../src/model/log/request-log-entry.ts'
import type { MoreColumn, PageStatus, RangeName } from '../../src/model/log/request-log-page.ts'
import type { LogStatus } from '../../src/model/log/request-log-query.ts'
import type { Settings } from '../../src/settings/schema.ts'
import type { Tone } from '../ui/badge.tsx'
import { CheckIcon, ClockIcon, CrossIcon, LeaveIcon, WarningIcon } from '../ui/icons.tsx'

export const STATUS_STYLES: Record<LogStatus, { tone: Tone; Icon: FC }> = {
  ok: { tone: 'good', Icon: CheckIcon },
  cancelled: { tone: 'idle', Icon: LeaveIcon },
  rate_limit: { tone: 'wait', Icon: ClockIcon },
  quota: { tone: 'wait', Icon: WarningIcon },
  error: { tone: 'bad', Icon: CrossIcon },
}

export const STATUS_CHOICES: readonly (readonly [PageStatus, string])[] = [
  ['ok', 'Completed'],
  ['failed', 'Errors'],
  ['rate_limit', 'Rate limited'],
  ['quota', 'Out of quota'],
  ['error', 'Other errors'],
  ['cancelled', 'Cancelled by the client'],
  ['rejected', 'Rejected'],
]

export const KIND_NAMES: Record<LogEntry['requestKind'], string> = {
  normal: 'Model request',
  compaction: 'Compaction',
  prewarm: 'Prewarm',
  warmup: 'Warm-up',
  image: 'Image',
  audio: 'Transcription',
  file: 'File',
  control: 'Control',
  live: 'Live call',
  embedding: 'Embedding',
}

export const KIND_CHOICES = Object.entries(KIND_NAMES)

/** The views above the filters. */
export const VIEWS = [
  ['all', 'All'],
  ['errors', 'Errors'],
  ['rejected', 'Rejected'],
  ['slow', 'Slow'],
] as const

export const RANGE_CHOICES: readonly (readonly [RangeName, string])[] = [
  ['1h', 'Last hour'],
  ['24h', 'Last 24 hours'],
  ['7d', 'Last 7 days'],
  ['30d', 'Last 30 days'],
]

export const COLUMN_NAMES: Record<MoreColumn, string> = {
  total: 'Total time',
  effort: 'Effort',
  kind: 'Kind',
  route: 'Route',
  tool: 'Client',
  address: 'Address',
  request: 'Request ID',
  paid: 'Paid credits',
}

/** The phase in which a request failed; shown when it is opened. */
const PHASES: Readonly<Record<string, string>> = {
  request: 'Reading the request',
  auth: 'Checking the key',
  select: 'Choosing an account',
  connect: 'Connecting to ChatGPT',
  first_event: 'Waiting for the first token',
  upstream: 'Answer from ChatGPT',
  stream: 'Streaming the response',
  finish: 'Finishing',
}

export const phaseText = (phase: string): string => PHASES[phase] ?? phase

export const STRATEGY_NAMES: Record<Settings['routingStrategy'], string> = {
  capacity_weighted: 'capacity weighted',
  usage_weighted: 'usage weighted',
  round_robin: 'round robin',
  relative_availability: 'relative availability',
  fill_first: 'fill first',
  sequential_drain: 'sequential drain',
  reset_drain: 'reset drain',
  single_account: 'single account',
}
