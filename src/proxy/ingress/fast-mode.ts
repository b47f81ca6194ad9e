/** Takes fast service tiers out of requests, or rejects these requests, where fast mode is prohibited. */
import { AppError } from '../../errors.ts'
import type { JsonObject } from '../../lib/json.ts'
import { isFastTier } from '../../model/catalog/service-tier.ts'
import type { KeyPolicy } from '../../model/keys/key-ring.ts'
import type { Settings } from '../../settings/schema.ts'
import type { TurnBody } from '../turn/turn.ts'
import { cutMembers } from './splice.ts'

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
