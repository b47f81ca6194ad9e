/** Which ended requests count as errors, for hourly totals and the overview alike. */
import { and, eq, isNull, ne, or, type SQL } from 'drizzle-orm'
import { requests } from '../../../db/schema/requests.ts'

type Ended = Pick<typeof requests.$inferInsert, 'status' | 'errorCode'>

/** Not a visible error: the client resends the whole conversation. */
const ASKED_TO_RESEND = 'previous_response_not_found'

export const isFault = ({ status, errorCode }: Ended): boolean => status === 'error' && errorCode !== ASKED_TO_RESEND

/** The same as a condition on log rows. */
export const isFaultCondition = (): SQL | undefined =>
  and(eq(requests.status, 'error'), or(isNull(requests.errorCode), ne(requests.errorCode, ASKED_TO_RESEND)))
