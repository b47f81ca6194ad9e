/** Makes the items of earlier answers fit: the upstream does not take back all that they hold, be they its own or another service's. */
import type { JsonObject } from '../../lib/json.ts'
import { sha256 } from '../affinity.ts'

/** Characters, of an item's id and of a call's alike. */
const MAX_ID_LENGTH = 64

/**
 * Items the upstream takes are the client's own objects. What is left out says nothing that the item does not say without
 * it; a call and its output find each other by their long id, which becomes the same short one in both and in every turn.
 */
export const takenBack = (items: JsonObject[]): JsonObject[] => items.map(fitting)

const fitting = (item: JsonObject): JsonObject => {
  const members = Object.entries(item)
  const kept = members.filter(([name, value]) => !isRefused(item, name, value))
  const fit = kept.length < members.length ? Object.fromEntries(kept) : item
  return isLong(fit.call_id) ? { ...fit, call_id: `call_${sha256(fit.call_id)}` } : fit
}

const isRefused = ({ type, encrypted_content }: JsonObject, name: string, value: unknown): boolean => {
  if (name === 'id') return isLong(value)
  if (type !== 'reasoning') return false
  if (name === 'status') return true
  return name === 'content' && Array.isArray(value) && value.length > 0 && Boolean(encrypted_content)
}

const isLong = (id: unknown): id is string => typeof id === 'string' && id.length > MAX_ID_LENGTH
