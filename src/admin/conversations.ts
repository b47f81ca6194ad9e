/** `/api/conversations`: the request log by conversation. */
import type { Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { query } from '../http/query.ts'
import { ConversationQuery, getSince, MAX_DAYS } from '../model/conversations/conversation-query.ts'
import type { ConversationDetail, ConversationPage } from '../model/conversations/conversations.ts'
import type { HiddenFields } from '../model/log/request-view.ts'
import { holds } from '../model/users/permissions.ts'
import { toReader } from './reader-for-caller.ts'
import { getHiddenFields } from './requests.ts'

export const conversationPath = (conversationId: string): string =>
  `/logs/conversations/${encodeURIComponent(conversationId)}`

/** Throws `validation_error`, also for a `since` of more than 30 days ago. */
export const listConversations = createHandlers(requires('conversations:read'), query(ConversationQuery), async (c) =>
  c.json(await getConversations(c, c.req.valid('query'))),
)

export const getConversations = (c: Ctx, asked: ConversationQuery): Promise<ConversationPage> => {
  const since = getSince(asked, c.env.clock.now())
  if (since === null) throw tooLongAgo()
  const { search, limit, offset, cursor } = asked
  return toReader(c).conversations({ search, limit, offset, cursor, since }, hiddenFields(c))
}

const tooLongAgo = (): AppError =>
  new AppError('validation_error', {
    param: 'since',
    details: { fields: { since: [`can be at most ${MAX_DAYS} days ago`] } },
  })

/** The permission has no own scope, so neither have the keys that are named. */
const hiddenFields = (c: Ctx): HiddenFields => ({
  ...getHiddenFields(c.var.principal),
  hidesKeys: !holds(c.var.principal.grants, 'api_keys:read'),
})

/** Throws `not_found`. */
export const showConversation = createHandlers(requires('conversations:read'), async (c) =>
  c.json(await getConversation(c)),
)

export const getConversation = async (c: Ctx): Promise<ConversationDetail> => {
  const found = await toReader(c).conversation(c.req.param('hash') ?? '', hiddenFields(c))
  if (found) return found
  throw new AppError('not_found', {
    message: 'Conversation not found. Its requests may have been deleted from the log, or the link is wrong.',
  })
}
