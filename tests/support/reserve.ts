/** Reserves for a turn as the only process of a database does: what is left of each limit is leased first. */
import { type Estimate, type LiveLimit, type Reservation, reserve } from '../../src/model/keys/reservations.ts'

export const reserveAlone = (
  policy: { limits: readonly LiveLimit[] },
  estimate: Estimate,
  now: number,
): Reservation => {
  const held = reserve(policy, estimate, now)
  if (held) return held
  for (const limit of policy.limits) {
    limit.free = limit.maxValue - limit.settled - limit.reserved
    limit.shortUntil = Number.POSITIVE_INFINITY
  }
  const reservation = reserve(policy, estimate, now)
  if (!reservation) throw new Error('The whole limit is leased, and still more is wanted.')
  return reservation
}
