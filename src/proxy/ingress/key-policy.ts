/** Values an API key enforces on a request, and fast service tiers it may not have: the upstream sees only the result. */

import { AppError } from '../../errors.ts'
import { getObject, getText, type JsonObject } from '../../lib/json.ts'
import { isFastTier } from '../../model/catalog/service-tier.ts'
import type { KeyPolicy } from '../../model/keys/key-ring.ts'
import type { Settings } from '../../settings/schema.ts'
import type { TurnBody } from '../turn/turn.ts'
import { cutMembers } from './splice.ts'

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

interface UnderFastModeRule<B> {
  body: B
  /** Enforces no fast tier where fast mode is prohibited. */
  key: KeyPolicy | null
  /** For `x-sluice-dropped-fields`. */
  dropped: readonly 'service_tier'[]
}

/** The key, which enforces no fast tier where fast mode is prohibited. */
export const withoutFastTier = (key: KeyPolicy, settings: FastModeSetting): KeyPolicy =>
  ruleFor(key, settings) !== 'off' && isFastTier(key.tier) ? { ...key, tier: null } : key

type FastModeSetting = Pick<Settings, 'prohibitFastMode'>

const ruleFor = (key: KeyPolicy | null, { prohibitFastMode }: FastModeSetting) =>
  key?.prohibitFastMode ?? prohibitFastMode

type Body<J extends JsonObject> = Omit<TurnBody, 'json'> & { json: J }

/**
 * The body and the key as the rule of the key, or else the setting, allows them. Call it before anything reads the
 * tier. Only the member itself is cut out of the bytes. Throws `fast_mode_prohibited`.
 */
export const underFastModeRule = <J extends JsonObject>(
  body: Body<J>,
  key: KeyPolicy | null,
  settings: FastModeSetting,
): UnderFastModeRule<Body<J>> => {
  const rule = ruleFor(key, settings)
  if (rule === 'off') return { body, key, dropped: [] }
  const ordinaryKey = key && withoutFastTier(key, settings)
  if (!isFastTier(body.json.service_tier)) return { body, key: ordinaryKey, dropped: [] }
  if (rule === 'refuse') throw new AppError('fast_mode_prohibited', { param: 'service_tier' })
  const json = { ...body.json, service_tier: undefined }
  delete json.service_tier
  return {
    body: { ...body, bytes: cutMembers(body.bytes, ['service_tier']), json },
    key: ordinaryKey,
    dropped: ['service_tier'],
  }
}
