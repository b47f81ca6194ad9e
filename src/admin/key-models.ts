/** The models of the live catalog, as the pages about keys offer them. */
import type { Ctx } from '../bindings.ts'
import { objectOf, objectsOf, parseJson, textOf } from '../lib/json.ts'
import { decodeUtf8 } from '../lib/utf8.ts'
import type { ModelPolicy } from '../model/catalog.ts'

interface ModelChoice {
  id: string
  /** What clients ask for and logs say, so the same. */
  name: string
}

/** What a client with this policy is told by `GET /v1/models`, in the same order; null: without any limit. */
export const listedModels = (c: Ctx, policy: ModelPolicy | null): ModelChoice[] => {
  const { bytes } = c.env.catalog.public(policy)
  const { data } = objectOf(parseJson(decodeUtf8(bytes)))
  return objectsOf(data).map((entry) => ({ id: textOf(entry.id), name: textOf(entry.id) }))
}
