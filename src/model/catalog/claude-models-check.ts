/** Whether the models chosen for Claude names exist. */
import type { Db } from '../../../db/commit.ts'
import { CLAUDE_SIZES, type ClaudeModels } from '../../../db/schema/keys.ts'
import { AppError } from '../../errors.ts'
import { listSources } from '../sources/source-rows.ts'
import { Catalog } from './catalog.ts'

const MAX_NAMED = 12

/**
 * Throws `validation_error` for a model that neither an account nor a model source has, and for an effort that the model
 * does not support. While no models are known, any name may be valid.
 */
export const requireClaudeModels = async (db: Db, claudeModels: ClaudeModels | null | undefined): Promise<void> => {
  const chosen = CLAUDE_SIZES.flatMap((size) => claudeModels?.[size] ?? [])
  if (chosen.length === 0) return
  const catalog = await Catalog.open(db)
  const bySource = (await listSources(db))
    .filter(({ isEnabled, supportsResponses, supportsChat }) => isEnabled && (supportsResponses || supportsChat))
    .flatMap(({ models }) => models.filter(({ isEnabled }) => isEnabled).map(({ model }) => model))
  const known = new Set([...catalog.byPrice(), ...bySource])
  if (known.size === 0) return
  const problems = chosen.flatMap(({ model, effort }) => {
    if (!known.has(model) && catalog.find(model) === null)
      return `There is no model “${model}”. Choose from ${named(known)}.`
    const efforts = catalog.getEfforts(model)
    const isFit = effort === null || efforts.length === 0 || efforts.includes(effort)
    return isFit ? [] : `The model “${model}” has no effort “${effort}”. Choose from ${efforts.join(', ')}.`
  })
  if (problems.length > 0)
    throw new AppError('validation_error', { param: 'claudeModels', details: { fields: { claudeModels: problems } } })
}

const named = (models: ReadonlySet<string>): string => {
  const names = [...models]
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : ''
  return `${names.slice(0, MAX_NAMED).join(', ')}${more}`
}
