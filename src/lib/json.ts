/** Readers for JSON whose shape nobody has proven: what is not there is an empty value, and nothing throws. */

export type JsonObject = Record<string, unknown>

/** Lists are none. */
export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The value as an object; an empty one when it is anything else. */
export const objectOf = (value: unknown): JsonObject => (isObject(value) ? value : {})

/** The objects of a list; an empty list when it is anything else. */
export const objectsOf = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.filter(isObject) : [])

/** The value as text; empty when it is anything else. */
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** The parsed document; undefined when the text is none. */
export const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
