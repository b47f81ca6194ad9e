/** Readers for unvalidated JSON: missing values become empty ones, and nothing throws. */

export type JsonObject = Record<string, unknown>

/** False for lists. */
export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The value if it is an object, otherwise an empty object. */
export const getObject = (value: unknown): JsonObject => (isObject(value) ? value : {})

/** The objects of a list; otherwise an empty list. */
export const getObjects = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.filter(isObject) : [])

/** The value if it is text, otherwise empty. */
export const getText = (value: unknown): string => (typeof value === 'string' ? value : '')

/** The parsed document; undefined for invalid JSON. */
export const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
