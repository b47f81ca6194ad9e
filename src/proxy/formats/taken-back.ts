/** Makes the items of earlier answers fit: the upstream does not take back all that they hold, be they its own or another service's. */
import type { JsonObject } from '../../lib/json.ts'

/** Items the upstream takes are the client's own objects. What is left out says nothing that the item does not say without it. */
export const takenBack = (items: JsonObject[]): JsonObject[] => items.map(fitting)

const fitting = (item: JsonObject): JsonObject => {
  const members = Object.entries(item)
  const kept = members.filter(([name, value]) => !isRefused(item, name, value))
  return kept.length < members.length ? Object.fromEntries(kept) : item
}

const isRefused = ({ type, encrypted_content }: JsonObject, name: string, value: unknown): boolean => {
  if (type !== 'reasoning') return false
  if (name === 'status') return true
  return name === 'content' && Array.isArray(value) && value.length > 0 && Boolean(encrypted_content)
}
