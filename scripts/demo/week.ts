/** The requests of the demo's week, generated from a seed: the same seed and time give the same week. */
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/lib/durations.ts'
import type { Random } from '../../src/lib/random.ts'
import { costMicros } from '../../src/model/catalog/pricing.ts'
import type { Considered } from '../../src/model/log/skip-reasons.ts'
import type { LedgerEntry } from '../../src/proxy/ledger/ledger-batch.ts'
import type { AttemptRecord } from '../../src/proxy/turn/turn.ts'
import { busyness, CLIENTS, type DemoClient, type Weighted } from './clients.ts'
import { type Failure, failureAt, INCIDENTS } from './incidents.ts'
import { DEMO_ACCOUNTS, type DemoAccount, PRO_MODEL } from './pool.ts'

export const WEEK_MS = 7 * DAY_MS

export interface WeekPlan {
  /** The end of the week, ms since epoch. */
  now: number
  requests: number
  random: Random
  /** Account or key name → ID. */
  accountIds: ReadonlyMap<string, string>
  keyIds: ReadonlyMap<string, string>
}

/** Oldest first. */
export const week = (plan: WeekPlan): LedgerEntry[] => {
  const conversations = new Map<string, Conversation>()
  return arrivals(plan).map(({ at, client }) => requestAt(plan, conversations, { at, client }))
}

interface Arrival {
  at: number
  client: DemoClient
}

/**
 * As many as planned, spread over clients and hours by how busy they are. Those of the incidents are added to their
 * hours.
 */
const arrivals = ({ now, requests, random }: WeekPlan): Arrival[] => {
  const slots = getSlots(now)
  const inIncidents = INCIDENTS.flatMap(({ startMs, lengthMs, requests: count }) =>
    Array.from({ length: Math.round((count * requests) / 20_000) }, () => ({
      at: now - startMs + Math.floor(random.float() * lengthMs),
      client: pick(slots.get(getHour(now - startMs)) ?? EVERY_CLIENT, random),
    })),
  )
  const hours: Weighted<number> = [...slots].map(([hour, clients]) => [hour, getSum(clients)])
  const choose = chooser(hours)
  const others = Array.from({ length: requests - inIncidents.length }, () => {
    const hour = choose(random)
    const length = Math.min(HOUR_MS, now - hour)
    const first = Math.max(hour, now - WEEK_MS)
    const at = first + Math.floor(random.float() * (hour + length - first))
    return { at, client: pick(slots.get(hour) ?? EVERY_CLIENT, random) }
  })
  return [...inIncidents, ...others].toSorted((a, b) => a.at - b.at)
}

const EVERY_CLIENT: Weighted<DemoClient> = CLIENTS.map((client) => [client, client.weight])

/** Hour → its clients with their weights. */
const getSlots = (now: number): Map<number, Weighted<DemoClient>> => {
  const slots = new Map<number, Weighted<DemoClient>>()
  for (let hour = getHour(now - WEEK_MS); hour < now; hour += HOUR_MS) {
    const part = Math.min(HOUR_MS, now - hour) / HOUR_MS
    slots.set(
      hour,
      CLIENTS.map((client) => [client, busyness(client, hour, now) * part]),
    )
  }
  return slots
}

const getHour = (at: number): number => at - (at % HOUR_MS)

interface Conversation {
  hash: string
  account: DemoAccount
  model: string
  /** Remaining requests. */
  left: number
  /** Requests so far. Each adds to the input, most of which is cached. */
  length: number
  lastAt: number
}

const LONGEST = 14
const RETRIED_SHARE = 0.006
const CANCELLED_SHARE = 0.012
const PAUSE_MS = 40 * MINUTE_MS

