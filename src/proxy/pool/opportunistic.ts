/**
 * Which accounts requests of opportunistic keys may use, so that they spend what foreground requests leave over. Routing,
 * the routing simulator and `GET /backend-api/codex/opportunistic/admission` all use `heldForForeground`.
 */

import { isAboveFloors } from '../../model/accounts/preserve-floors.ts'
import { getPercentLeft } from '../../model/accounts/usage-windows.ts'
import { isInScope, type KeyScope } from '../../model/keys/key-scope.ts'
import type { Candidate } from './policies.ts'

/** What a normal account must have left in both windows when no other account could serve foreground requests. */
const RESERVE_PERCENT = 5

interface Verdict {
  readonly id: string
  readonly skipped: string | null
}

/**
 * The ids of accounts held for foreground requests, among those in `scope` (null: all). `verdicts`: which could serve a
 * foreground request now, and have no `skipped`. Pure.
 */
export const heldForForeground = (
  candidates: readonly Candidate[],
  { verdicts, scope, now }: { verdicts: Iterable<Verdict>; scope: KeyScope; now: number },
): ReadonlySet<string> => {
  const able = new Set<string>()
  for (const { id, skipped } of verdicts) if (skipped === null) able.add(id)
  const own = candidates.filter((candidate) => isInScope(scope, candidate))
  const preserved = own.filter(({ routingPolicy }) => routingPolicy === 'preserve').length
  const held = own.filter((candidate) =>
    candidate.routingPolicy === 'preserve'
      ? !isAboveFloors(candidate, { isOnly: preserved === 1, now })
      : !hasReserve(candidate, now) && !isReplaceable(candidate, able),
  )
  return new Set(held.map(({ id }) => id))
}

const isReplaceable = ({ id }: Candidate, able: ReadonlySet<string>): boolean => able.size > (able.has(id) ? 1 : 0)

/** Windows that the account does not have are no limit, but one must be known. */
const hasReserve = ({ usage }: Candidate, now: number): boolean => {
  const { fiveHour = null, weekly = null, monthly = null } = usage?.windows ?? {}
  const left = [fiveHour, weekly ?? monthly].flatMap((window) => getPercentLeft(window, now) ?? [])
  return left.length > 0 && left.every((percent) => percent > RESERVE_PERCENT)
}
