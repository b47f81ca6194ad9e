/** Which model a warm-up uses: the key's own, or the cheapest one the account offers. */
import type { Catalog } from '../catalog/catalog.ts'
import type { KeyPolicy } from '../keys/key-ring.ts'

/** While no catalog is known. Assumed: every plan has it. */
const FALLBACK_MODEL = 'gpt-5.5'

/** `effort` is the lowest the model has; null: its own default. */
export const pingModel = (
  catalog: Pick<Catalog, 'cheapest' | 'getEfforts'>,
  accountId: string,
  key: Pick<KeyPolicy, 'allowedModels' | 'applyToCodexModel' | 'enforcedModel' | 'efforts'> | null,
): { model: string; effort: string | null } => {
  const model = key?.enforcedModel ?? catalog.cheapest(accountId, key) ?? FALLBACK_MODEL
  const { enforced = null, allowed = null } = key?.efforts ?? {}
  const effort = enforced ?? catalog.getEfforts(model).find((name) => allowed?.has(name) ?? true) ?? null
  return { model, effort }
}
