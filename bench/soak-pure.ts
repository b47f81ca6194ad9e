/**
 * Soak steps on pure code: SSE framing, account states, selection. Each is checked against a separate implementation of
 * the rules.
 */
import { seededRandom } from '../src/lib/random.ts'
import { SseScanner } from '../src/lib/sse.ts'
import { eventData } from '../src/lib/sse-payload.ts'
import { HEALTHY } from '../src/model/accounts/account-health.ts'
import {
  ACTIVE,
  type AccountEvent,
  type AccountState,
  CHECK_INTERVAL_MS,
  isBlocked,
  nextState,
} from '../src/model/accounts/account-state.ts'
import type { UsageSnapshot } from '../src/model/accounts/usage-windows.ts'
import type { Candidate, PolicyContext, Strategy } from '../src/proxy/pool/policies.ts'
import { select } from '../src/proxy/pool/select.ts'
import { STRATEGIES } from '../src/settings/schema.ts'
import type { SoakContext } from './soak-step.ts'

type Draw = { below: (n: number) => number; pick: <T>(from: readonly T[]) => T; float: () => number }

/** Events of random shape with random line ends, split at random bytes, must parse like the whole document. */
export function sseFraming({ seed, scale }: SoakContext): string {
  const documents = Math.ceil(100_000 * scale)
  const encoder = new TextEncoder()
  let events = 0
  for (let n = 0; n < documents; n++) {
    const draw = drawFrom(seed + n)
    const text = randomDocument(draw)
    const expected = readWhole(text)
    const got = scanInPieces(encoder.encode(text), draw)
    events += expected.length
    if (JSON.stringify(got) !== JSON.stringify(expected)) {
      throw new Error(`document ${n} of seed ${seed}: ${JSON.stringify({ text, expected, got })}`)
    }
  }
  return `${documents} documents, ${events} events`
}

type Seen = { data: string; type: string | null }

function scanInPieces(bytes: Uint8Array, draw: Draw): Seen[] {
  const scanner = new SseScanner()
  const seen: Seen[] = []
  const longest = draw.pick([1, 3, 20, 200])
  for (let at = 0; at < bytes.length; ) {
    const end = Math.min(bytes.length, at + 1 + draw.below(longest))
    for (const event of scanner.push(bytes.slice(at, end))) {
      const data = eventData(event.bytes)
      // The scanner reads a type in front without the rest; its result for broken JSON is undefined.
      if (data !== null) seen.push({ data, type: isJson(data) ? event.type : null })
    }
    at = end
  }
  return seen
}

/**
 * The rules of WHATWG HTML §9.2.6 applied to the whole text: normalise line ends, split at blank lines, read fields.
 */
function readWhole(text: string): Seen[] {
  const blocks = text.replace(/\r\n?/g, '\n').split(/\n\n+/)
  blocks.pop() // an event that is not ended by a blank line
  return blocks.flatMap((block) => {
    const lines = block.split('\n').filter((line) => line.startsWith('data:'))
    if (lines.length === 0) return []
    const data = lines.map((line) => line.slice(5).replace(/^ /, '')).join('\n')
    return [{ data, type: typeOf(data) }]
  })
}

function typeOf(data: string): string | null {
  if (!isJson(data)) return null
  const value: unknown = JSON.parse(data)
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
    ? value.type
    : null
}

function isJson(data: string): boolean {
  try {
    JSON.parse(data)
    return true
  } catch {
    return false
  }
}

function randomDocument(draw: Draw): string {
  const ends = draw.pick([['\n'], ['\r\n'], ['\r'], ['\n', '\r\n', '\r']])
  const lines: string[] = []
  for (let n = draw.below(8); n >= 0; n--) {
    for (let k = draw.below(3); k > 0; k--)
      lines.push(draw.pick([': note', ':', 'event: response.x', 'id: 7', 'retry: 10', 'datax: no']))
    if (draw.below(10) > 0) lines.push(...randomData(draw))
    for (let k = draw.below(6) === 0 ? 2 : 1; k > 0; k--) lines.push('')
  }
  if (draw.below(3) === 0) lines.push('data: {"type":"unfinished"}')
  return lines.map((line) => line + draw.pick(ends)).join('')
}

