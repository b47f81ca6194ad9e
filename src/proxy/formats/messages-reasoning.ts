/** The reasoning effort of a Messages request, which can be set in several ways. */
import { getObject, getObjects, getText, type JsonObject } from '../../lib/json.ts'
import { EFFORTS } from '../../model/catalog/efforts.ts'

const ORDER: readonly string[] = EFFORTS

export interface WantedReasoning {
  /** Whether the client shows or keeps thinking. */
  isShown: boolean
  /** `lowest` means the lowest effort of the model, or its default if its efforts are unknown. Null means its default. */
  effort: string | null
}

/**
 * A later system message may change the effort for the rest of the conversation. Without thinking, the lowest effort is
 * used: Claude Code sends its effort also with session titles and web searches, which do not need it (2.1.332).
 */
export const wantedReasoning = (body: JsonObject): WantedReasoning => {
  const said = getObjects(body.messages).flatMap(({ role, output_config }) =>
    role === 'system' ? getText(getObject(output_config).effort) || [] : [],
  )
  const effort = said.at(-1) ?? (getText(getObject(body.output_config).effort) || null)
  const { type, budget_tokens: budget } = getObject(body.thinking)
  if (type === 'adaptive') return { isShown: true, effort }
  if (type === 'enabled') return { isShown: true, effort: effort ?? budgetEffort(budget) }
  return { isShown: false, effort: LOWEST }
}

const LOWEST = 'lowest'

const budgetEffort = (budget: unknown): string | null => {
  if (typeof budget !== 'number') return null
  if (budget <= 1024) return 'low'
  if (budget <= 8192) return 'medium'
  return budget <= 24_576 ? 'high' : 'xhigh'
}

/**
 * The `reasoning` member. `efforts` are those of the model, lowest first, or empty if unknown: models of sources may not
 * reason at all and reject an effort. Summaries are requested even if the client does not display them, because they
 * keep a long stream alive.
 */
export const reasoningMember = ({ isShown, effort }: WantedReasoning, efforts: readonly string[]): JsonObject => {
  const chosen = effort === null ? null : fittingEffort(effort, efforts)
  const reasoning = { ...(chosen !== null && { effort: chosen }), ...(isShown && { summary: 'auto' }) }
  return Object.keys(reasoning).length > 0 ? { reasoning } : {}
}

/** The model's highest effort that is not above the wanted one. */
const fittingEffort = (wanted: string, efforts: readonly string[]): string | null => {
  if (wanted === LOWEST) return efforts[0] ?? null
  if (efforts.length === 0 || efforts.includes(wanted)) return wanted
  if (!ORDER.includes(wanted)) return null
  return efforts.findLast((effort) => ORDER.indexOf(effort) <= ORDER.indexOf(wanted)) ?? efforts[0] ?? null
}
