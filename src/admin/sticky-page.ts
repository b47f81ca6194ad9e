/** `/settings/routing/sessions`: which account each conversation stays on, with filters in the URL. */
import {
  type StickyPage,
  StickyPageView,
  type StickySessionsPage,
  type StickySort,
} from '../../views/settings/sessions.tsx'
import type { Ctx } from '../boot/bindings.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { linkFrom } from '../http/link-from.ts'
import { query } from '../http/query.ts'
import { reply } from '../http/reply.tsx'
import { FEEDBACK_PARAMETERS } from '../http/return-path.ts'
import { unknownParameters } from '../http/unknown-parameters.ts'
import { iso } from '../lib/iso.ts'
import { mayWrite } from '../model/users/permissions.ts'
import { accountChoices } from './account-choices.ts'
import { getFormFeedback } from './form-feedback.ts'
import { getFrame } from './settings-frame.ts'
import { getStickyPage, STICKY_PAGE, StickyQuery } from './sticky-sessions.ts'

/** Shorter pages. */
const PageQuery = StickyQuery.extend({ limit: StickyQuery.shape.limit.unwrap().default(50) })

export const showStickySessions = createHandlers(requires('ops:write'), query(PageQuery), async (c) => {
  const asked = c.req.valid('query')
  const page = await getStickyPage(c, asked)
  const { done, problem } = getFormFeedback(c)
  const value: StickySessionsPage = {
    ...page,
    frame: getFrame(c, 'routing'),
    now: iso(c.env.clock.now()),
    done,
    problem,
    asked,
    accounts: accountChoices(c),
    mayWrite: mayWrite(c.var.principal.grants),
    maxAgeDays: c.env.settings.current().conversationAffinityMaxAgeDays,
    links: getLinks(c, asked, page),
  }
  return reply(c, value, StickyPageView)
})

const FILTERS = ['kind', 'staleOnly', 'accountQuery', 'keyQuery']

const getLinks = (c: Ctx, asked: StickyQuery, { hasMore }: StickyPage): StickySessionsPage['links'] => {
  const dropped = [...FEEDBACK_PARAMETERS, ...unknownParameters(c, StickyQuery), 'offset']
  const link = (drop: readonly string[], add: Record<string, string> = {}) =>
    linkFrom(c, STICKY_PAGE, { drop: [...dropped, ...drop], add })
  const at = (offset: number) => link([], offset > 0 ? { offset: String(offset) } : {})
  const sortBy = (sort: StickySort) => {
    const isReversed = asked.sortBy === sort && asked.sortDir === FIRST_DIRECTION[sort]
    const sortDir = isReversed ? (FIRST_DIRECTION[sort] === 'asc' ? 'desc' : 'asc') : FIRST_DIRECTION[sort]
    return link(['sortBy', 'sortDir'], { sortBy: sort, sortDir })
  }
  return {
    clear: FILTERS.some((name) => c.req.query(name)) ? link(FILTERS) : null,
    newer: asked.offset > 0 ? at(Math.max(0, asked.offset - asked.limit)) : null,
    older: hasMore ? at(asked.offset + asked.limit) : null,
    sorts: { updated_at: sortBy('updated_at'), account: sortBy('account'), key: sortBy('key') },
  }
}

const FIRST_DIRECTION: Record<StickySort, 'asc' | 'desc'> = {
  updated_at: 'desc',
  created_at: 'desc',
  account: 'asc',
  key: 'asc',
}
