/** Texts for sections, choices and sizes on the settings pages. */
import type { SettingName, Settings } from '../../src/settings/schema.ts'
import type { Section } from '../../src/settings/setting.ts'

export const SECTION_WORDS: Readonly<Record<Section, { title: string; intro: string | null }>> = {
  security: { title: 'Sign-in', intro: null },
  guests: { title: 'Guests', intro: null },
  clients: { title: 'Clients', intro: null },
  members: { title: 'Members', intro: null },
  routing: { title: 'Account selection', intro: 'Changes apply to new requests.' },
  affinity: {
    title: 'Conversations',
    intro: 'A conversation stays on one account, because ChatGPT caches it there.',
  },
  claude: {
    title: 'Claude model names',
    intro: 'Claude Code and Anthropic SDKs request Claude models. Models of your pool serve these requests.',
  },
  windows: {
    title: 'Window starts',
    intro: 'A five-hour window begins with its first request. Turn this on for each account on its page.',
  },
  planner: {
    title: 'Quota planner',
    intro: 'A window that starts before work begins is reset sooner, in the middle of the day.',
  },
  resets: {
    title: 'Reset credits',
    intro: 'A reset credit resets all limits of its account. These defaults apply to accounts without their own rule.',
  },
  overflow: {
    title: 'Overflow',
    intro: 'A model source can serve new conversations while every account is at its usage limit.',
  },
  limits: { title: 'Limits', intro: 'Protect each account and this machine from too many parallel requests.' },
  timeouts: {
    title: 'Timeouts',
    intro: 'How long each part of a request may take. Running requests keep their timeouts.',
  },
  egress: { title: 'Outbound proxies', intro: 'Connect accounts to ChatGPT through proxies of your choice.' },
  retention: { title: 'Retention', intro: null },
  backups: { title: 'Backup schedule', intro: null },
  alerts: {
    title: 'When to alert',
    intro: 'The right values depend on your pool, so these alerts are off by default.',
  },
}

type Words = Readonly<Record<string, { label: string; says: string | null }>>

const STRATEGIES: Readonly<Record<Settings['routingStrategy'], { label: string; says: string }>> = {
  capacity_weighted: {
    label: 'Capacity weighted',
    says: 'Chooses at random, weighted by the quota each account has left, so larger plans get more requests. A good default.',
  },
  usage_weighted: {
    label: 'Least used',
    says: 'Uses the account that has used the smallest share of its quota.',
  },
  round_robin: { label: 'Round robin', says: 'Uses the account that was used least recently.' },
  relative_availability: {
    label: 'Relative availability',
    says: 'Chooses at random among the best few accounts, weighted by the share of quota they have left.',
  },
  fill_first: { label: 'Fill first', says: 'Uses up the 5-hour window of one account, then moves to the next.' },
  sequential_drain: {
    label: 'Drain in order',
    says: 'Uses up accounts one after another, smallest plan first.',
  },
  reset_drain: {
    label: 'Soonest reset first',
    says: 'Uses up the account whose quota resets soonest.',
  },
  single_account: {
    label: 'Single account',
    says: 'Sends every request to the account chosen below.',
  },
}

const TRANSPORTS: Readonly<Record<Settings['upstreamStreamTransport'], { label: string; says: string }>> = {
  auto: { label: 'Automatic', says: 'WebSocket when the client and ChatGPT both support it, otherwise HTTP.' },
  http: { label: 'HTTP', says: 'Always server-sent events. For networks where WebSockets fail.' },
  websocket: { label: 'WebSocket', says: 'Always a WebSocket, even when the client uses HTTP.' },
}

const PAID_CREDITS: Readonly<Record<Settings['paidCredits'], { label: string; says: string }>> = {
  never: { label: 'Never', says: 'The account is not used until its quota resets.' },
  last: { label: 'Last', says: 'The account is used only when no account with included quota is available.' },
  freely: { label: 'Freely', says: 'The account is used like any other and spends its credits.' },
}

const CLIENT_RATE_LIMITS: Readonly<Record<Settings['clientRateLimits'], { label: string; says: string }>> = {
  pool: { label: 'The pool’s', says: 'The quota left on all accounts the key can use.' },
  account: { label: 'The account’s', says: 'The quota left on the account that served the request.' },
  hidden: { label: 'None', says: 'Clients don’t see the quota of any account.' },
}

