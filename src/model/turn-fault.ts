/** Which ended turns count as errors: one rule for what is summed up by the hour and for what the overview counts. */
import { and, eq, isNull, ne, or, type SQL } from 'drizzle-orm'
import { requests } from '../../db/schema/requests.ts'

type Ended = Pick<typeof requests.$inferInsert, 'status' | 'errorCode'>

/** No fault that anybody sees: the client sends the conversation in full and goes on. */
const ASKED_TO_RESEND = 'previous_response_not_found'

export const isFault = ({ status, errorCode }: Ended): boolean => status === 'error' && errorCode !== ASKED_TO_RESEND

/** The same of rows of the log. */
export const faulty = (): SQL | undefined =>
  and(eq(requests.status, 'error'), or(isNull(requests.errorCode), ne(requests.errorCode, ASKED_TO_RESEND)))
