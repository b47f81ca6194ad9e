/** The allowed values of a setting, as the end of "… must be". */
import { z } from 'zod'
import { type SettingName, Settings } from './schema.ts'

interface Bounds {
  type?: string
  enum?: readonly string[]
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  maxLength?: number
  anyOf?: readonly Bounds[]
  properties?: Record<string, unknown>
}

/** "a whole number from 1 to 20", "true or false", "one of …", "text of at most 255 characters, or none". */
export const getExpected = (name: SettingName): string =>
  // as: JSON Schema of a single value, of which these members are read
  inWords(z.toJSONSchema(Settings.shape[name], { unrepresentable: 'any', io: 'input' }) as Bounds)

const inWords = (bounds: Bounds): string => {
  if (bounds.anyOf) return bounds.anyOf.map(inWords).join(', or ')
  if (bounds.enum) return `one of ${bounds.enum.join(', ')}`
  switch (bounds.type) {
    case 'null':
      return 'none'
    case 'boolean':
      return 'true or false'
    case 'integer':
      return `a whole number${getRange(bounds)}`
    case 'number':
      return `a number${getRange(bounds)}`
    case 'object':
      return `JSON with ${Object.keys(bounds.properties ?? {}).join(', ')}`
    default:
      return bounds.maxLength === undefined ? 'text' : `text of at most ${bounds.maxLength} characters`
  }
}

const getRange = ({ minimum, maximum, exclusiveMinimum }: Bounds): string =>
  exclusiveMinimum === undefined ? ` from ${minimum} to ${maximum}` : ` above ${exclusiveMinimum}, up to ${maximum}`
