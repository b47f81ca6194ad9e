/** Polls each account's usage every minute, spread over the minute, and immediately when a block should have ended. */
import { inLanes } from '../lib/lanes.ts'
import { isInUse } from '../model/accounts/account-state.ts'
import { getWhy } from '../upstream/account-call.ts'
import { fetchUsage, judgeUsageFailure } from '../upstream/usage.ts'
import { type JobDeps, type Poll, toAccountCallDeps } from './context.ts'

/** How often to check which accounts are due. */
export const USAGE_BEAT_MS = 5000
const USAGE_INTERVAL_MS = 60_000
/** After a rejection that is not final. */
const HOLD_MS = 300_000
const LANES = 4

/** One beat: all accounts never polled or whose block ended, then a share of the others. */
export const pollUsage = async (deps: JobDeps, signal: AbortSignal): Promise<void> => {
  const now = deps.clock.now()
  const elapsed = deps.clock.monotonic()
  const inUse = deps.pool.all().filter(({ state }) => isInUse(state))
  dropOthers(deps.polls, new Set(inUse.map(({ id }) => id)))
  const urgent: string[] = []
  const due: { id: string; at: number }[] = []
  for (const { id, state } of inUse) {
    const poll = getPoll(deps, id)
    const isOver = poll.blockEndsAt !== null && poll.blockEndsAt <= now
    poll.blockEndsAt = state.until ?? state.nextCheckAt
    if (poll.holdUntil > elapsed) continue
    if (poll.at === null || isOver) urgent.push(id)
    else if (elapsed - poll.at >= USAGE_INTERVAL_MS) due.push({ id, at: poll.at })
  }
  due.sort((a, b) => a.at - b.at)
  const share = Math.ceil((inUse.length * USAGE_BEAT_MS) / USAGE_INTERVAL_MS)
  const chosen = [...urgent, ...due.slice(0, share).map(({ id }) => id)]
  await inLanes(chosen, LANES, (id) => pollAccount(deps, id, signal))
}

/** Polls now. Rejects only when `signal` aborts: failures are charged or logged here. */
export const pollAccount = async (deps: JobDeps, id: string, signal?: AbortSignal): Promise<void> => {
  signal?.throwIfAborted()
  const poll = getPoll(deps, id)
  poll.at = deps.clock.monotonic()
  poll.blockEndsAt = null
  try {
    deps.pool.observe(id, await fetchUsage(toAccountCallDeps(deps), id, signal))
    poll.isFailing = false
  } catch (err) {
    signal?.throwIfAborted()
    charge(deps, { id, poll, err })
  }
}

const charge = ({ pool, clock, log }: JobDeps, { id, poll, err }: { id: string; poll: Poll; err: unknown }): void => {
  const verdict = judgeUsageFailure(err)
  if (verdict.kind === 'auth_failed') pool.apply(id, { ...verdict, at: clock.now() })
  if (verdict.kind === 'hold') poll.holdUntil = clock.monotonic() + HOLD_MS
  if (!poll.isFailing) log.warn('the usage of an account could not be read', { account: id, ...getWhy(err) })
  poll.isFailing = true
}

const getPoll = ({ polls }: JobDeps, id: string): Poll => polls.getOrInsertComputed(id, newPoll)

const newPoll = (): Poll => ({ at: null, holdUntil: 0, blockEndsAt: null, isFailing: false })

/** An account that returns is polled immediately. */
const dropOthers = (polls: Map<string, Poll>, ids: ReadonlySet<string>): void => {
  for (const id of polls.keys()) if (!ids.has(id)) polls.delete(id)
}
