/** Which log rows count in figures: all but warm-ups, which Sluice sends to start usage windows. */
import { ne, type SQL } from 'drizzle-orm'
import { requests } from '../../../db/schema/requests.ts'

export const isCounted = ({ kind }: Pick<typeof requests.$inferInsert, 'kind'>): boolean => kind !== 'warmup'

/** The same as a condition on log rows. */
export const counted = (): SQL => ne(requests.kind, 'warmup')
