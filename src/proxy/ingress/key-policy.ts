/** Values an API key enforces on a request: the upstream sees only those. */
import { getObject, getText, type JsonObject } from '../../lib/json.ts'
import type { KeyPolicy } from '../../model/keys/key-ring.ts'

/**
 * For native bodies, which are not rewritten: only unset members, and the model. Admission rejects a different effort
 * or tier, so that clients are not charged for an effort they did not choose.
 */
export const enforcedMembers = (json: JsonObject, key: KeyPolicy | null): JsonObject => {
  if (!key) return {}
  const { enforcedModel, efforts, tier } = key
  const reasoning = getObject(json.reasoning)
  return {
    ...(enforcedModel !== null && json.model !== enforcedModel && { model: enforcedModel }),
    ...(efforts.enforced !== null &&
      !getText(reasoning.effort) && { reasoning: { ...reasoning, effort: toUpstreamEffort(efforts.enforced) } }),
    ...(tier !== null && isNamed(tier) && !getText(json.service_tier) && { service_tier: tier }),
  }
}

/** For rewritten bodies: every enforced value, whatever the request says. */
export const withKeyPolicy = (body: JsonObject, key: KeyPolicy | null): JsonObject => {
  if (!key) return body
  const { enforcedModel, efforts, tier } = key
  return {
    ...body,
    ...(enforcedModel !== null && { model: enforcedModel }),
    ...(efforts.enforced !== null && {
      reasoning: { ...getObject(body.reasoning), effort: toUpstreamEffort(efforts.enforced) },
    }),
    ...(tier !== null && { service_tier: toUpstreamTier(tier) }),
  }
}

/** `ultra` is a mode of the native client; the upstream's highest effort is `max`. */
export const toUpstreamEffort = (effort: string): string => (effort === 'ultra' ? 'max' : effort)

export const isSameEffort = (one: string, other: string): boolean => toUpstreamEffort(one) === toUpstreamEffort(other)

/** One name per tier: some clients call `priority` `fast`; `auto` and `default` both mean no tier was requested. */
export const tierName = (name: string): string => (name === 'fast' ? 'priority' : name === 'auto' ? 'default' : name)

/** The upstream rejects other tier names, and also `default`, which is requested by omission. */
export const toUpstreamTier = (tier: string): string | undefined => (isNamed(tier) ? tierName(tier) : undefined)

const isNamed = (tier: string): boolean => tierName(tier) !== 'default'
