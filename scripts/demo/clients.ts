/** The six keys of the demo: which client uses each, when, and with which models. */
import type { NewKey } from '../../src/model/keys/key-input.ts'
import { MODELS, PRO_MODEL } from './pool.ts'

/** Choices with their weights. */
export type Weighted<T> = readonly (readonly [choice: T, weight: number])[]

export interface DemoClient {
  key: string
  /** Share of all requests in its busiest hour. */
  weight: number
  /** The hours of the day in which it is active. */
  rhythm: 'office' | 'evening' | 'nightly' | 'steady'
  userAgent: string
  ip: string
  route: string
  transport: 'http' | 'websocket'
  models: Weighted<string>
  tiers: Weighted<string>
  efforts: Weighted<string | null>
  /** Typical tokens of one request; most of the input is cached in later requests of a conversation. */
  input: number
  output: number
  /** How long ago the key stopped working, ms. */
  endedMs?: number
}

const [LARGE, SOL, LUNA, MINI] = MODELS
const NATIVE = '/backend-api/codex/responses'
const RESPONSES = '/v1/responses'
const CHAT = '/v1/chat/completions'

export const CLIENTS: readonly DemoClient[] = [
  {
    key: 'laptop',
    weight: 34,
    rhythm: 'office',
    route: NATIVE,
    transport: 'websocket',
    ip: '192.168.1.20',
    userAgent: 'codex_cli_rs/0.169.0 (Mac OS 15.6.1; arm64) iTerm.app/3.5.14',
    input: 46_000,
    output: 900,
    models: [
      [LARGE, 6],
      [SOL, 3],
      [PRO_MODEL, 0.5],
    ],
    tiers: [
      ['default', 5],
      ['priority', 2],
    ],
    efforts: [
      ['medium', 5],
      ['high', 4],
      ['low', 1],
    ],
  },
  {
    key: 'desktop',
    weight: 26,
    rhythm: 'evening',
    route: NATIVE,
    transport: 'http',
    ip: '192.168.1.31',
    userAgent: 'codex_vscode/0.169.0 (Windows 11; x86_64) vscode/1.108.0',
    input: 38_000,
    output: 700,
    models: [
      [LARGE, 5],
      [LUNA, 2],
    ],
    tiers: [['default', 1]],
    efforts: [
      ['medium', 3],
      ['high', 1],
    ],
  },
  {
    key: 'ci',
    weight: 22,
    rhythm: 'nightly',
    route: RESPONSES,
    transport: 'http',
    ip: '10.0.4.7',
    userAgent: 'codex_exec/0.169.0 (Debian 12.0.0; x86_64) unknown',
    input: 21_000,
    output: 500,
    models: [
      [MINI, 5],
      [LARGE, 1],
    ],
    tiers: [
      ['flex', 4],
      ['default', 1],
    ],
    efforts: [
      ['low', 3],
      ['medium', 1],
    ],
  },
  {
    key: 'open-webui',
    weight: 14,
    rhythm: 'evening',
    route: CHAT,
    transport: 'http',
    ip: '192.168.1.5',
    userAgent: 'Python/3.11 aiohttp/3.12.15',
    input: 5_200,
    output: 620,
    models: [
      [LUNA, 4],
      [LARGE, 2],
      [SOL, 1],
    ],
    tiers: [['default', 1]],
    efforts: [
      [null, 4],
      ['low', 1],
    ],
  },
  {
    key: 'review-bot',
    weight: 12,
    rhythm: 'steady',
    route: RESPONSES,
    transport: 'http',
    ip: '10.0.4.12',
    userAgent: 'OpenAI/Python 2.11.0',
    input: 17_000,
    output: 800,
    models: [
      [SOL, 3],
      [LARGE, 2],
    ],
    tiers: [
      ['default', 3],
      ['flex', 1],
    ],
    efforts: [
      ['high', 1],
      ['medium', 1],
    ],
  },
  {
    key: 'old-phone',
    weight: 2,
    rhythm: 'evening',
    route: CHAT,
    transport: 'http',
    ip: '192.168.1.44',
    userAgent: 'OpenAI/JS 6.9.0',
    input: 2_100,
    output: 300,
    endedMs: 3 * 86_400_000,
    models: [[LUNA, 1]],
    tiers: [['default', 1]],
    efforts: [[null, 1]],
  },
]

/** The restrictions of each key. Limits are set after the week was written, and include its usage. */
export const keyPolicies = (now: number): Record<string, Omit<NewKey, 'name'>> => ({
  laptop: {},
  desktop: { limits: [{ limitType: 'cost_usd', limitWindow: 'weekly', maxValue: 500_000_000, modelFilter: '' }] },
  ci: {
    allowedModels: [MINI, LARGE],
    enforcedReasoningEffort: null,
    limits: [{ limitType: 'requests', limitWindow: 'daily', maxValue: 2_000, modelFilter: '' }],
  },
  'open-webui': {
    limits: [{ limitType: 'cost_usd', limitWindow: 'monthly', maxValue: 60_000_000, modelFilter: '' }],
  },
  'review-bot': {
    expiresAt: now + 12 * 86_400_000,
    limits: [{ limitType: 'total_tokens', limitWindow: 'weekly', maxValue: 50_000_000, modelFilter: '' }],
  },
  'old-phone': {},
})

const HOUR_SHARES: Record<DemoClient['rhythm'], readonly number[]> = {
  office: [0.2, 0.1, 0, 0, 0, 0.1, 0.6, 2, 5, 8, 9, 8, 5, 8, 9, 9, 8, 6, 4, 2, 2, 1.5, 1, 0.5],
  evening: [3, 1.5, 0.6, 0.2, 0.1, 0.1, 0.3, 1, 2, 3, 3, 3, 3, 3, 3, 4, 5, 6, 8, 9, 10, 9, 7, 5],
  nightly: [3, 9, 10, 9, 4, 1, 0.5, 0.5, 1, 2, 2, 2, 1, 2, 2, 2, 2, 1, 1, 0.5, 0.5, 0.5, 1, 2],
  steady: [2, 2, 2, 2, 2, 2, 2, 3, 4, 5, 5, 5, 4, 5, 5, 5, 5, 4, 3, 3, 2, 2, 2, 2],
}

/** How busy the client is in the hour of `at`, in this machine's time zone. Weekends are quieter. */
export const busyness = ({ weight, rhythm, endedMs = 0 }: DemoClient, at: number, now: number): number => {
  if (endedMs > 0 && at > now - endedMs) return 0
  const date = new Date(at)
  const isWeekend = date.getDay() === 0 || date.getDay() === 6
  const share = HOUR_SHARES[rhythm][date.getHours()] ?? 0
  return weight * share * (isWeekend && rhythm !== 'evening' ? 0.35 : 1)
}