const requestAt = (plan: WeekPlan, conversations: Map<string, Conversation>, { at, client }: Arrival): LedgerEntry => {
  const { random } = plan
  const known = conversations.get(client.key)
  const goesOn =
    known !== undefined && known.left > 0 && at - known.lastAt < PAUSE_MS && isUsable(known.account, at, plan.now)
  const talk = goesOn ? known : newConversation(plan, client, at)
  conversations.set(client.key, talk)
  talk.left -= 1
  talk.length += 1
  talk.lastAt = at
  const failure = failureAt(at, plan.now, random)
  const isCancelled = failure === null && random.float() < CANCELLED_SHARE
  const tried = accountsTried(plan, talk.account, {
    at,
    count: failure?.tried ?? (random.float() < RETRIED_SHARE ? 2 : 1),
  })
  return getEntry(plan, { at, client, talk, failure, isCancelled, tried })
}

const newConversation = (plan: WeekPlan, { models }: DemoClient, at: number): Conversation => {
  const { random, now } = plan
  const usable = DEMO_ACCOUNTS.filter((account) => isUsable(account, at, now))
  const wanted = pick(models, random)
  const offering = wanted === PRO_MODEL ? usable.filter(({ plan: name }) => name === 'pro') : usable
  const account = pick(
    offering.map((one) => [one, one.isLastResort ? one.weight / 3 : one.weight]),
    random,
  )
  const hash = Buffer.from(random.bytes(32)).toString('hex')
  return { hash, account, model: wanted, left: 1 + Math.floor(random.float() * LONGEST), length: 0, lastAt: at }
}

/** the Pro account is always available */
const isUsable = ({ sinceMs }: DemoAccount, at: number, now: number): boolean => sinceMs === 0 || at < now - sinceMs

/** The account that ended the request comes last. */
const accountsTried = (
  { now, random }: WeekPlan,
  last: DemoAccount,
  { at, count }: { at: number; count: number },
): DemoAccount[] => {
  const others = DEMO_ACCOUNTS.filter((account) => account !== last && isUsable(account, at, now))
  const first = Math.floor(random.float() * others.length)
  return [...others.slice(first), ...others.slice(0, first)].slice(0, count - 1).concat(last)
}

interface Made extends Arrival {
  talk: Conversation
  failure: Failure | null
  isCancelled: boolean
  tried: readonly DemoAccount[]
}

const getEntry = (plan: WeekPlan, made: Made): LedgerEntry => {
  const { at, client, talk, failure, isCancelled } = made
  const { random, keyIds, accountIds } = plan
  const id = random.orderedId('trn', at)
  const isDone = failure === null && !isCancelled
  const serviceTier = pick(client.tiers, random)
  const use = isDone ? getUse(client, talk, random) : null
  const connectMs = 25 + random.float() * 60
  const firstEventMs = connectMs + 350 + random.float() ** 3 * (serviceTier === 'flex' ? 9000 : 3500)
  const totalMs = firstEventMs + (failure ? random.float() * 2500 : 800 + random.float() ** 2 * 28_000)
  const attempts = getAttempts(plan, made, totalMs)
  const row: LedgerEntry['row'] = {
    id,
    requestId: random.orderedId('req', at),
    startedAt: at,
    route: client.route,
    kind: 'normal',
    transport: client.transport,
    upstreamTransport: failure?.phase === 'connect' ? null : 'websocket',
    keyId: keyIds.get(client.key) ?? null,
    accountId: accountIds.get(talk.account.name) ?? null,
    model: talk.model,
    reasoningEffort: pick(client.efforts, random),
    serviceTier,
    responseId: isDone ? `resp_${id.slice(4)}` : null,
    conversationHash: talk.hash,
    status: failure ? 'error' : isCancelled ? 'cancelled' : 'ok',
    httpStatus: failure?.httpStatus ?? (isCancelled ? 499 : 200),
    phase: failure?.phase ?? (isCancelled ? 'stream' : null),
    errorCode: failure?.code ?? null,
    errorMessage: failure?.message ?? null,
    ...use,
    costMicros: use && costMicros(use, talk.model, serviceTier),
    clientIp: client.ip,
    userAgent: client.userAgent,
    attempts: attempts.length,
    admitMs: rounded(0.08 + random.float() * 0.2),
    selectMs: rounded(0.1 + random.float() * 0.3),
    connectMs: rounded(connectMs),
    firstEventMs: failure && failure.phase !== 'stream' ? null : rounded(firstEventMs),
    totalMs: rounded(totalMs),
  }
  return {
    row,
    attempts,
    hourModel: talk.model,
    limitDeltas: [],
    isServiceFault: failure !== null && failure.httpStatus >= 500,
    affinity:
      isDone && row.accountId
        ? [{ kind: 'conversation', keyHash: talk.hash, accountId: row.accountId, mixed: false, usedAt: at }]
        : [],
  }
}