function randomData(draw: Draw): string[] {
  const text = draw.pick(['plain', '日本語', '👩‍💻', '\u2028', '\u2029', 'a\u0085b', '"quoted"', '\\n', ' ', ''])
  const type = draw.pick(['response.created', 'response.output_text.delta', 'response.completed', 'error'])
  const space = draw.pick([' ', ''])
  const shapes: string[][] = [
    [`data:${space}${JSON.stringify({ type, delta: text })}`],
    [`data:${space}${JSON.stringify({ delta: text, type })}`],
    [`data:${space}${JSON.stringify({ response: { type: 'inner' }, delta: text })}`],
    ['data:{', `data: "type": ${JSON.stringify(type)},`, `data: "delta": ${JSON.stringify(text)}`, 'data:}'],
    [`data:${space}[DONE]`],
    ['data: {broken'],
    ['data:'],
  ]
  return draw.pick(shapes)
}

/** Random event sequences of an account: a block always has a cause and always ends. */
export function stateWalks({ seed, scale }: SoakContext): string {
  const lives = Math.ceil(200_000 * scale)
  let blocks = 0
  for (let n = 0; n < lives; n++) {
    const draw = drawFrom(seed + n)
    const history: AccountEvent[] = []
    let state: AccountState = ACTIVE
    let now = 1_800_000_000_000
    for (let k = draw.below(20); k >= 0; k--) {
      now += draw.pick([0, 1, 1_000, 59_999, 60_000, 3_600_000, 86_400_000])
      const event = randomEvent(draw, now)
      history.push(event)
      state = after(state, event)
      const problem = whatIsWrongWith(state, now)
      if (problem) throw new Error(`life ${n} of seed ${seed}: ${problem} ${JSON.stringify({ state, history })}`)
    }
    if (isBlocked(state)) blocks += 1
  }
  return `${lives} lives, ${blocks} ended blocked`
}

/** `nextState` rejects only a pause or reactivation that the state forbids, and then changes nothing. */
function after(state: AccountState, event: AccountEvent): AccountState {
  try {
    return nextState(Object.freeze({ ...state }), event)
  } catch (error) {
    if (event.kind === 'pause' || event.kind === 'reactivate') return state
    throw error
  }
}

function whatIsWrongWith(state: AccountState, now: number): string | null {
  if (!isBlocked(state)) return null
  if (!state.cause || !state.evidence || state.since === null) return 'a block without cause, evidence or since'
  const end = state.until ?? state.nextCheckAt
  if (end === null || !Number.isFinite(end)) return 'a block without until and without next check'
  const due = Math.max(end, now) + CHECK_INTERVAL_MS
  if (isBlocked(nextState(state, { kind: 'tick', at: due }))) return 'still blocked one check interval past its end'
  const healthy = { kind: 'usage', at: due, snapshot: usageAt(due, 10) } as const
  if (isBlocked(nextState(state, healthy))) return 'still blocked although later usage shows room'
  return isBlocked(nextState(state, { kind: 'checked', at: now, ok: true })) ? 'still blocked after a good probe' : null
}

function randomEvent(draw: Draw, at: number): AccountEvent {
  const resetAt = draw.pick([
    null,
    at - 1,
    at,
    at + 1,
    at + 60_000,
    at + 604_800_000,
    at * 1000,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    0,
  ])
  const refusal = {
    at,
    evidence: draw.pick(['', '429']),
    resetAt,
    retryAfterMs: draw.pick([null, 0, 1, 30_000, -5, Number.NaN]),
  }
  const code = draw.pick(['token_expired', 'account_deactivated', 'invented', 'constructor'])
  const events: AccountEvent[] = [
    { kind: 'rate_limited', ...refusal },
    { kind: 'quota_exceeded', ...refusal },
    { kind: 'usage', at, snapshot: usageAt(at - draw.pick([0, 60_000]), draw.pick([0, 50, 100, 250])) },
    { kind: 'checked', at, ok: draw.below(2) === 0 },
    { kind: 'tick', at },
    { kind: 'succeeded', at },
    { kind: 'pause', at },
    { kind: 'reactivate', at },
    { kind: 'reauthenticated', at },
    { kind: 'auth_failed', at, code, evidence: '' },
  ]
  // Rejections are what the rules are about, so they are the most frequent.
  return draw.below(3) === 0 ? draw.pick(events) : draw.pick(events.slice(0, 6))
}

function usageAt(at: number, usedPercent: number): UsageSnapshot {
  const window = { usedPercent, windowMinutes: 300, resetAt: at + 3_600_000 }
  return { at, windows: { fiveHour: window, weekly: null, monthly: null }, credits: null, planType: 'plus' }
}

/**
 * The share of requests each strategy must give five accounts of the same plan that used 10, 30, 50, 70 and 90 percent.
 */
