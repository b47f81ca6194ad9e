/** Chooses the model that serves a request for a Claude model. */
import { CLAUDE_SIZES, type ClaudeModels, type ClaudeSize } from '../../../db/schema/keys.ts'
import type { KeyPolicy } from '../keys/key-ring.ts'
import type { Catalog, ModelPolicy } from './catalog.ts'

/** The prefix for models of the catalog, because Claude Code shows only names that contain "claude". */
export const CLAUDE_PREFIX = 'claude-'

export interface ServingModel {
  slug: string
  /** Null means as requested. */
  effort: string | null
}

interface Rules {
  policy: (ModelPolicy & Partial<Pick<KeyPolicy, 'claudeModels'>>) | null
  /** The setting. */
  claudeModels: ClaudeModels
  /** False: a model of the catalog cannot answer this request and does not count. Default: all can. */
  isFit?: (slug: string) => boolean
}

/** Returns null if there is no such model. While no catalog is known, names are passed on unchanged. */
export const claudeModel = (catalog: Catalog, asked: string, rules: Rules): ServingModel | null => {
  const name = asked.replace(/\[1m\]$/i, '')
  const { isFit = () => true } = rules
  const slug = [name, name.replace(/^claude-/i, '')].find((one) => catalog.find(one) !== null && isFit(one))
  if (slug !== undefined) return { slug, effort: null }
  const size = getSize(name)
  const sized = size && bySize(catalog, size, rules)
  if (sized) return sized
  return catalog.isEmpty ? { slug: name, effort: null } : null
}

/** The models by list price: the most expensive one counts as the strongest, the cheapest as the fastest. */
export const defaultClaudeModels = (
  catalog: Catalog,
  policy: ModelPolicy | null,
): Record<ClaudeSize, string | null> => {
  const slugs = catalog.byPrice(policy)
  return {
    opus: slugs[0] ?? null,
    sonnet: slugs[Math.floor(slugs.length / 2)] ?? null,
    haiku: slugs.at(-1) ?? null,
  }
}

/** Claude models before Claude 3, which had no sizes, and the bare name. */
const WITHOUT_SIZE = /(^|[^a-z])claude(-instant|-?v?\d|$)/

/** Fable is above Opus and is served by the same model. Null: no Claude model, such as a mistyped `claude-<model>`. */
const getSize = (name: string): ClaudeSize | null => {
  const lower = name.toLowerCase()
  if (!lower.includes('claude')) return null
  if (lower.includes('fable')) return 'opus'
  return CLAUDE_SIZES.find((size) => lower.includes(size)) ?? (WITHOUT_SIZE.test(lower) ? 'sonnet' : null)
}

/** A chosen model that no longer exists, that the key may not use, or that cannot answer, does not count. */
const bySize = (catalog: Catalog, size: ClaudeSize, rules: Rules): ServingModel | null => {
  const { policy, claudeModels, isFit = () => true } = rules
  const chosen = [policy?.claudeModels?.[size], claudeModels[size]].find(
    (one) => one && catalog.has(one.model, policy) && isFit(one.model),
  )
  if (chosen) return { slug: chosen.model, effort: chosen.effort }
  const slug = defaultClaudeModels(catalog, policy)[size]
  return slug === null ? null : { slug, effort: null }
}