const getUse = ({ input, output }: DemoClient, { length }: Conversation, random: Random) => {
  const inputTokens = Math.floor(input * (0.35 + 0.9 * random.float()) * (1 + length / 10))
  const outputTokens = Math.floor(output * (0.2 + 2.2 * random.float() ** 2))
  const cachedShare = length === 1 ? 0.15 * random.float() : 0.78 + 0.18 * random.float()
  return {
    inputTokens,
    cachedInputTokens: Math.floor((inputTokens * cachedShare) / 128) * 128,
    outputTokens,
    reasoningTokens: Math.floor(outputTokens * 0.5 * random.float()),
  }
}

const RETRIED = { code: 'slow_down', message: 'slow down', status: 503 }

/** All attempts but the last failed; the last ends like the request. */
const getAttempts = (plan: WeekPlan, made: Made, totalMs: number): AttemptRecord[] => {
  const { at, failure, isCancelled, tried } = made
  const eachMs = tried.length === 1 ? 0 : Math.min(900, totalMs / (2 * tried.length))
  return tried.map(({ name }, index) => {
    const isLast = index === tried.length - 1
    const error = failure
      ? { code: failure.code, message: failure.message, status: failure.upstreamStatus }
      : isLast
        ? null
        : RETRIED
    return {
      n: index + 1,
      accountId: plan.accountIds.get(name) ?? null,
      startedAt: at + Math.floor(index * eachMs),
      durationMs: rounded(isLast ? totalMs - index * eachMs : eachMs),
      outcome: error ? 'failed' : isCancelled ? 'cancelled' : 'ok',
      upstreamStatus: error ? error.status : 200,
      code: error?.code ?? null,
      message: error?.message ?? null,
      considered: consideredBy(plan, made, index),
    }
  })
}

const consideredBy = ({ now, accountIds, random }: WeekPlan, { at, tried }: Made, index: number): Considered[] =>
  DEMO_ACCOUNTS.map((account) => {
    const before = tried.slice(0, index).includes(account)
    const skipped = before ? 'tried' : getSkip(account, at, now)
    const score = skipped === null ? rounded(account.weight * (0.5 + random.float())) : null
    const until = skipped !== null && !before && account.endsInMs ? now + account.endsInMs : null
    return { id: accountIds.get(account.name) ?? '', score, skipped, until }
  })

const SKIPPED = {
  active: null,
  rate_limited: 'rate_limited',
  quota_exceeded: 'quota_exceeded',
  paused: 'paused',
  reauth_required: 'needs_sign_in',
  deactivated: 'deactivated',
} as const satisfies Record<DemoAccount['status'], Considered['skipped']>

const getSkip = (account: DemoAccount, at: number, now: number): Considered['skipped'] =>
  isUsable(account, at, now) ? (account.isLastResort ? 'policy_class' : null) : SKIPPED[account.status]

const rounded = (ms: number): number => Math.round(ms * 1000) / 1000

const getSum = (choices: Weighted<unknown>): number => choices.reduce((sum, [, weight]) => sum + weight, 0)

const pick = <T>(choices: Weighted<T>, random: Random): T => chooser(choices)(random)

/** A weighted random choice. At least one weight must be positive. */
const chooser = <T>(choices: Weighted<T>): ((random: Random) => T) => {
  const total = getSum(choices)
  return (random) => {
    let rest = random.float() * total
    const found = choices.find(([, weight]) => {
      rest -= weight
      return rest < 0
    })
    const [last] = found ?? choices.at(-1) ?? []
    if (last === undefined) throw new Error('There is nothing to choose from.')
    return last
  }
}
