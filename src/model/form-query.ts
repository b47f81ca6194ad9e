/** What a form leaves in a query string: what was not filled in is there as an empty text, and what was chosen twice is repeated. */
import { z } from 'zod'

/** Undefined where nothing was filled in. */
export const filled = <T extends z.ZodType>(item: T) =>
  z.preprocess((value) => (value === '' ? undefined : value), item.optional())

/** A parameter that is given once is a text, and one that is repeated a list. */
export const oneOrMany = <T extends z.ZodType>(item: T) =>
  z.preprocess((value) => [value ?? []].flat().filter((one) => one !== ''), z.array(item).max(200))
