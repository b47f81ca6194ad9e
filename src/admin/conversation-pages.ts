/** `/logs/conversations` and the page of one conversation, with a line for each of its requests. */
import { z } from 'zod'
import { ConversationPageView, type ConversationView } from '../../views/conversations/detail.tsx'
import { type Conversations, ConversationsPage } from '../../views/conversations/list.tsx'
import type { Ctx } from '../boot/bindings.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { linkFrom } from '../http/link-from.ts'
import { query } from '../http/query.ts'
import { reply } from '../http/reply.tsx'
import { iso, isoOrNull } from '../lib/iso.ts'
import { ConversationQuery } from '../model/conversations/conversation-query.ts'
import { filled } from '../model/form-query.ts'
import { Cursor, LogQuery } from '../model/log/request-log-query.ts'
import { stickyKey } from '../model/sticky/session-key.ts'
import { holds } from '../model/users/permissions.ts'
import { conversationPath, getConversation, getConversations } from './conversations.ts'
import { toReader } from './reader-for-caller.ts'
import { getVisibility } from './requests.ts'
import { stickyLink } from './sticky-sessions.ts'

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
