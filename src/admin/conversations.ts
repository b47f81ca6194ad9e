/** `/logs/conversations` and `/api/conversations`: the request log by conversation. */

import { z } from 'zod'
import { ConversationPageView, type ConversationView } from '../../views/conversations/detail.tsx'
import { type Conversations, ConversationsPage } from '../../views/conversations/list.tsx'
import type { Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { linkFrom } from '../http/link-from.ts'
import { query } from '../http/query.ts'
import { reply } from '../http/reply.tsx'
import { iso, isoOrNull } from '../lib/iso.ts'
import { ConversationQuery, getSince, MAX_DAYS } from '../model/conversations/conversation-query.ts'
import type { ConversationDetail, ConversationPage } from '../model/conversations/conversations.ts'
import { filled } from '../model/form-query.ts'
import { Cursor, LogQuery } from '../model/log/request-log-query.ts'
import type { HiddenFields } from '../model/log/request-view.ts'
import { stickyKey } from '../model/sticky/session-key.ts'
import { holds } from '../model/users/permissions.ts'
import { toReader } from './reader-for-caller.ts'
import { stickyLink } from './sticky-sessions.ts'
import { getHiddenFields, getVisibility } from './visibility.ts'

export const conversationPath = (conversationId: string): string =>
  `/logs/conversations/${encodeURIComponent(conversationId)}`

/** Throws `validation_error`, also for a `since` of more than 30 days ago. */
export const listConversations = createHandlers(requires('conversations:read'), query(ConversationQuery), async (c) =>
  c.json(await getConversations(c, c.req.valid('query'))),
)

const getConversations = (c: Ctx, asked: ConversationQuery): Promise<ConversationPage> => {
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

const getConversation = async (c: Ctx): Promise<ConversationDetail> => {
  const found = await toReader(c).conversation(c.req.param('hash') ?? '', hiddenFields(c))
  if (found) return found
  throw new AppError('not_found', {
    message: 'Conversation not found. Its requests may have been deleted from the log, or the link is wrong.',
  })
}

const LIST = '/logs/conversations'

export const showConversations = createHandlers(requires('conversations:read'), query(ConversationQuery), async (c) => {
  const asked = c.req.valid('query')
  const page = await getConversations(c, asked)
  const value: Conversations = {
    ...page,
    now: iso(c.env.clock.now()),
    search: asked.search,
    timeframe: asked.timeframe ?? null,
    since: isoOrNull(asked.since),
    links: {
      clear: ['search', 'timeframe', 'since'].some((name) => c.req.query(name))
        ? linkFrom(c, LIST, { drop: [...PLACES, 'search', 'timeframe', 'since'] })
        : null,
      ...turningLinks(c, LIST, page.nextCursor),
    },
  }
  return reply(c, value, ConversationsPage)
})

const PLACES = ['cursor', 'offset']

const turningLinks = (c: Ctx, path: string, nextCursor: string | null) => ({
  newest: c.req.query('cursor') ? linkFrom(c, path, { drop: PLACES }) : null,
  older: nextCursor && linkFrom(c, path, { drop: PLACES, add: { cursor: nextCursor } }),
})

const TurnsQuery = z.object({ cursor: filled(Cursor).describe('`nextCursor` of the previous page.') })

/** Throws `not_found`. */
export const showConversationPage = createHandlers(requires('conversations:read'), query(TurnsQuery), async (c) => {
  const { cursor } = c.req.valid('query')
  const detail = await getConversation(c)
  const { conversationId } = detail
  const turns = await toReader(c).requestLogs(
    { ...LogQuery.parse({ conversation_id: conversationId }), cursor },
    getVisibility(c),
  )
  const value: ConversationView = {
    ...detail,
    now: iso(c.env.clock.now()),
    requests: turns.requests,
    links: {
      ...turningLinks(c, conversationPath(conversationId), turns.nextCursor),
      log: `/logs?${new URLSearchParams({ conversation_id: conversationId })}`,
      session: holds(c.var.principal.grants, 'ops:write') ? stickyLink({ keyQuery: stickyKey(conversationId) }) : null,
    },
  }
  return reply(c, value, ConversationPageView)
})
