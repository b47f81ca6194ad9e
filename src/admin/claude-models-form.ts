/** The fields of forms for the models of Claude names, and what these forms offer. */
import { z } from 'zod'
import type { ClaudeSize } from '../../db/schema/keys.ts'
import type { Ctx } from '../boot/bindings.ts'
import { claudeModel, defaultClaudeModels } from '../model/catalog/claude-models.ts'
import { EFFORTS } from '../model/catalog/efforts.ts'
import type { ClaudeOffers } from '../settings/fields.ts'
import { listedModels } from './choices.ts'

const Chosen = z.object({ model: z.string().default(''), effort: z.string().default('') })
const LABELS: readonly [ClaudeSize, string][] = [
  ['opus', 'Opus'],
  ['sonnet', 'Sonnet'],
  ['haiku', 'Haiku'],
]

/** An effort belongs to a model, so one without a model is rejected. */
export const ClaudeModelsForm = z
  .object({ opus: Chosen, sonnet: Chosen, haiku: Chosen })
  .superRefine((chosen, { addIssue }) => {
    for (const [size, label] of LABELS)
      if (chosen[size].model === '' && chosen[size].effort !== '')
        addIssue({ code: 'custom', message: `Choose a model for ${label}, or the automatic effort.` })
  })
  .transform(({ opus, sonnet, haiku }) => ({ opus: toChoice(opus), sonnet: toChoice(sonnet), haiku: toChoice(haiku) }))

const toChoice = ({ model, effort }: z.output<typeof Chosen>) =>
  model === '' ? null : { model, effort: effort === '' ? null : effort }

const SERVING = ['responses', 'chat'] as const

/** What the setting offers: without a choice, models are chosen by price. */
export const claudeOffers = (c: Ctx): ClaudeOffers => {
  const { catalog, pool, sources } = c.env
  const models = listedModels(c, null)
    .map(({ id }) => id)
    .filter((id) => pool.offers(id) || SERVING.some((capability) => sources.offering(id, capability).length > 0))
  const known = new Set(models.flatMap((model) => catalog.getEfforts(model)))
  const efforts = EFFORTS.filter((effort) => known.size === 0 || known.has(effort))
  return { models, efforts, defaults: defaultClaudeModels(catalog, null) }
}

/** What a key offers: without a choice, models are those of the setting. */
export const claudeOffersForKey = (c: Ctx): ClaudeOffers => {
  const { catalog, settings } = c.env
  const { claudeModels } = settings.current()
  const served = (size: ClaudeSize) =>
    claudeModel(catalog, `claude-${size}`, { policy: null, claudeModels })?.slug ?? null
  return {
    ...claudeOffers(c),
    defaults: { opus: served('opus'), sonnet: served('sonnet'), haiku: served('haiku') },
  }
}