const EXPECTED: Record<Strategy, readonly number[]> = {
  capacity_weighted: [90, 70, 50, 30, 10].map((left) => left / 250),
  usage_weighted: [1, 0, 0, 0, 0],
  round_robin: [0.2, 0.2, 0.2, 0.2, 0.2],
  relative_availability: powerShares([90, 70, 50, 30, 10], 2, 3),
  fill_first: [0, 0, 0, 0, 1],
  sequential_drain: [1, 0, 0, 0, 0],
  reset_drain: [1, 0, 0, 0, 0],
  single_account: [0, 0, 1, 0, 0],
}

/** Shares over many selections must match the strategy; half a percent is more than five standard deviations. */
export function fairness({ seed, scale }: SoakContext): string {
  const selections = Math.ceil(500_000 * scale)
  const tolerance = 0.005 / Math.sqrt(scale)
  const worst = STRATEGIES.map((strategy) => {
    const shares = getShares(strategy, selections, seed)
    const off = Math.max(...shares.map((share, n) => Math.abs(share - (EXPECTED[strategy][n] ?? Number.NaN))))
    if (off <= tolerance) return `${strategy} ${(off * 100).toFixed(2)} %`
    const text = (values: readonly number[]) => values.map((value) => value.toFixed(3)).join(' ')
    throw new Error(`${strategy} gave ${text(shares)}, expected ${text(EXPECTED[strategy])}`)
  })
  return `largest deviation ${worst.join(', ')}`
}

function getShares(strategy: Strategy, selections: number, seed: number): number[] {
  const random = seededRandom(seed)
  const start = 1_800_000_000_000
  const candidates = [10, 30, 50, 70, 90].map((used, n) => aCandidate(`acc_${n}`, used, start))
  const counts = new Map(candidates.map(({ id }) => [id, 0]))
  for (let n = 0; n < selections; n++) {
    const now = start + n
    const choice = select(candidates, NEEDS, toContext(strategy, now, random.float))
    if (choice.kind !== 'chosen') throw new Error(`${strategy} chose no account: ${choice.kind}`)
    counts.set(choice.id, (counts.get(choice.id) ?? 0) + 1)
    const chosen = candidates.find(({ id }) => id === choice.id)
    if (chosen) chosen.lastSelectedAt = now
  }
  return candidates.map(({ id }) => (counts.get(id) ?? 0) / selections)
}

const NEEDS = { model: null, tried: new Set<string>(), scope: null, owner: null, restricted: false, streamCap: 0 }

function toContext(strategy: Strategy, now: number, random: () => number): PolicyContext {
  return {
    strategy,
    now,
    random,
    singleAccountId: 'acc_2',
    relativePower: 2,
    relativeTopK: 3,
    preferEarlierReset: false,
    paidCredits: 'last',
    inFlightPenaltyPercent: 1,
    rates: { short: 1, long: 1 },
    whyNoRoute: () => null,
  }
}

function aCandidate(id: string, usedPercent: number, now: number): Candidate {
  const resetAt = now + 5 * 86_400_000
  const windows = {
    fiveHour: { usedPercent, windowMinutes: 300, resetAt },
    weekly: { usedPercent, windowMinutes: 10_080, resetAt },
    monthly: null,
  }
  return {
    id,
    egressPoolId: null,
    planType: 'plus',
    routingPolicy: 'normal',
    state: ACTIVE,
    health: HEALTHY,
    usage: { at: now, windows, credits: null, planType: 'plus' },
    inFlight: 0,
    lastSelectedAt: 0,
    lastForegroundAt: 0,
    securityWorkAuthorized: false,
    maxUsedPercentPrimary: null,
    maxUsedPercentSecondary: null,
    exemptOwnerId: null,
    tags: [],
    position: null,
    models: null,
    limitedModels: new Map(),
    rejectedModels: new Map(),
    missingRoutes: new Map(),
  }
}

function powerShares(left: readonly number[], power: number, top: number): number[] {
  const weights = left.map((value, place) => (place < top ? (value / (left[0] ?? 1)) ** power : 0))
  const sum = weights.reduce((total, weight) => total + weight, 0)
  return weights.map((weight) => weight / sum)
}

function drawFrom(seed: number): Draw {
  const random = seededRandom(seed)
  const float = () => random.float()
  const below = (n: number) => Math.floor(float() * n)
  // as: `below` stays inside the list, which is not empty here
  return { float, below, pick: <T>(from: readonly T[]) => from[below(from.length)] as T }
}
