/** What sections, choices and sizes are called on the settings pages. */
import type { Section, SettingName, Settings } from '../../src/settings/schema.ts'

export const SECTION_WORDS: Readonly<Record<Section, { title: string; intro: string | null }>> = {
  security: { title: 'Signing in', intro: null },
  guests: { title: 'Guests', intro: null },
  clients: { title: 'Clients', intro: null },
  routing: { title: 'Choosing an account', intro: 'A change holds for turns that begin after it.' },
  affinity: {
    title: 'Affinity',
    intro: 'A conversation stays with one account, because the upstream has it cached there.',
  },
  limits: { title: 'Limits', intro: 'They keep one account, and this machine, from being asked for too much at once.' },
  timeouts: {
    title: 'Timeouts',
    intro: 'How long each part of a turn may take. Turns under way keep what they began with.',
  },
  retention: { title: 'Retention', intro: null },
  backups: { title: 'Backup schedule', intro: null },
}

type Words = Readonly<Record<string, { label: string; says: string | null }>>

const STRATEGIES: Readonly<Record<Settings['routingStrategy'], { label: string; says: string }>> = {
  capacity_weighted: {
    label: 'Capacity weighted',
    says: 'Draws by how much each account has left in absolute terms, so that large plans serve more. A good start.',
  },
  usage_weighted: {
    label: 'Least used',
    says: 'Takes the account that has used the smallest share of its allowance.',
  },
  round_robin: { label: 'Round robin', says: 'Takes the account that was used the longest time ago.' },
  relative_availability: {
    label: 'Relative availability',
    says: 'Draws among the few best accounts, the more likely the more of their share is left.',
  },
  fill_first: { label: 'Fill first', says: 'Uses up the 5-hour window of one account before turning to the next.' },
  sequential_drain: {
    label: 'Drain in order',
    says: 'Uses up the accounts one after another, the smallest plan first.',
  },
  reset_drain: {
    label: 'Drain what resets first',
    says: 'Uses up the account whose allowance begins anew the soonest.',
  },
  single_account: {
    label: 'Single account',
    says: 'Sends every turn to the one account chosen below, and to no other.',
  },
}

const TRANSPORTS: Readonly<Record<Settings['upstreamStreamTransport'], { label: string; says: string }>> = {
  auto: { label: 'Automatic', says: 'A WebSocket where client and upstream can, HTTP otherwise.' },
  http: { label: 'HTTP', says: 'Always server-sent events; for networks in which WebSockets break.' },
  websocket: { label: 'WebSocket', says: 'Always a WebSocket, also for clients that speak HTTP to Sluice.' },
}

const PAID_CREDITS: Readonly<Record<Settings['paidCredits'], { label: string; says: string }>> = {
  never: { label: 'Never', says: 'The account is not used until its quota resets.' },
  last: { label: 'Last', says: 'The account is used only when no account with included quota is available.' },
  freely: { label: 'Freely', says: 'The account is used like any other, at the cost of its credits.' },
}

const CHOICES: Partial<Record<SettingName, Words>> = {
  routingStrategy: STRATEGIES,
  upstreamStreamTransport: TRANSPORTS,
  paidCredits: PAID_CREDITS,
}

/** What a choice is called, and in one sentence what it does; itself where nobody has words for it. */
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

/** Numbers that people pick from a few. */
export const PICKED: Partial<Record<SettingName, readonly [value: number, label: string][]>> = {
  dashboardSessionTtlSeconds: LENGTHS,
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
