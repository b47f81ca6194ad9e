/** The share of a user or role, as sent to the API and by forms. */
import { z } from 'zod'

/** Forms send text; an empty field means no share. */
const Percent = z
  .preprocess(
    (value) => (typeof value === 'string' ? (value.trim() === '' ? null : Number(value)) : value),
    z.number().min(0).max(100).nullable(),
  )
  .default(null)

export const ShareInput = z
  .strictObject({
    fiveHourPercent: Percent.describe('Percent of the pool’s five-hour capacity. Null means not limited.'),
    weeklyPercent: Percent.describe('Percent of the pool’s weekly capacity. Null means not limited.'),
  })
  .nullable()
