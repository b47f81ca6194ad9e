/** Ids of live calls: where they come from, which are valid, and the queries they travel in. */
import { AppError } from '../../errors.ts'

/** Assumed: ChatGPT names calls like this; a UUID is in lower case. */
const CALL_ID = /^(rtc_[A-Za-z0-9._~-]{1,252}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$/
const LOCATION = /^(?:https?:\/\/[^/?#]+)?\/v1\/realtime\/calls\/([^/?#]+)(?:\?.*)?$/
/** The only path of a created call. A dot segment is no id. */
export const callIdIn = (location: string | undefined): string | null => {
  const id = LOCATION.exec(location ?? '')?.[1]
  return id !== undefined && CALL_ID.test(id) ? id : null
}

/** Throws `invalid_realtime_call_id`. */
export const requireCallId = (id: string | undefined): string => {
  if (id !== undefined && CALL_ID.test(id)) return id
  throw new AppError('invalid_realtime_call_id', { param: CALL_ID_MEMBER })
}

const CALL_ID_MEMBER = 'call_id'
/** They may hold the client's API key, which must not leave. */
const CREDENTIALS = new Set(['key', 'token', 'authorization', 'api_key', 'access_token'])

/** The query without `call_id` and credentials, as it was written and in its order. */
export const relayedQuery = (search: string): string =>
  getMembers(search)
    .filter(({ name }) => name !== CALL_ID_MEMBER && !CREDENTIALS.has(name.toLowerCase()))
    .map(({ text }) => text)
    .join('&')

/** Every `call_id` of the query, decoded. */
export const getCallIds = (search: string): string[] => new URLSearchParams(search).getAll(CALL_ID_MEMBER)

const getMembers = (search: string): { name: string; text: string }[] =>
  search
    .replace(/^\?/, '')
    .split('&')
    .filter((text) => text !== '')
    .map((text) => ({ text, name: [...new URLSearchParams(text).keys()][0] ?? '' }))
