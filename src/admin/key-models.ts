/** The catalog's models, for the key pages. */
import type { Ctx } from '../boot/bindings.ts'
import { getObject, getObjects, getText, parseJson } from '../lib/json.ts'
import { decodeUtf8 } from '../lib/utf8.ts'
import type { ModelPolicy } from '../model/catalog/catalog.ts'

interface ModelChoice {
  id: string
  /** The same as the id, as used by clients and logs. */
  name: string
}

/** The models a client with this policy gets from `GET /v1/models`, in the same order; null: all. */
export const listedModels = (c: Ctx, policy: ModelPolicy | null): ModelChoice[] => {
  const { bytes } = c.env.catalog.public(policy)
  const { data } = getObject(parseJson(decodeUtf8(bytes)))
  return getObjects(data).map((entry) => ({ id: getText(entry.id), name: getText(entry.id) }))
}