const WINDOW_STARTS: Readonly<Record<Settings['windowStart'], { label: string; says: string }>> = {
  off: { label: 'Off', says: 'Windows begin with your requests.' },
  at_reset: { label: 'After each reset', says: 'As soon as ChatGPT reports that the last window has ended.' },
  at_hours: { label: 'At set hours', says: 'At the times below, so that a new window is ready when you need it.' },
}

const PLANNER_MODES: Readonly<Record<Settings['plannerMode'], { label: string; says: string }>> = {
  off: { label: 'Off', says: 'Nothing is computed.' },
  advise: { label: 'Advise', says: 'Reports show what a start would bring. You decide.' },
  act: { label: 'Act', says: 'Windows of accounts with window starts turned on are started. Routing stays as it is.' },
}

export const RESET_RULES: Readonly<Record<Settings['resetPolicy'], { label: string; says: string }>> = {
  never: { label: 'Never', says: 'Sluice never uses one. You still can.' },
  before_expiry: {
    label: 'Before it expires',
    says: 'In the last 24 hours before it expires, as late as makes sense.',
  },
  when_exhausted: { label: 'When out of quota', says: 'When a window of the account is used up.' },
  at_percent: { label: 'At a percentage', says: 'When this much of a window is used.' },
}

const OVERFLOW_KEYS: Readonly<Record<Settings['overflowKeys'], { label: string; says: string }>> = {
  all: { label: 'All keys', says: 'Also requests without a key.' },
  marked: { label: 'Marked keys', says: 'Only keys with overflow turned on.' },
}

const FAST_MODE: Readonly<Record<Settings['prohibitFastMode'], { label: string; says: string }>> = {
  off: { label: 'Allowed', says: 'Clients choose the service tier.' },
  strip: { label: 'Ignored', says: 'Requests for fast mode are sent without it.' },
  refuse: { label: 'Rejected', says: 'Requests for fast mode get HTTP 400.' },
}

const CHOICES: Partial<Record<SettingName, Words>> = {
  routingStrategy: STRATEGIES,
  upstreamStreamTransport: TRANSPORTS,
  paidCredits: PAID_CREDITS,
  clientRateLimits: CLIENT_RATE_LIMITS,
  windowStart: WINDOW_STARTS,
  plannerMode: PLANNER_MODES,
  resetPolicy: RESET_RULES,
  overflowKeys: OVERFLOW_KEYS,
  prohibitFastMode: FAST_MODE,
}

/** Label and description of a choice; otherwise its value. */
export const choiceWords = (name: SettingName, value: string): Words[string] =>
  CHOICES[name]?.[value] ?? { label: value, says: null }

const LENGTHS: readonly [seconds: number, label: string][] = [
  [3600, '1 hour'],
  [43_200, '12 hours'],
  [86_400, '1 day'],
  [604_800, '7 days'],
  [2_592_000, '30 days'],
  [7_776_000, '90 days'],
  [31_536_000, '1 year'],
]

/** Numbers usually chosen from a list. */
export const PICKED: Partial<Record<SettingName, readonly [value: number, label: string][]>> = {
  dashboardSessionTtlSeconds: LENGTHS,
}

/** Settings where 0 is not an amount: a switch beside the field says it. `amount` is the suggestion. */
export const ZEROS: Partial<Record<SettingName, { label: string; amount: number }>> = {
  proxyAccountStreamLimit: { label: 'unlimited', amount: 8 },
  overflowCostUsdPerDay: { label: 'unlimited', amount: 10 },
  requestLogRetentionDays: { label: 'forever', amount: 90 },
  auditRetentionDays: { label: 'forever', amount: 365 },
  responseStoreMinutes: { label: 'off', amount: 60 },
  backupIntervalHours: { label: 'never', amount: 24 },
  alertMinAccounts: { label: 'off', amount: 2 },
  alertAccountPercent: { label: 'off', amount: 90 },
  alertBlockedHours: { label: 'off', amount: 24 },
}

/** Settings used by only one strategy; hidden while another one is chosen. */
export const STRATEGY_OF: Partial<Record<SettingName, Settings['routingStrategy']>> = {
  singleAccountId: 'single_account',
  relativeAvailabilityPower: 'relative_availability',
  relativeAvailabilityTopK: 'relative_availability',
}

export const bytesText = (bytes: number): string => {
  const [size, unit] =
    bytes < 1024 ** 2
      ? [bytes / 1024, 'KiB']
      : bytes < 1024 ** 3
        ? [bytes / 1024 ** 2, 'MiB']
        : [bytes / 1024 ** 3, 'GiB']
  return `${size < 10 && unit !== 'KiB' ? size.toFixed(1) : Math.round(size)} ${unit}`
}
