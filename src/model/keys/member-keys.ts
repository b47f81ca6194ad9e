/** What users who manage only their own keys may create and change: `memberKeyDefaults` of the settings. */
import type { Tx } from '../../../db/commit.ts'
import { AppError } from '../../errors.ts'
import { DAY_MS } from '../../lib/durations.ts'
import { iso } from '../../lib/iso.ts'
import type { Settings } from '../../settings/schema.ts'
import { listKeys, type StoredKey } from './api-keys.ts'
import type { KeyPatch, LimitInput, NewKey } from './key-input.ts'
import { limitIdentity } from './key-limits.ts'

type Defaults = Settings['memberKeyDefaults']

interface Rules {
  defaults: Defaults
  /** ms since epoch */
  now: number
}

/** The other fields are about the pool, other users, or what an operator enforces. */
const FIELDS: readonly (keyof KeyPatch)[] = [
  'name',
  'allowedModels',
  'applyToCodexModel',
  'enforcedModel',
  'limits',
  'expiresAt',
  'isActive',
  'holderMayRegenerate',
  'expectedVersion',
]

/** What a key can do at most. */
interface Ceiling {
  /** Models clients may name, also for images and audio, where no model is enforced. Null: all models. */
  models: readonly string[] | null
  /** Models of text requests. Null: all models. */
  textModels: readonly string[] | null
  limits: readonly LimitInput[]
  /** ms since epoch; null: never. */
  expiresAt: number | null
}

/**
 * `input` with the defaults filled in. Call in the commit that creates the key, because keys are counted. Throws
 * `key_limit_reached`, `validation_error` for what exceeds the defaults, and `permission_required` for other fields.
 */
export const newMemberKey = async (
  tx: Tx,
  input: NewKey,
  { defaults, now, ownerUserId }: Rules & { ownerUserId: string },
): Promise<NewKey> => {
  requireFields({
    ...input,
    ownerUserId: input.ownerUserId === ownerUserId ? undefined : input.ownerUserId,
    assignedSourceIds: input.assignedSourceIds ?? undefined, // null is the default
  })
  if ((await listKeys(tx, { ownerUserId })).length >= defaults.maxKeys) throw new AppError('key_limit_reached')
  const ceiling = getCeiling(defaults, now)
  const filled = {
    ...input,
    allowedModels: input.allowedModels?.length ? input.allowedModels : defaults.models,
    limits: withMissing(input.limits ?? [], ceiling.limits),
    expiresAt: input.expiresAt === undefined ? ceiling.expiresAt : input.expiresAt,
  }
  requireWithin(getPolicy(filled), [ceiling])
  return filled
}

/**
 * A changed key stays within the defaults or within what it could do before, not within a mix of both; without keys of
 * their own to create, users can only narrow it. A disabled key could do nothing. Throws `validation_error` and
 * `permission_required`.
 */
export const requireMemberPatch = (before: StoredKey, patch: KeyPatch, { defaults, now }: Rules): void => {
  requireFields({
    ...patch,
    ownerUserId: patch.ownerUserId === before.ownerUserId ? undefined : patch.ownerUserId,
    assignedSourceIds: isSame(patch.assignedSourceIds, before.assignedSourceIds) ? undefined : patch.assignedSourceIds,
  })
  const mayCreate = defaults.maxKeys > 0
  const isTurnedOn = patch.isActive === true && !before.isActive
  if (isTurnedOn && !mayCreate) throw forbidden('isActive')
  const after = {
    ...before,
    ...patch,
    allowedModels: patch.allowedModels === undefined ? before.allowedModels : patch.allowedModels,
  }
  const ceilings = [...(isTurnedOn ? [] : [getPolicy(before)]), ...(mayCreate ? [getCeiling(defaults, now)] : [])]
  requireWithin(getPolicy(after), ceilings)
}

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

const requireFields = (input: Partial<KeyPatch>): void => {
  const [other] = Object.entries(input).filter(
    ([name, value]) => value !== undefined && !(FIELDS as readonly string[]).includes(name),
  )
  if (other) throw forbidden(other[0])
}

const forbidden = (field: string): AppError =>
  new AppError('permission_required', {
    param: 'api_keys:write',
    message: `You can set the name, models, limits, expiry and state of your own keys. To change \`${field}\`, ask someone who manages all keys.`,
  })

const getCeiling = ({ models, limits, expiresDays }: Defaults, now: number): Ceiling => ({
  models,
  textModels: models,
  limits: limits.map((limit) => ({ ...limit, modelFilter: limit.modelFilter ?? '' })),
  expiresAt: expiresDays === null ? null : now + expiresDays * DAY_MS,
})

type Policy = Partial<Pick<NewKey, 'allowedModels' | 'enforcedModel' | 'limits' | 'expiresAt'>>

const getPolicy = ({ allowedModels, enforcedModel, limits = [], expiresAt = null }: Policy): Ceiling => {
  const models = allowedModels?.length ? allowedModels : null
  return { models, textModels: enforcedModel ? [enforcedModel] : models, limits, expiresAt }
}

const withMissing = (limits: readonly LimitInput[], required: readonly LimitInput[]): LimitInput[] => {
  const present = new Set(limits.map(limitIdentity))
  return [...limits, ...required.filter((limit) => !present.has(limitIdentity(limit)))]
}

/** All parts must fit the same ceiling. The messages are about the one that most parts fit. */
const requireWithin = (policy: Ceiling, ceilings: readonly Ceiling[]): void => {
  const fits = ceilings.map((ceiling) =>
    Object.entries(PROBLEMS).flatMap(([name, getProblem]): [field: string, problems: string[]][] => {
      const problem = getProblem(policy, ceiling)
      return problem === null ? [] : [[name, [problem]]]
    }),
  )
  const best = fits.reduce((closest, other) =>
    other.length < closest.length || getNames(other) === getNames(closest) ? other : closest,
  )
  const [first] = best
  if (first) throw new AppError('validation_error', { param: first[0], details: { fields: Object.fromEntries(best) } })
}

const getNames = (fields: readonly (readonly [name: string, problems: string[]])[]): string =>
  fields.map(([name]) => name).join()

/** Null: `policy` is within the ceiling. */
const PROBLEMS: Record<string, (policy: Ceiling, ceiling: Ceiling) => string | null> = {
  allowedModels: (own, { models, textModels }) => {
    if (isAmong(own.models, models) && isAmong(own.textModels, textModels)) return null
    return `choose from these models: ${(models ?? textModels ?? []).join(', ')}`
  },
  limits: ({ limits }, { limits: required }) => {
    const missing = required.find((limit) => !limits.some((own) => isWithin(own, limit)))
    return missing === undefined ? null : `keep a limit of at most ${limitText(missing)}`
  },
  expiresAt: ({ expiresAt }, { expiresAt: latest }) =>
    latest === null || (expiresAt !== null && expiresAt <= latest) ? null : `choose a time up to ${iso(latest)}`,
}

const isAmong = (models: readonly string[] | null, allowed: readonly string[] | null): boolean =>
  allowed === null || (models?.every((model) => allowed.includes(model)) ?? false)

const isWithin = (own: LimitInput, limit: LimitInput): boolean =>
  limitIdentity(own) === limitIdentity(limit) && own.maxValue <= limit.maxValue

const limitText = ({ limitType, limitWindow, maxValue, modelFilter }: LimitInput): string =>
  `${limitType === 'cost_usd' ? `$${maxValue / 1e6}` : `${maxValue} ${limitType}`} ${limitWindow}${modelFilter ? ` for ${modelFilter}` : ''}`
