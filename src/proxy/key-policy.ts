/** What an API key puts into a request: where it enforces a value, the upstream sees that value and no other. */
import { type JsonObject, objectOf, textOf } from '../lib/json.ts'
import type { KeyPolicy } from '../model/key-ring.ts'

/**
 * For native bodies, which leave as they came: only what the request leaves open, and the model. An effort or tier the
 * request states otherwise is refused at admission, so that nobody pays for an effort they did not ask for unknowingly.
 */
export const enforcedMembers = (json: JsonObject, key: KeyPolicy | null): JsonObject => {
  if (!key) return {}
  const { enforcedModel, efforts, tier } = key
  const reasoning = objectOf(json.reasoning)
  return {
    ...(enforcedModel !== null && json.model !== enforcedModel && { model: enforcedModel }),
    ...(efforts.enforced !== null &&
      !textOf(reasoning.effort) && { reasoning: { ...reasoning, effort: sentEffort(efforts.enforced) } }),
    ...(tier !== null && isNamed(tier) && !textOf(json.service_tier) && { service_tier: tier }),
  }
}

/** For bodies that are written anew: every enforced value, whatever the request says. */
export const withKeyPolicy = (body: JsonObject, key: KeyPolicy | null): JsonObject => {
  if (!key) return body
  const { enforcedModel, efforts, tier } = key
  return {
    ...body,
    ...(enforcedModel !== null && { model: enforcedModel }),
    ...(efforts.enforced !== null && {
      reasoning: { ...objectOf(body.reasoning), effort: sentEffort(efforts.enforced) },
    }),
    ...(tier !== null && { service_tier: sentTier(tier) }),
  }
}

/** `ultra` is a way of working of the native client, which names another effort to the upstream; that knows none above `max`. */
export const sentEffort = (effort: string): string => (effort === 'ultra' ? 'max' : effort)

/** One name for each tier: `fast` is what some clients call `priority`, `auto` and `default` are what comes unasked. */
export const tierName = (name: string): string => (name === 'fast' ? 'priority' : name === 'auto' ? 'default' : name)

/** The upstream refuses every other name of a tier, and any of the ordinary one, which is asked for by naming none. */
export const sentTier = (tier: string): string | undefined => (isNamed(tier) ? tierName(tier) : undefined)

const isNamed = (tier: string): boolean => tierName(tier) !== 'default'
