/** The query parameters of the list of conversations. */
import { z } from 'zod'
import { DAY_MS } from '../../lib/durations.ts'
import { filled } from '../form-query.ts'
import { Cursor, Moment } from '../log/request-log-query.ts'

const TIMEFRAMES = { '1d': DAY_MS, '7d': 7 * DAY_MS, '30d': 30 * DAY_MS } as const
export const TIMEFRAME_NAMES = Object.keys(TIMEFRAMES) as (keyof typeof TIMEFRAMES)[] // as: Object.keys loses the literal types

/** Lists reach back this far. */
export const MAX_DAYS = 30
/** For a client that computes 30 days from its own clock. */
const TOLERANCE_MS = 60_000

export const ConversationQuery = z
  .object({
    search: z
      .string()
      .trim()
      .max(200)
      .default('')
      .describe('The beginning of the ID, or part of the name of an account, key or model that took part.'),
    timeframe: filled(z.enum(TIMEFRAME_NAMES)).describe(
      'Only conversations with a request in the last day, 7 or 30 days.',
    ),
    since: filled(Moment).describe(
      `The same with a time: ISO 8601, at most ${MAX_DAYS} days ago. Not together with \`timeframe\`.`,
    ),
    limit: z.coerce.number().int().min(1).max(1000).default(50).describe('Rows per page.'),
    offset: z.coerce
      .number()
      .int()
      .min(0)
      .max(10_000)
      .default(0)
      .describe('Rows to skip. Rows repeat when new requests arrive; `cursor` avoids that.'),
    cursor: filled(Cursor).describe('`nextCursor` of the previous page.'),
  })
  .refine(({ since, timeframe }) => since === undefined || timeframe === undefined, {
    path: ['since'],
    message: 'cannot be sent together with timeframe',
  })
export type ConversationQuery = z.output<typeof ConversationQuery>

/** ms since epoch; null: too long ago. */
export const getSince = ({ since, timeframe = '30d' }: ConversationQuery, now: number): number | null => {
  if (since === undefined) return now - TIMEFRAMES[timeframe]
  return since < now - TIMEFRAMES['30d'] - TOLERANCE_MS ? null : since
}
