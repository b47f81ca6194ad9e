/** `/api/conversations`: the request log by conversation. */
import type { Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { query } from '../http/query.ts'
import { ConversationQuery, MOST_DAYS, sinceOf } from '../model/conversations/conversation-query.ts'
import type { ConversationDetail, ConversationPage } from '../model/conversations/conversations.ts'
import type { Blinders } from '../model/log/request-view.ts'
import { holds } from '../model/users/permissions.ts'
import { readerOf } from './reader-for-caller.ts'
import { blindersOf } from './requests.ts'

export const conversationPath = (conversationId: string): string =>
  `/logs/conversations/${encodeURIComponent(conversationId)}`

/** Throws `validation_error`, also for a `since` of more than 30 days ago. */
export const listConversations = createHandlers(requires('conversations:read'), query(ConversationQuery), async (c) =>
  c.json(await conversationsOf(c, c.req.valid('query'))),
)

export const conversationsOf = (c: Ctx, asked: ConversationQuery): Promise<ConversationPage> => {
  const since = sinceOf(asked, c.env.clock.now())
  if (since === null) throw tooLongAgo()
  const { search, limit, offset, cursor } = asked
  return readerOf(c).conversations({ search, limit, offset, cursor, since }, blinders(c))
}

const tooLongAgo = (): AppError =>
  new AppError('validation_error', {
    param: 'since',
    details: { fields: { since: [`can be at most ${MOST_DAYS} days ago`] } },
  })

/** The permission has no own scope, so neither have the keys that are named. */
const blinders = (c: Ctx): Blinders => ({
  ...blindersOf(c.var.principal),
  hidesKeys: !holds(c.var.principal.grants, 'api_keys:read'),
})

/** Throws `not_found`. */
export const showConversation = createHandlers(requires('conversations:read'), async (c) =>
  c.json(await conversationOf(c)),
)

export const conversationOf = async (c: Ctx): Promise<ConversationDetail> => {
  const found = await readerOf(c).conversation(c.req.param('hash') ?? '', blinders(c))
  if (found) return found
  throw new AppError('not_found', {
    message: 'Conversation not found. Its requests may have been deleted from the log, or the link is wrong.',
  })
}
