/** Names of service tiers. */

/** `fast` is what some clients call `priority`. Assumed: `ultrafast` is a faster mode of the same kind. */
const FAST_TIERS: ReadonlySet<string> = new Set(['priority', 'fast', 'ultrafast'])

/** Whether a request with this `service_tier` asks for fast mode. */
export const isFastTier = (tier: unknown): boolean =>
  typeof tier === 'string' && FAST_TIERS.has(tier.trim().toLowerCase())
